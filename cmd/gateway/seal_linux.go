package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// seal keeps other processes of the same user from reading the memory and the
// first environment of this one (R-S17). Go has its own copy of the environment.
func seal() error {
	err := wipeEnviron()
	if e := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); e != nil {
		return fmt.Errorf("make process undumpable: %w", e)
	}
	return err
}

// wipeEnviron overwrites what /proc/self/environ shows: unsetting a variable
// does not change it, and children of root can read it whatever seal does.
func wipeEnviron() error {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return fmt.Errorf("wipe environment: %w", err)
	}
	const afterName, envStart, envEnd = 3, 50, 51 // as proc_pid_stat(5) counts
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(f) <= envEnd-afterName {
		return fmt.Errorf("wipe environment: /proc/self/stat has %d fields", len(f))
	}
	start, _ := strconv.ParseInt(f[envStart-afterName], 10, 64)
	end, _ := strconv.ParseInt(f[envEnd-afterName], 10, 64)
	if start <= 0 || end < start {
		return fmt.Errorf("wipe environment: it is not known where it is")
	}
	mem, err := os.OpenFile("/proc/self/mem", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("wipe environment: %w", err)
	}
	defer mem.Close()
	if _, err := mem.WriteAt(make([]byte, end-start), start); err != nil {
		return fmt.Errorf("wipe environment: %w", err)
	}
	return nil
}

// freeSpace returns how many bytes are free for us on the disk of dir, how many
// it has, and whether that is known.
func freeSpace(dir string) (free, total uint64, known bool) {
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), true
}
