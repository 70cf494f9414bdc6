package audit

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"parley/store/mem"
	"parley/timetest"
)

// TestAuditNeverBlocks checks that nobody waits for the audit log, however slow
// the disk is, and that the log itself counts what was lost (R-S27).
func TestAuditNeverBlocks(t *testing.T) {
	timetest.Test(t, func(t *testing.T) { // reports a deadlock
		s := mem.New()
		l := New(s, func(text string) string { return text }, slog.New(slog.DiscardHandler))
		for n := range maxWaiting + 100 { // the disk takes none
			l.Add("tool", "somebody", fmt.Sprint("call ", n))
		}
		l.Flush()
		n, last := 0, ""
		for r, err := range s.Log("audit").Since(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			n, last = n+1, string(r.Body)
		}
		if n != maxWaiting+1 || !strings.Contains(last, "100 events were not written down") {
			t.Errorf("%d entries, the last %s", n, last)
		}
	})
}
