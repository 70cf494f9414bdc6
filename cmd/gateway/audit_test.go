package main

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"parley/store/mem"
)

// TestAuditNeverBlocks: nobody waits for the audit log, however slow the disk
// is; what was lost is counted, in the log itself (R-S27).
func TestAuditNeverBlocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // which finds out whoever waits for ever
		s := mem.New()
		h := &house{options: options{Log: slog.New(slog.DiscardHandler), Redact: &redactor{}}, store: s}
		h.openAudit()
		for n := range maxUnaudited + 100 { // the disk takes none
			h.audit("tool", "somebody", fmt.Sprint("call ", n))
		}
		h.endAudit()
		n, last := 0, ""
		for r, err := range s.Log("audit").Since(t.Context(), 0) {
			if err != nil {
				t.Fatal(err)
			}
			n, last = n+1, string(r.Body)
		}
		if n != maxUnaudited+1 || !strings.Contains(last, "100 events were not written down") {
			t.Errorf("%d entries, the last %s", n, last)
		}
	})
}
