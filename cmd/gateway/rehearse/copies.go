package rehearse

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"parley/store/bolt/dirlock"
)

const (
	copyPrefix = "parley-rehearsal-"
	lockFile   = "lock"      // in the folder of a copy, while a process uses it
	filesDir   = "files"     // the copy
	newCopy    = time.Minute // a folder without a lock may be that of a rehearsal that begins
)

// A workCopy is the copy of a workspace in the temporary folder, for one rehearsal.
type workCopy struct {
	dir    string // of the copy and its lock
	unlock func() error
}

// copyOf copies a workspace. What rehearsals that were killed have left is removed first.
func copyOf(from string, log *slog.Logger) (c workCopy, err error) {
	Sweep(log)
	if c.dir, err = os.MkdirTemp("", copyPrefix); err != nil {
		return c, err
	}
	if c.unlock, err = dirlock.Lock(c.dir, false); err != nil {
		return c, errors.Join(err, os.RemoveAll(c.dir))
	}
	if err := copyFiles(from, c.files()); err != nil {
		return c, errors.Join(fmt.Errorf("copy the workspace: %w", err), c.remove())
	}
	return c, nil
}

func (c workCopy) files() string { return filepath.Join(c.dir, filesDir) }

func (c workCopy) remove() error { return errors.Join(os.RemoveAll(c.dir), c.unlock()) }

// Sweep removes the copies that rehearsals have left in the temporary folder which were killed. Those that are under
// way, and those of other users, stay.
func Sweep(log *slog.Logger) {
	left, err := filepath.Glob(filepath.Join(os.TempDir(), copyPrefix+"*"))
	for _, dir := range left {
		if abandoned(dir) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	if err != nil {
		log.Warn("the copy of a rehearsal that was killed is still there", "err", err)
	}
}

// abandoned reports whether no process uses the copy in dir any more.
func abandoned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	if who, ok := info.Sys().(*syscall.Stat_t); !ok || int(who.Uid) != os.Geteuid() {
		return false
	}
	if _, err := os.Lstat(filepath.Join(dir, lockFile)); errors.Is(err, fs.ErrNotExist) {
		return time.Since(info.ModTime()) > newCopy
	}
	unlock, err := dirlock.Lock(dir, true)
	if err != nil {
		return false
	}
	return unlock() == nil
}
