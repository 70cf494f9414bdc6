package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// A LockedError says that another process has the data directory (P17).
type LockedError struct {
	Dir   string
	PID   int  // 0: unknown
	Brief bool // the process is a command that soon ends
}

// Error implements error.
func (e *LockedError) Error() string {
	switch {
	case e.PID == 0:
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	case e.Brief:
		return fmt.Sprintf("%s is in use by process %d, a command that soon ends", e.Dir, e.PID)
	}
	return fmt.Sprintf("%s is in use by process %d", e.Dir, e.PID)
}

// A DamagedError says that the file is not the Store that was there before. The file
// was not changed.
type DamagedError struct {
	File  string
	Cause error
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged: %v; put a backup in its place, or, to start empty, move it and %s away",
		e.File, e.Cause, markOf(e.File))
}

// Unwrap returns the cause.
func (e *DamagedError) Unwrap() error { return e.Cause }

// An OlderError says that the file is an earlier version of the one that was used last:
// later changes would be lost, and replies be sent again. The file was not changed.
type OlderError struct {
	File  string
	Wrote time.Time // the last known change
}

// Error implements error.
func (e *OlderError) Error() string {
	return fmt.Sprintf("%s is not the file that was used last, but an older one: it lacks changes up to %s;"+
		" put the right one back, or restore this one", e.File, e.Wrote.Format(time.DateTime))
}

// A FormatError says that a newer version has written the Store. The file was not
// changed.
type FormatError struct {
	File string
	Has  int
}

// Error implements error.
func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, and this version of Parley understands %d at most:"+
		" run the newer version, or restore a backup that this version made", e.File, e.Has, Format)
}

// Lock prevents others from opening a Store in dir until unlock is called. It returns
// a [*LockedError] if another process has one open.
func Lock(dir string) (unlock func() error, err error) {
	f, err := lockDir(dir, true)
	if err != nil {
		return nil, err
	}
	return func() error { return unlockDir(f) }, nil
}

// lockRetryInterval is the time between two attempts to lock a directory.
const lockRetryInterval = 50 * time.Millisecond

// waitForLock locks cfg.Dir. It waits for a holder that will soon end.
func waitForLock(ctx context.Context, cfg Config) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	for first := true; ; first = false {
		dir, err := lockDir(cfg.Dir, cfg.Brief)
		locked, ok := errors.AsType[*LockedError](err)
		endsSoon := ok && (locked.Brief || locked.PID == 0)
		if !endsSoon || cfg.Patience == 0 {
			return dir, err
		}
		if first {
			cfg.Log.Info("waiting for another process to let go of the data folder", "process", locked.PID)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockRetryInterval):
		}
	}
}

// lockDir locks dir for this process, until unlockDir is called with the file.
func lockDir(dir string, brief bool) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		text, _ := io.ReadAll(io.LimitReader(f, maxHolderText))
		pid, brief := parseHolder(string(text))
		err = &LockedError{Dir: dir, PID: pid, Brief: brief}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	writeHolder(f, brief)
	return f, nil
}

// unlockDir releases the lock even if a process that is just being started has
// inherited the file.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

const (
	lockName      = "lock"
	briefMark     = "briefly" // is in the lock of a command that soon ends
	maxHolderText = 64        // bytes
)

// writeHolder writes who holds the lock. It is best effort: on a full disk the lock
// works without.
func writeHolder(f *os.File, brief bool) {
	text := fmt.Sprintln(os.Getpid())
	if brief {
		text = fmt.Sprintln(os.Getpid(), briefMark)
	}
	if err := f.Truncate(0); err != nil {
		return
	}
	_, _ = f.WriteAt([]byte(text), 0)
}

func parseHolder(text string) (pid int, brief bool) {
	words := strings.Fields(text)
	if len(words) > 0 {
		pid, _ = strconv.Atoi(words[0])
	}
	return pid, len(words) > 1 && words[1] == briefMark
}

// Holder returns the process that last locked dir, 0 if none is known. It may have
// released the lock since.
func Holder(dir string) (pid int) {
	text, _ := os.ReadFile(filepath.Join(dir, lockName))
	pid, _ = parseHolder(string(text))
	return pid
}
