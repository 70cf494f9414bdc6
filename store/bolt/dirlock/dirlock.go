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
	// Answers describes the gateway on another machine that answers, while the process stands by; "" if it does not.
	Answers string
}

// Error implements error.
func (e *LockedError) Error() string {
	switch {
	case e.PID == 0:
		return fmt.Sprintf("%s is in use by another process", e.Dir)
	case e.Brief:
		return fmt.Sprintf("%s is in use by process %d, a command that soon ends", e.Dir, e.PID)
	case e.Answers != "":
		return fmt.Sprintf("%s is in use by process %d, a gateway that stands by while another one answers: %s",
			e.Dir, e.PID, e.Answers)
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
		locked := parseHolder(string(text))
		locked.Dir = dir
		err = locked
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	text := ""
	if brief {
		text = briefMark
	}
	writeHolder(f, text)
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
	standMark     = "behind"  // is in the lock of a gateway that stands by, before what describes the other one
	maxHolderText = 512       // bytes
)

// writeHolder writes who holds the lock, and how. It is best effort: on a full disk the lock
// works without.
func writeHolder(f *os.File, how string) {
	if err := f.Truncate(0); err != nil {
		return
	}
	_, _ = f.WriteAt([]byte(fmt.Sprintln(os.Getpid(), how)), 0)
}

// StandBy notes in the lock of dir, which this process has, that it stands by while another gateway answers, which
// answers describes; "" says that it does not any more.
func StandBy(dir, answers string) error {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	how := ""
	if answers != "" {
		how = standMark + " " + answers
	}
	writeHolder(f, how)
	return f.Close()
}

func parseHolder(text string) *LockedError {
	pid, how, _ := strings.Cut(strings.TrimSpace(text), " ")
	e := &LockedError{Brief: how == briefMark}
	e.PID, _ = strconv.Atoi(pid)
	if answers, standsBy := strings.CutPrefix(how, standMark+" "); standsBy {
		e.Answers = answers
	}
	return e
}

// Holder returns the process that last locked dir, 0 if none is known. It may have
// released the lock since.
func Holder(dir string) (pid int) {
	text, _ := os.ReadFile(filepath.Join(dir, lockName))
	return parseHolder(string(text)).PID
}

// StandsBy returns what describes the gateway that answers while one that uses dir stands by, and "" if none stands by.
func StandsBy(dir string) (answers string) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxHolderText))
	answers = parseHolder(string(text)).Answers
	if answers == "" {
		return "" // and whoever begins is not disturbed by a look at the lock
	}
	if syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil { // nobody has it
		return ""
	}
	return answers
}
