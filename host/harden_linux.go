package host

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Harden keeps other processes of the same user from reading the memory and the
// original environment of this process (R-S17). Go has its own copy of the
// environment.
func Harden() error {
	err := wipeEnviron()
	if e := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); e != nil {
		return fmt.Errorf("make process undumpable: %w", e)
	}
	return err
}

// Field numbers of /proc/self/stat, as proc_pid_stat(5) counts them.
const (
	firstAfterName = 3 // the fields before it are the process id and the name
	fieldEnvStart  = 50
	fieldEnvEnd    = 51
)

// wipeEnviron overwrites what /proc/self/environ shows. Unsetting a variable does
// not change that file, and children of root can read it even after Harden.
func wipeEnviron() error {
	start, end, err := environAddress()
	if err != nil {
		return fmt.Errorf("wipe environment: %w", err)
	}
	memory, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("wipe environment: %w", err)
	}
	defer memory.Close()
	if _, err := memory.WriteAt(make([]byte, end-start), start); err != nil {
		return fmt.Errorf("wipe environment: %w", err)
	}
	return nil
}

// environAddress returns where the original environment is in this process's memory.
func environAddress() (start, end int64, err error) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, 0, err
	}
	afterName := stat[strings.LastIndexByte(string(stat), ')')+1:]
	fields := strings.Fields(string(afterName))
	if len(fields) <= fieldEnvEnd-firstAfterName {
		return 0, 0, fmt.Errorf("/proc/self/stat has %d fields", len(fields))
	}
	start, _ = strconv.ParseInt(fields[fieldEnvStart-firstAfterName], 10, 64)
	end, _ = strconv.ParseInt(fields[fieldEnvEnd-firstAfterName], 10, 64)
	if start <= 0 || end < start {
		return 0, 0, errors.New("its address is unknown")
	}
	return start, end, nil
}

// FreeSpace returns how many bytes this user may still write on the disk of dir
// and how many the disk has. known is false if the system does not tell.
func FreeSpace(dir string) (free, total uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), true
}
