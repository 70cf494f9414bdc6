package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"early.parley"
)

const (
	tempPrefix = "parley-run-"

	// tempAge is how old folders are that are removed: younger ones may not be locked yet.
	tempAge = time.Minute
)

// A Temp is a temporary folder, locked for as long as this process has it.
type Temp struct {
	Path string
	lock *os.File
}

// MakeTemp makes a temporary folder, which only this user can see.
func MakeTemp() (*Temp, error) {
	path, err := os.MkdirTemp("", tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("make a temporary folder: %w", err)
	}
	lock, err := os.Open(path)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open a temporary folder: %w", err), os.Remove(path))
	}
	t := &Temp{Path: path, lock: lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_SH); err != nil {
		t.Remove()
		return nil, fmt.Errorf("lock a temporary folder: %w", err)
	}
	return t, nil
}

// Remove removes t, with whatever a program has made in it.
func (t *Temp) Remove() {
	early.RemoveAll(t.Path)
	_ = t.lock.Close()
}

// SweepTemp removes the temporary folders of killed processes: those of this user whose names begin with
// prefix, that were not changed for age and that no process has locked.
func SweepTemp(prefix string, age time.Duration) {
	paths, _ := filepath.Glob(filepath.Join(os.TempDir(), prefix+"*")) // the pattern is correct
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.IsDir() || time.Since(info.ModTime()) < age {
			continue
		}
		// Everybody may make one of that name, for root to go through it.
		if owner, known := info.Sys().(*syscall.Stat_t); known && int(owner.Uid) == os.Getuid() {
			RemoveUnlocked(path)
		}
	}
}

// RemoveUnlocked removes the folder path, with all that is in it, unless a process has locked it.
func RemoveUnlocked(path string) {
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != nil {
		return
	}
	early.RemoveAll(path)
}
