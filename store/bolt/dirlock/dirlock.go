// Package dirlock locks a directory for one process at a time (P17).
package dirlock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// Lock locks dir until unlock is called, or this process ends. It returns a [*LockedError]
// if another process has it. brief says that this one is a command that soon ends.
func Lock(dir string, brief bool) (unlock func() error, err error) {
	f, err := lockDir(dir, brief)
	if err != nil {
		return nil, err
	}
	return func() error { return unlockDir(f) }, nil
}

// lockRetryInterval is the time between two attempts to lock a directory.
const lockRetryInterval = 50 * time.Millisecond

// Wait is [Lock] that waits for a holder that will soon end, for so long.
func Wait(
	ctx context.Context, dir string, brief bool, patience time.Duration, log *slog.Logger,
) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for first := true; ; first = false {
		unlock, err := Lock(dir, brief)
		locked, ok := errors.AsType[*LockedError](err)
		endsSoon := ok && (locked.Brief || locked.PID == 0)
		if !endsSoon || patience == 0 {
			return unlock, err
		}
		if first {
			log.Info("waiting for another process to let go of the data folder", "process", locked.PID)
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
