package timetest_test

import (
	"testing"
	"time"

	"parley/timetest"
)

// TestSleep: what was due by the end of the sleep is done, and can be read. Without
// Wait the race detector reports both reads.
func TestSleep(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		early, due := 0, 0
		go func() {
			early++
			time.Sleep(time.Second)
			due++
		}()
		timetest.Sleep(time.Second)
		if early != 1 || due != 1 {
			t.Errorf("%d was done early, %d in time", early, due)
		}
	})
}
