package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// A disk creates files and folders that survive a power cut.
type disk struct {
	root   *os.Root
	synced func(folder string) // in tests: called with each folder that was synced; may be nil
}

// create writes a new file and syncs it.
func (d disk) create(name string, mode fs.FileMode, r io.Reader, most int64) (int64, error) {
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

// makeFolder creates a folder and its parents, so that they survive a power cut.
func (d disk) makeFolder(dir string) error {
	if _, err := d.root.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if err := d.makeFolder(parent); err != nil {
		return err
	}
	if err := d.root.Mkdir(dir, dirMode); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return d.sync(parent)
}

// sync makes the names in a folder survive a power cut.
func (d disk) sync(dir string) error {
	if d.synced != nil {
		d.synced(dir)
	}
	folder, err := d.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
