package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Limits on the size of a file, in bytes.
const (
	MaxOpen = 100 << 20 // of Open (D-055)
	MaxRead = 10 << 20  // of ReadFile
)

// Open opens a plain file for reading. It refuses what is outside, protected,
// bigger than MaxOpen, or no plain file: devices, pipes and sockets can hang
// their reader or never end.
func (w *Workspace) Open(path string) (*os.File, error) { return w.open(path, os.O_RDONLY, MaxOpen) }

// OpenLog opens a plain file, of whatever size, for reading, and for writing
// at its end. It refuses what Open does.
func (w *Workspace) OpenLog(path string) (*os.File, error) {
	return w.open(path, os.O_RDWR|os.O_APPEND, math.MaxInt64)
}

func (w *Workspace) open(path string, flag int, most int64) (*os.File, error) {
	name, err := w.Path(path)
	if err != nil {
		return nil, err
	}
	f, err := w.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		err = ErrNotFile
	}
	if err != nil {
		return nil, w.explain(path, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = w.Plain(info)
	}
	if err == nil && info.Size() > most {
		err = ErrTooBig
	}
	if err != nil {
		_ = f.Close()
		return nil, w.explain(path, err)
	}
	return f, nil
}

// Plain says what is wrong with a file: nothing, ErrNotFile or ErrProtected.
func (w *Workspace) Plain(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return ErrNotFile
	case w.isProtected(info):
		return ErrProtected
	}
	return nil
}

// explain adds the path as the caller wrote it.
func (w *Workspace) explain(path string, err error) error {
	if strings.Contains(err.Error(), "path escapes from parent") { // the os package has no name for it
		return &OutsideError{Path: path, Dir: w.dir}
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// Stat describes the file called name in the workspace.
func (w *Workspace) Stat(name string) (fs.FileInfo, error) {
	info, err := w.root.Stat(name)
	if err != nil {
		err = w.explain(name, err)
	}
	return info, err
}

// ReadDir returns what is in the folder called name of the workspace, sorted.
func (w *Workspace) ReadDir(name string) ([]fs.DirEntry, error) {
	return fs.ReadDir(w.root.FS(), name)
}

// ReadFile returns the contents of a plain file. It fails as Open does, and
// with ErrTooBig above MaxRead.
func (w *Workspace) ReadFile(path string) ([]byte, error) {
	f, err := w.open(path, os.O_RDONLY, MaxRead)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxRead+1))
	if err == nil && len(data) > MaxRead { // it grew
		err = ErrTooBig
	}
	if err != nil {
		return nil, w.explain(path, err)
	}
	return data, nil
}

// WriteFile makes data the contents of a file, and the folders it is in.
// Whatever happens, the file holds either what it held before or all of data,
// and once WriteFile returned nil it survives a power cut.
func (w *Workspace) WriteFile(path string, data []byte) error {
	_, err := w.Save(path, bytes.NewReader(data), int64(len(data)))
	return err
}

// Save is WriteFile of all that r yields, which is never held in memory. It
// returns how many bytes that is, and ErrTooBig for more than most.
func (w *Workspace) Save(path string, r io.Reader, most int64) (int64, error) {
	name, err := w.Path(path)
	if err != nil {
		return 0, err
	}
	n, err := w.replace(name, r, most)
	if err != nil {
		return 0, w.explain(path, err)
	}
	return n, nil
}

func (w *Workspace) replace(name string, r io.Reader, most int64) (int64, error) {
	mode := fs.FileMode(0o644)
	switch info, err := w.root.Stat(name); {
	case err == nil:
		if err := w.Plain(info); err != nil {
			return 0, err
		}
		if mode = info.Mode().Perm(); mode&0o200 == 0 {
			return 0, fs.ErrPermission
		}
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	dir := filepath.Dir(name)
	if err := w.root.MkdirAll(dir, 0o755); err != nil {
		return 0, err
	}
	temp := filepath.Join(dir, ".new-"+rand.Text())
	n, err := w.create(temp, mode, r, most)
	if err == nil {
		err = w.root.Rename(temp, name)
	}
	if err != nil {
		return 0, errors.Join(err, w.root.Remove(temp))
	}
	return n, w.sync(dir)
}

// create writes a new file and syncs it.
func (w *Workspace) create(name string, mode fs.FileMode, r io.Reader, most int64) (int64, error) {
	f, err := w.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(f, io.LimitReader(r, most+1))
	if err == nil && n > most {
		err = ErrTooBig
	}
	if err == nil {
		err = f.Sync()
	}
	return n, errors.Join(err, f.Close())
}

// sync makes the names in a folder last.
func (w *Workspace) sync(dir string) error {
	d, err := w.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
