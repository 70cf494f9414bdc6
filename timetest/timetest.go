// Package timetest passes time in tests that run in a bubble of testing/synctest, and
// measures what others compute.
package timetest

import (
	"testing/synctest"
	"time"
)

// Sleep passes d of a bubble's time, and waits until whatever is then due in the
// bubble has been done.
//
// The goroutine of a test calls it instead of time.Sleep, which promises neither:
// other goroutines that are due at the same moment run before or after the test goes
// on, as it happens, and nothing that they did before happened before what the test
// reads next, so that the race detector reports a race now and then. Only
// synctest.Wait promises both. Two goroutines of a bubble may not wait at the same
// time, so fakes and whatever else runs beside the test call time.Sleep.
func Sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}
