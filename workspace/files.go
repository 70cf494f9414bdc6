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

// private returns the permissions in mode for the file's owner only.
func private(mode fs.FileMode) fs.FileMode { return mode.Perm() & 0o700 }

// Open opens a regular file for reading. It refuses files that are outside,
// protected, or bigger than MaxOpen, and anything but regular files: devices,
// pipes and sockets can block their reader or never end.
func (w *Workspace) Open(p Path) (*os.File, error) { return w.open(p, os.O_RDONLY, MaxOpen) }

// OpenBig is Open for a file of any size.
func (w *Workspace) OpenBig(p Path) (*os.File, error) { return w.open(p, os.O_RDONLY, math.MaxInt64) }

// OpenLog opens a regular file of any size for reading and appending. It refuses
// what Open refuses.
func (w *Workspace) OpenLog(p Path) (*os.File, error) {
	return w.open(p, os.O_RDWR|os.O_APPEND, math.MaxInt64)
}

func (w *Workspace) open(p Path, flag int, most int64) (*os.File, error) {
	f, err := openPlain(w.root, p.name, flag)
	if errors.Is(err, syscall.ENXIO) { // a socket
		err = ErrNotFile
	}
	if err != nil {
		return nil, w.at.explain(p.name, err)
	}
	if err := w.checkOpened(f, most); err != nil {
		_ = f.Close()
		return nil, w.at.explain(p.name, err)
	}
	return f, nil
}

// checkOpened returns an error unless f is a plain file of at most that many bytes.
func (w *Workspace) checkOpened(f *os.File, most int64) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.plain(info); err != nil {
		return err
	}
	if info.Size() > most {
		return ErrTooBig
	}
	return nil
}

// plain returns ErrNotFile or ErrProtected if the file must not be opened.
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

// IsBeside reports whether one of the folders above p contains a file or folder
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

// ReadDir returns the entries of a folder, sorted.
func (w *Workspace) ReadDir(p Path) ([]fs.DirEntry, error) {
	return fs.ReadDir(w.root.FS(), p.name)
}

// ReadFile returns the content of a regular file. It fails like Open, and with
// ErrTooBig above MaxRead.
func (w *Workspace) ReadFile(p Path) ([]byte, error) {
	f, err := w.open(p, os.O_RDONLY, MaxRead)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxRead+1))
	if err != nil {
		return nil, w.at.explain(p.name, err)
	}
	if len(data) > MaxRead { // it grew
		return nil, w.at.explain(p.name, ErrTooBig)
	}
	return data, nil
}

// WriteFile replaces the content of a file, and creates missing folders. Whatever
// happens, the file has either its old content or all of data. After WriteFile has
// returned nil, the file survives a power cut. Only the user who runs Parley may
// read it.
func (w *Workspace) WriteFile(p Path, data []byte) error {
	_, err := w.Save(p, bytes.NewReader(data), int64(len(data)))
	return err
}

// Save is WriteFile for all that r yields, which is never held in memory. It
// returns the number of bytes, and ErrTooBig if there are more than most.
func (w *Workspace) Save(p Path, r io.Reader, most int64) (int64, error) {
	n, err := w.replace(p.name, r, most)
	if err != nil {
		return 0, w.at.explain(p.name, err)
	}
	return n, nil
}

// MkdirAll creates a folder and its parents. They survive a power cut.
func (w *Workspace) MkdirAll(p Path) error {
	if info, err := w.root.Stat(p.name); err == nil && !info.IsDir() {
		return w.at.explain(p.name, syscall.ENOTDIR)
	}
	return w.disk.makeFolder(p.name)
}

// Remove removes a file or an empty folder, with the records of its origin and its
// charge.
func (w *Workspace) Remove(p Path) error {
	err := inFolder(w.root, p.name, func(folder *os.Root, base string) error { return folder.Remove(base) })
	if err != nil {
		return err
	}
	if err := w.ClearOrigin(p); err != nil {
		return err
	}
	return w.Charge(p, "")
}

// RemoveAll removes a folder with everything in it.
func (w *Workspace) RemoveAll(p Path) error { return w.root.RemoveAll(p.name) }

// Rename renames the file from to to. After it has returned nil, the new name
// survives a power cut; until then the file has one of the two names.
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

// Copy makes to a copy of from, which later writes to from do not change. After it
// has returned nil, the copy survives a power cut.
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
	if err != nil {
		return err
	}
	if _, err := w.Save(to, f, math.MaxInt64-1); err != nil {
		return err
	}
	return w.root.Chmod(to.name, private(info.Mode()))
}

// Lock calls do while it holds the lock of the folder, in this and all other
// processes.
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

// replace replaces the content of a file by what r yields, or leaves it as it is.
func (w *Workspace) replace(name string, r io.Reader, most int64) (n int64, err error) {
	if err := w.disk.makeFolder(filepath.Dir(name)); err != nil {
		return 0, err
	}
	err = inFolder(w.root, name, func(folder *os.Root, base string) error {
		n, err = w.replaceIn(disk{root: folder}, base, r, most)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, w.disk.sync(filepath.Dir(name))
}

// replaceIn replaces the content of a file in the folder of d.
func (w *Workspace) replaceIn(d disk, base string, r io.Reader, most int64) (int64, error) {
	mode := fileMode
	switch info, err := d.root.Lstat(base); {
	case err == nil && info.Mode()&fs.ModeSymlink != 0:
		return 0, ErrMoved
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
	temp := filepath.Join(filepath.Dir(base), ".new-"+rand.Text())
	n, err := d.create(temp, mode, r, most)
	if err != nil {
		return 0, errors.Join(err, d.root.Remove(temp))
	}
	if err := d.root.Rename(temp, base); err != nil {
		return 0, errors.Join(err, d.root.Remove(temp))
	}
	return n, nil
}
