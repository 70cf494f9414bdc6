//go:build unix

package timetest

import (
	"syscall"
	"testing"
	"time"
)

// CPUTime is how long this process has computed. Unlike the time of day it does
// not go faster when the machine has other work.
func CPUTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
