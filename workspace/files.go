package workspace

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
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
	f, err := w.tree.open(p.name, flag)
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
	info, err := w.tree.Stat(p.name)
	return info, w.at.explain(p.name, err)
}

// IsBeside reports whether one of the folders above p contains a file or folder
// called name, or may do so: it could not be looked into.
func (w *Workspace) IsBeside(p Path, name string) bool {
	found := w.tree.top.exists(name)
	err := w.tree.descend(p.Dir().name, func(in folder, entry string) (folder, error) {
		next, err := in.openFolder(entry)
		if err != nil {
			return next, err
		}
		found = found || next.exists(name)
		return next, nil
	}, func(folder) error { return nil })
	return found || err != nil && (!errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrMoved))
}

// ReadDir returns the entries of a folder, sorted.
func (w *Workspace) ReadDir(p Path) ([]fs.DirEntry, error) {
	entries, err := w.tree.ReadDir(p.name)
	return entries, w.at.explain(p.name, err)
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
func (w *Workspace) Save(p Path, r io.Reader, most int64) (n int64, err error) {
	err = w.replace(p, func(in folder, temp string, mode fs.FileMode) error {
		n, err = in.create(temp, mode, r, most)
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// replace puts what create makes, in the same folder and called temp, in the place of a file.
// It makes missing folders.
func (w *Workspace) replace(p Path, create func(in folder, temp string, mode fs.FileMode) error) error {
	err := w.tree.inMade(p.Dir().name, func(in folder) error {
		mode, err := w.checkReplaced(in, p.Base())
		if err != nil {
			return err
		}
		temp := ".new-" + rand.Text()
		if err := create(in, temp, mode); err != nil {
			return errors.Join(err, in.remove(temp))
		}
		if err := in.rename(temp, p.Base()); err != nil {
			return errors.Join(err, in.remove(temp))
		}
		return in.sync()
	})
	return w.at.explain(p.name, err)
}

// checkReplaced returns an error if the entry called name must not be replaced, and otherwise the mode of
// the file that replaces it.
func (w *Workspace) checkReplaced(in folder, name string) (fs.FileMode, error) {
	info, err := in.describe(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !errors.Is(err, ErrMoved):
		return fileMode, nil
	case err != nil:
		return 0, err
	}
	if err := w.plain(info); err != nil {
		return 0, err
	}
	mode := private(info.Mode())
	if mode&0o200 == 0 {
		return 0, fs.ErrPermission
	}
	return mode, nil
}

// Copy puts a copy of from in the place of to. A later WriteFile to one does not change
// the other. After Copy has returned nil, the copy survives a power cut.
func (w *Workspace) Copy(from, to Path) error { return w.copyFile(from, to, folder.link) }

// copyFile is Copy. If link fails, it writes a new file.
func (w *Workspace) copyFile(from, to Path, link func(folder, string, folder, string, *os.File) error) error {
	f, err := w.OpenBig(from)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return w.replace(to, func(in folder, temp string, _ fs.FileMode) error {
		linked := w.tree.at(from.name, func(source folder, entry string) error {
			return link(in, temp, source, entry, f)
		})
		if linked != nil {
			_, err = in.create(temp, private(info.Mode()), f, math.MaxInt64-1)
		}
		return err
	})
}

// MkdirAll creates a folder and its parents. They survive a power cut.
func (w *Workspace) MkdirAll(p Path) error {
	err := w.tree.inMade(p.name, func(folder) error { return nil })
	return w.at.explain(p.name, err)
}

// Remove removes a file or an empty folder, with the records of its origin and its
// charge.
func (w *Workspace) Remove(p Path) error {
	if err := w.tree.remove(p.name); err != nil {
		return w.at.explain(p.name, err)
	}
	if err := w.ClearOrigin(p); err != nil {
		return err
	}
	return w.Charge(p, "")
}

// RemoveAll removes a folder with everything in it.
func (w *Workspace) RemoveAll(p Path) error {
	err := w.tree.at(p.name, folder.removeAll)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return w.at.explain(p.name, err)
}

// Lock calls do while it holds the lock of the folder, in this and all other
// processes.
func (w *Workspace) Lock(folder Path, do func() error) error {
	d, err := w.tree.open(folder.name, os.O_RDONLY)
	if err != nil {
		return w.at.explain(folder.name, err)
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
