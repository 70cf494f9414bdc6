package bolt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"parley/store/bolt/mark"
	"parley/store/bolt/refusal"
)

// Format is the highest layout number that this version understands. The number is in
// the file and in the mark. A change of the layout that an older version would misread
// raises it, and comes with code that upgrades.
//
// Format 1 had no log in front of the file, and a file without a number has the layout of
// format 1. Format 2 was that of a file in which damage had broken a log into pieces. The
// first write of this version makes any of them format 4: an older version would neither see
// what is in the log alone nor know that what it writes comes after that.
//
// Format 4 has notes of what was written into the file in its log, as an older version
// could not read it.
const Format = 4

// wasClosed reports whether the file is unchanged since the last Close, according to
// its mark. It creates the file if there was never one.
func wasClosed(path string, m *mark.Mark) (clean bool, err error) {
	now, err := mark.StateOf(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && m == nil:
		return true, create(path)
	case errors.Is(err, fs.ErrNotExist):
		return false, &refusal.DamagedError{File: path, Cause: errors.New("it is missing")}
	case err != nil:
		return false, err
	case now.Size == 0:
		return false, &refusal.DamagedError{File: path, Cause: errors.New("it is empty")}
	}
	return m.IsClosed(now), nil
}

// create creates an empty Store at path: all of it or nothing, because an empty file
// counts as damage.
func create(path string) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o := options()
	o.InitialMmapSize = 0
	db, err := openFile(draft, o)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
