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
	PID   int  // 0: not known
	Brief bool // it is a command that soon ends
}

func (e *LockedError) Error() string {
	switch {
	case e.PID == 0:
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	case e.Brief:
		return fmt.Sprintf("%s is in use by process %d, a command that soon ends", e.Dir, e.PID)
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

// An OlderError says that the file is an older one than the one that was used
// last: what was written since would be lost, and what was sent since be sent
// again. It was left as it was found.
type OlderError struct {
	File  string
	Wrote time.Time // the last change that is known of
}

func (e *OlderError) Error() string {
	return fmt.Sprintf("%s is not the file that was used last, but an older one: it lacks changes up to %s; put the right one back, or restore this one",
		e.File, e.Wrote.Format(time.DateTime))
}

// A FormatError says that a newer version has written the Store. It was left
// as it was found.
type FormatError struct {
	File string
	Has  int
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s has format %d, and this version of Parley understands %d at most: run the newer version, or restore a backup that this version made",
		e.File, e.Has, Format)
}

// Lock keeps everybody from opening a Store in dir until unlock is called. It
// returns a [*LockedError] when another process has one open.
func Lock(dir string) (unlock func() error, err error) {
	f, err := lockDir(dir, true)
	if err != nil {
		return nil, err
	}
	return func() error { return unlockDir(f) }, nil
}

// lockRetry is the time between two tries to lock a directory.
const lockRetry = 50 * time.Millisecond

// waitForLock locks cfg.Dir. It waits for a holder that soon ends.
func waitForLock(ctx context.Context, cfg Config) (*os.File, error) {
	ctx, cancel := context.WithTimeout(ctx, cfg.Patience)
	defer cancel()
	for first := true; ; first = false {
		dir, err := lockDir(cfg.Dir, cfg.Brief)
		var locked *LockedError
		if !errors.As(err, &locked) || !locked.Brief && locked.PID != 0 || cfg.Patience == 0 {
			return dir, err
		}
		if first {
			cfg.Log.Info("waiting for another process to let go of the data folder", "process", locked.PID)
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(lockRetry):
		}
	}
}

// lockDir locks dir for this process, until unlockDir of what it returns.
func lockDir(dir string, brief bool) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		text, _ := io.ReadAll(io.LimitReader(f, 64))
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

// unlockDir lets go of the lock also when a process that is just being started
// has inherited the file.
func unlockDir(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

const briefly = "briefly" // stands in the lock of a command that soon ends

// writeHolder does what it can: on a full disk the lock holds without a number.
func writeHolder(f *os.File, brief bool) {
	text := fmt.Sprintln(os.Getpid())
	if brief {
		text = fmt.Sprintln(os.Getpid(), briefly)
	}
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(text), 0)
	}
}

func parseHolder(text string) (pid int, brief bool) {
	words := strings.Fields(text)
	if len(words) > 0 {
		pid, _ = strconv.Atoi(words[0])
	}
	return pid, len(words) > 1 && words[1] == briefly
}

// Holder returns the process that locked dir last, 0 if none is known. Whether
// it still holds the lock is another question.
func Holder(dir string) (pid int) {
	text, _ := os.ReadFile(filepath.Join(dir, "lock"))
	pid, _ = parseHolder(string(text))
	return pid
}
