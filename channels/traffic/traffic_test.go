package traffic

import (
	"testing"
	"time"

	"parley/timetest"
)

// P15: a chat with nothing on its way takes no memory.
func TestP15Traffic(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		tr := New()
		for _, destination := range []string{"a", "a", "b"} {
			tr.Add(destination, time.Now())
		}
		tr.RetryIn("a", time.Minute)
		if n := tr.Stalled(); n != 2 || !tr.IsBusy("a") || !tr.IsBusy("b") || tr.IsBusy("c") {
			t.Errorf("%d stalled, %+v", n, tr.destinations)
		}
		timetest.Sleep(58 * time.Second)
		if n := tr.Stalled(); n != 0 {
			t.Errorf("%d stalled when they are about to be tried", n)
		}
		tr.RetryIn("a", time.Minute)
		tr.Remove("a")
		if n := tr.Stalled(); n != 0 {
			t.Errorf("%d stalled behind one that is gone", n)
		}
		tr.Remove("a")
		tr.Remove("b")
		if len(tr.destinations) != 0 {
			t.Errorf("left: %+v", tr.destinations)
		}
	})
}
