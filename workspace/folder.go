package workspace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ErrMoved is returned for a file if a symbolic link has its name, or that of one of its folders:
// a program may have replaced it since the Path was made. It is an fs.ErrNotExist, because
// a link is not what the Path names.
var ErrMoved = fmt.Errorf("a symbolic link has taken its place: %w", fs.ErrNotExist)

// A tree is the folder of a workspace with all that is below it. Its methods take canonical names. Each goes
// from folder to folder, and follows no link on the way: a program could otherwise have another file read or
// changed than the one that was checked, by replacing a folder with a link at the right moment (R-S18).
type tree struct{ top folder }

// in calls do with the folder called dir.
func (t tree) in(dir string, do func(folder) error) error {
	return t.descend(dir, folder.openFolder, do)
}

// inMade is in for a folder that is made if it is missing, with its parents. They
// survive a power cut.
func (t tree) inMade(dir string, do func(folder) error) error {
	return t.descend(dir, folder.makeFolder, do)
}

// descend opens each folder on the way to dir with open, and calls do with dir.
func (t tree) descend(dir string, open func(folder, string) (folder, error), do func(folder) error) error {
	if dir == "." {
		return do(t.top)
	}
	current := t.top
	for name := range strings.SplitSeq(dir, "/") {
		next, err := open(current, name)
		if current.root != t.top.root {
			_ = current.Close() // nothing was changed by it
		}
		if err != nil {
			return err
		}
		current = next
	}
	defer current.Close()
	return do(current)
}

// at calls do with the folder that a file is in, and the file's name there. The workspace
// itself is its own entry ".".
func (t tree) at(name string, do func(in folder, entry string) error) error {
	return t.in(filepath.Dir(name), func(in folder) error { return do(in, filepath.Base(name)) })
}

// open opens a file or folder.
func (t tree) open(name string, flag int) (f *os.File, err error) {
	if f := t.openAtOnce(name, flag); f != nil {
		return f, nil
	}
	err = t.at(name, func(in folder, entry string) error {
		f, err = in.open(entry, flag)
		return err
	})
	return f, err
}

// openAtOnce is open without the steps from folder to folder, which take several times as long. It
// returns nil if that fails, and if it is not certain that no link was followed: where the
// file is that was opened, Linux says.
func (t tree) openAtOnce(name string, flag int) *os.File {
	f, err := t.top.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	place, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || place != filepath.Join(t.top.root.Name(), name) {
		_ = f.Close()
		return nil
	}
	return f
}

// remove removes a file, a link or an empty folder.
func (t tree) remove(name string) error { return t.at(name, folder.remove) }

// Open opens a file or folder. Open, Stat and ReadDir are what fs.WalkDir needs.
func (t tree) Open(name string) (fs.File, error) { return t.open(name, os.O_RDONLY) }

// Stat describes a file or folder.
func (t tree) Stat(name string) (info fs.FileInfo, err error) {
	err = t.at(name, func(in folder, entry string) error {
		info, err = in.describe(entry)
		return err
	})
	return info, err
}

// ReadDir returns the entries of a folder, sorted.
func (t tree) ReadDir(name string) (entries []fs.DirEntry, err error) {
	err = t.in(name, func(d folder) error {
		entries, err = d.list()
		return err
	})
	return entries, err
}

// A folder is an open folder of a tree. Its methods take the name of one entry, and follow no link
// of that name. Only they, in this package, call the methods of os.Root.
type folder struct {
	root   *os.Root
	name   string            // canonical
	synced func(name string) // in tests: called with each folder that was synced; may be nil
}

// Stat describes the folder.
func (d folder) Stat() (fs.FileInfo, error) { return d.root.Stat(".") }

// Close closes the folder.
func (d folder) Close() error { return d.root.Close() }

// An opened is a file or a folder.
type opened interface {
	Stat() (fs.FileInfo, error)
	Close() error
}

// openTries is how often an entry is opened that is replaced at the same moment.
const openTries = 10

// openEntry returns what open has opened, which opens the entry of d called name and may
// follow a link, if that is the entry itself. The error is ErrMoved if the entry is a link.
func openEntry[T opened](d folder, name string, open func() (T, error)) (T, error) {
	var none T
	for range openTries {
		found, err := open()
		if err != nil {
			if _, moved := d.describe(name); errors.Is(moved, ErrMoved) {
				err = ErrMoved
			}
			return none, err
		}
		isEntry, err := d.isEntry(name, found)
		if isEntry && err == nil {
			return found, nil
		}
		if err := errors.Join(err, found.Close()); err != nil {
			return none, err
		}
	}
	return none, ErrMoved
}

// isEntry reports whether the entry called name is the file or folder that is open. While it is open,
// no other can be mistaken for it.
func (d folder) isEntry(name string, f opened) (bool, error) {
	found, err := f.Stat()
	if err != nil {
		return false, err
	}
	entry, err := d.describe(name)
	if err != nil {
		return false, err
	}
	return os.SameFile(found, entry), nil
}

// openFolder opens the folder called name.
func (d folder) openFolder(name string) (folder, error) {
	return openEntry(d, name, func() (folder, error) {
		root, err := d.root.OpenRoot(name + "/.") // a pipe is an error; without "/." it would block
		return folder{root: root, name: filepath.Join(d.name, name), synced: d.synced}, err
	})
}

// open opens the file or folder called name. A pipe does not block.
func (d folder) open(name string, flag int) (*os.File, error) {
	return openEntry(d, name, func() (*os.File, error) {
		return d.root.OpenFile(name, flag|syscall.O_NONBLOCK, 0)
	})
}

// makeFolder opens the folder called name, and makes it if it is missing.
func (d folder) makeFolder(name string) (folder, error) {
	opened, err := d.openFolder(name)
	if !errors.Is(err, fs.ErrNotExist) || errors.Is(err, ErrMoved) {
		return opened, err
	}
	if err := d.root.Mkdir(name, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return folder{}, err
	}
	if err := d.sync(); err != nil {
		return folder{}, err
	}
	return d.openFolder(name)
}

// describe describes the entry called name. The error is ErrMoved if it is a link.
func (d folder) describe(name string) (fs.FileInfo, error) {
	info, err := d.root.Lstat(name)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, ErrMoved
	}
	return info, err
}

// target describes what has the path name in the folder, also through links that stay within it: in one
// step, and so only good for looking.
func (d folder) target(name string) (fs.FileInfo, error) { return d.root.Stat(name) }

// exists reports whether there is an entry called name, be it a link.
func (d folder) exists(name string) bool {
	_, err := d.root.Lstat(name)
	return !errors.Is(err, fs.ErrNotExist)
}

// list returns the entries of the folder, sorted.
func (d folder) list() ([]fs.DirEntry, error) {
	f, err := d.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// create writes a new file and syncs it. The error is ErrTooBig if r yields more than most
// bytes.
func (d folder) create(name string, mode fs.FileMode, r io.Reader, most int64) (int64, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return 0, err
	}
	n, err := copySynced(f, r, most)
	return n, errors.Join(err, f.Close())
}

// copySynced writes what r yields to f and syncs it. The error is ErrTooBig if that
// is over most bytes.
func copySynced(f *os.File, r io.Reader, most int64) (int64, error) {
	n, err := io.Copy(f, io.LimitReader(r, most+1))
	if err != nil {
		return n, err
	}
	if n > most {
		return n, ErrTooBig
	}
	return n, f.Sync()
}

// link makes name another name of the file f, which is called entry in from. It fails on
// systems without /proc: the os package makes no links between open folders.
func (d folder) link(name string, from folder, entry string, f *os.File) error {
	to, err := d.root.Open(".")
	if err != nil {
		return err
	}
	defer to.Close()
	of, err := from.root.Open(".")
	if err != nil {
		return err
	}
	defer of.Close()
	const path = "/proc/self/fd/%d/%s"
	if err := os.Link(fmt.Sprintf(path, of.Fd(), entry), fmt.Sprintf(path, to.Fd(), name)); err != nil {
		return err
	}
	isSame, err := d.isEntry(name, f)
	if err != nil {
		return errors.Join(err, d.remove(name))
	}
	if !isSame {
		return errors.Join(ErrMoved, d.remove(name))
	}
	return nil
}

// rename gives the file from the name to, in place of what had it.
func (d folder) rename(from, to string) error { return d.root.Rename(from, to) }

// remove removes a file, a link or an empty folder.
func (d folder) remove(name string) error { return d.root.Remove(name) }

// removeAll removes a file, a link, or a folder with everything in it.
func (d folder) removeAll(name string) error { return d.root.RemoveAll(name) }

// sync makes the names of the folder's entries survive a power cut.
func (d folder) sync() error {
	if d.synced != nil {
		d.synced(d.name)
	}
	f, err := d.root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
