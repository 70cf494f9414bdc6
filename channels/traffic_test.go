package channels

import (
	"testing"
	"testing/synctest"
	"time"
)

// P15: a chat with nothing on its way takes no memory.
func TestP15Traffic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := traffic{lanes: map[string]*load{}}
		for _, lane := range []string{"a", "a", "b"} {
			tr.pulled(lane, time.Now())
		}
		tr.rest("a", time.Minute)
		if n := tr.stalled(); n != 2 || !tr.busy("a") || !tr.busy("b") || tr.busy("c") {
			t.Errorf("%d stalled, %+v", n, tr.lanes)
		}
		time.Sleep(58 * time.Second)
		if n := tr.stalled(); n != 0 {
			t.Errorf("%d stalled when they are about to be tried", n)
		}
		tr.rest("a", time.Minute)
		tr.gone("a")
		if n := tr.stalled(); n != 0 {
			t.Errorf("%d stalled behind one that is gone", n)
		}
		tr.gone("a")
		tr.gone("b")
		if len(tr.lanes) != 0 {
			t.Errorf("left: %+v", tr.lanes)
		}
	})
}
