package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
)

// Limits on the size of a file, in bytes.
const (
	MaxOpen = 100 << 20 // of Open (D-055)
	MaxRead = 10 << 20  // of ReadFile
)

// Modes of what is new in the workspace.
const (
	fileMode fs.FileMode = 0o600
	dirMode  fs.FileMode = 0o700
)

// private returns the rights in mode that remain when only the owner has any.
func private(mode fs.FileMode) fs.FileMode { return mode.Perm() & 0o700 }

// Open opens a plain file for reading. It refuses what is outside, protected,
// bigger than MaxOpen, or no plain file: devices, pipes and sockets can hang
// their reader or never end.
func (w *Workspace) Open(p Path) (*os.File, error) { return w.open(p, os.O_RDONLY, MaxOpen) }

// OpenBig is Open for a file of whatever size.
func (w *Workspace) OpenBig(p Path) (*os.File, error) { return w.open(p, os.O_RDONLY, math.MaxInt64) }

// OpenLog opens a plain file, of whatever size, for reading, and for writing
// at its end. It refuses what Open does.
func (w *Workspace) OpenLog(p Path) (*os.File, error) {
	return w.open(p, os.O_RDWR|os.O_APPEND, math.MaxInt64)
}

func (w *Workspace) open(p Path, flag int, most int64) (*os.File, error) {
	f, err := w.root.OpenFile(p.name, flag|syscall.O_NONBLOCK, 0)
	if errors.Is(err, syscall.ENXIO) { // a socket
		err = ErrNotFile
	}
	if err != nil {
		return nil, w.at.explain(p.name, err)
	}
	info, err := f.Stat()
	if err == nil {
		err = w.plain(info)
	}
	if err == nil && info.Size() > most {
		err = ErrTooBig
	}
	if err != nil {
		_ = f.Close()
		return nil, w.at.explain(p.name, err)
	}
	return f, nil
}

// plain says what is wrong with a file: nothing, ErrNotFile or ErrProtected.
func (w *Workspace) plain(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return ErrNotFile
	case w.protected.covers(info):
		return ErrProtected
	}
	return nil
}

// Stat describes a file or folder.
func (w *Workspace) Stat(p Path) (fs.FileInfo, error) {
	info, err := w.root.Stat(p.name)
	if err != nil {
		err = w.at.explain(p.name, err)
	}
	return info, err
}

// IsBeside reports whether one of the folders that p is in has a file or folder
// called name.
func (w *Workspace) IsBeside(p Path, name string) bool {
	for dir := p; dir.name != "."; {
		dir = dir.Dir()
		// p is canonical, and nothing is opened
		if _, err := os.Lstat(filepath.Join(w.at.realDir, dir.name, name)); err == nil {
			return true
		}
	}
	return false
}

// ReadDir returns what is in a folder, sorted.
func (w *Workspace) ReadDir(p Path) ([]fs.DirEntry, error) {
	return fs.ReadDir(w.root.FS(), p.name)
}

// ReadFile returns the contents of a plain file. It fails as Open does, and
// with ErrTooBig above MaxRead.
func (w *Workspace) ReadFile(p Path) ([]byte, error) {
	f, err := w.open(p, os.O_RDONLY, MaxRead)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxRead+1))
	if err == nil && len(data) > MaxRead { // it grew
		err = ErrTooBig
	}
	if err != nil {
		return nil, w.at.explain(p.name, err)
	}
	return data, nil
}

// WriteFile makes data the contents of a file, and the folders it is in.
// Whatever happens, the file holds either what it held before or all of data,
// and once WriteFile returned nil it survives a power cut. Nobody but the user
// who runs Parley may read it.
func (w *Workspace) WriteFile(p Path, data []byte) error {
	_, err := w.Save(p, bytes.NewReader(data), int64(len(data)))
	return err
}

// Save is WriteFile of all that r yields, which is never held in memory. It
// returns how many bytes that is, and ErrTooBig for more than most.
func (w *Workspace) Save(p Path, r io.Reader, most int64) (int64, error) {
	n, err := w.replace(p.name, r, most)
	if err != nil {
		return 0, w.at.explain(p.name, err)
	}
	return n, nil
}

// MkdirAll makes a folder and those it is in. They survive a power cut.
func (w *Workspace) MkdirAll(p Path) error {
	if info, err := w.root.Stat(p.name); err == nil && !info.IsDir() {
		return w.at.explain(p.name, syscall.ENOTDIR)
	}
	return w.disk.makeFolder(p.name)
}

// Remove removes a file or an empty folder, and what is known of its origin and
// of whom it counts for.
func (w *Workspace) Remove(p Path) error {
	err := w.root.Remove(p.name)
	if err == nil {
		err = w.ClearOrigin(p)
	}
	if err == nil {
		err = w.Charge(p, "")
	}
	return err
}

// RemoveAll removes a folder and all that is in it.
func (w *Workspace) RemoveAll(p Path) error { return w.root.RemoveAll(p.name) }

// Rename makes to the name of the file from. Once it returned nil the file
// keeps that name over a power cut; until then it has one of the two.
func (w *Workspace) Rename(from, to Path) error {
	if err := w.root.Rename(from.name, to.name); err != nil {
		return err
	}
	before, after := filepath.Dir(from.name), filepath.Dir(to.name)
	if err := w.disk.sync(after); err != nil || before == after {
		return err
	}
	return w.disk.sync(before)
}

// Copy makes a file to that holds what from does, and what a later WriteFile
// of from does not change. Once it returned nil it survives a power cut.
func (w *Workspace) Copy(from, to Path) error {
	if w.root.Link(from.name, to.name) == nil { // files are replaced, not overwritten
		return w.disk.sync(filepath.Dir(to.name))
	}
	f, err := w.OpenBig(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil {
		_, err = w.Save(to, f, math.MaxInt64-1)
	}
	if err == nil {
		err = w.root.Chmod(to.name, private(info.Mode()))
	}
	return err
}

// Lock calls do while nobody else holds the Lock of the same folder, in
// whatever process.
func (w *Workspace) Lock(folder Path, do func() error) error {
	d, err := w.root.Open(folder.name)
	if err != nil {
		return err
	}
	defer d.Close()
	for err = syscall.EINTR; errors.Is(err, syscall.EINTR); {
		err = syscall.Flock(int(d.Fd()), syscall.LOCK_EX)
	}
	if err != nil {
		return err
	}
	return do()
}

// replace makes what r yields the contents of a file, or leaves it as it is.
func (w *Workspace) replace(name string, r io.Reader, most int64) (int64, error) {
	mode := fileMode
	switch info, err := w.root.Stat(name); {
	case err == nil:
		if err := w.plain(info); err != nil {
			return 0, err
		}
		if mode = private(info.Mode()); mode&0o200 == 0 {
			return 0, fs.ErrPermission
		}
	case !errors.Is(err, fs.ErrNotExist):
		return 0, err
	}
	dir := filepath.Dir(name)
	if err := w.disk.makeFolder(dir); err != nil {
		return 0, err
	}
	temp := filepath.Join(dir, ".new-"+rand.Text())
	n, err := w.disk.create(temp, mode, r, most)
	if err == nil {
		err = w.root.Rename(temp, name)
	}
	if err != nil {
		return 0, errors.Join(err, w.root.Remove(temp))
	}
	return n, w.disk.sync(dir)
}
