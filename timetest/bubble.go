package timetest

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// Test runs f in a bubble of testing/synctest.
//
// Under the race detector this process has one processor meanwhile: all timers of a bubble share one context of the
// detector, and two of them that run side by side crash it (golang/go#78156).
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raceEnabled {
		bubbles.enter()
		defer bubbles.leave()
	}
	synctest.Test(t, f)
}

// TestWithOthers is Test for packages in which other tests run side by side with f and need all processors, such as
// those that drive a browser. The detector may crash there, which is rare where few timers are due at once.
func TestWithOthers(t *testing.T, f func(*testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// bubbles are those of this process that run, under the race detector.
var bubbles bubbleCount

type bubbleCount struct {
	mu         sync.Mutex
	n          int
	processors int // when there were none
}

func (b *bubbleCount) enter() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.n == 0 {
		b.processors = runtime.GOMAXPROCS(1)
	}
	b.n++
}

func (b *bubbleCount) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n--
	if b.n == 0 {
		runtime.GOMAXPROCS(b.processors)
	}
}
