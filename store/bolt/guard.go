package bolt

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"go.etcd.io/bbolt"
)

// A LockedError says that another process has the data directory (P17).
type LockedError struct {
	Dir string
	PID int // 0: not known
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	}
	return fmt.Sprintf("%s is in use by process %d", e.Dir, e.PID)
}

// A DamagedError says that the file is not the Store that was there before. It
// was left as it was found.
type DamagedError struct {
	File  string
	Cause error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; put a backup in its place, or, to start empty, move it and %s away",
		e.File, e.Cause, markOf(e.File))
}

func (e *DamagedError) Unwrap() error { return e.Cause }

// Lock keeps everybody from opening a Store in dir until unlock is called. It
// returns a [*LockedError] when another process has one open.
func Lock(dir string) (unlock func() error, err error) {
	f, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	return func() error { return unlockDir(f) }, nil
}

// lockDir locks dir for this process, until unlockDir of what it returns.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = &LockedError{Dir: dir, PID: readPID(f)}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	writePID(f)
	return f, nil
}

// unlockDir lets go of the lock also when a process that is just being started
// has inherited the file.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// writePID does what it can: on a full disk the lock holds without a number.
func writePID(f *os.File) {
	if f.Truncate(0) == nil {
		fmt.Fprintln(f, os.Getpid())
	}
}

func readPID(f *os.File) int {
	text, _ := io.ReadAll(io.LimitReader(f, 32))
	pid, _ := strconv.Atoi(strings.TrimSpace(string(text)))
	return pid
}

// The mark beside the file says that there was a Store. It is empty while the
// Store is open; after a clean Close it tells the file's size and time.
func markOf(path string) string { return path + ".mark" }

func cleanMark(info fs.FileInfo) string {
	return fmt.Sprintf("closed %d %d\n", info.Size(), info.ModTime().UnixNano())
}

// inspect says whether the file is as the last Close left it. It makes the
// file when there was never one.
func inspect(path string) (clean bool, err error) {
	mark, err := os.ReadFile(markOf(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	existed := err == nil
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !existed:
		return true, create(path)
	case errors.Is(err, fs.ErrNotExist):
		return false, &DamagedError{File: path, Cause: errors.New("it is missing")}
	case err != nil:
		return false, err
	case info.Size() == 0:
		return false, &DamagedError{File: path, Cause: errors.New("it is empty")}
	}
	return string(mark) == cleanMark(info), nil
}

// create makes an empty Store at path: all of it or nothing, since an empty
// file counts as damage.
func create(path string) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	db, err := openFile(draft, &bbolt.Options{})
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

// markOpen notes, before the first write, that the Store exists and is open.
// It needs no space when there is a mark already.
func markOpen(path string) error {
	if err := setMark(path, ""); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// markClean notes that the Store was closed as it should be.
func markClean(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return setMark(path, cleanMark(info))
}

func setMark(path, text string) error {
	f, err := os.OpenFile(markOf(path), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
