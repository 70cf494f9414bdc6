package channels

import (
	"testing"
	"time"

	"parley/timetest"
)

// P15: a chat with nothing on its way takes no memory.
func TestP15Traffic(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		tr := traffic{destinations: map[string]*load{}}
		for _, destination := range []string{"a", "a", "b"} {
			tr.add(destination, time.Now())
		}
		tr.retryIn("a", time.Minute)
		if n := tr.stalled(); n != 2 || !tr.isBusy("a") || !tr.isBusy("b") || tr.isBusy("c") {
			t.Errorf("%d stalled, %+v", n, tr.destinations)
		}
		timetest.Sleep(58 * time.Second)
		if n := tr.stalled(); n != 0 {
			t.Errorf("%d stalled when they are about to be tried", n)
		}
		tr.retryIn("a", time.Minute)
		tr.remove("a")
		if n := tr.stalled(); n != 0 {
			t.Errorf("%d stalled behind one that is gone", n)
		}
		tr.remove("a")
		tr.remove("b")
		if len(tr.destinations) != 0 {
			t.Errorf("left: %+v", tr.destinations)
		}
	})
}
