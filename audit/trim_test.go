package audit_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"parley/audit"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
)

// P28, R-S27: events that are old enough are removed, with a crash anywhere: what is
// left verifies, goes on, and misses nothing unnoticed; the archive has each record.
func TestTrimBefore(t *testing.T) {
	began := time.Date(2024, 3, 30, 12, 0, 0, 0, time.UTC)
	retentiontest.Run(t, retentiontest.Case{
		Open: func() store.Store {
			s := mem.New()
			for day := range 5 {
				e := audit.Event{Time: began.AddDate(0, 0, day), Kind: "tool", What: fmt.Sprint("day ", day)}
				if err := chain(s).Append(t.Context(), e); err != nil {
					t.Fatal(err)
				}
			}
			return s
		},
		Before:   began.AddDate(0, 0, 3),
		Trim:     func(s store.Store, pass store.Trimming) error { return chain(s).TrimBefore(t.Context(), pass) },
		Archived: []string{`"what":"day 0"}`, `"what":"day 1"}`, `"what":"day 2"}`},
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			c := chain(s)
			got := whats(t, c, 9)
			if len(got) < 3 || got[0] != "day 3" || got[1] != "day 4" || got[2] != "the entries up to number 3 were removed: they were older than 2024-04-02" {
				t.Errorf("left are %q", got)
			}
			note(t, c, "later")
			certain(t, c, len(got)+1)
			left := bodies(t, s.Log("audit"))
			broken(t, chain(forged(t, s, left[1:])), "the entries before number 5 are missing")
			changed := append([][]byte{bytes.Replace(left[0], []byte("day 3"), []byte("day 9"), 1)}, left[1:]...)
			broken(t, chain(forged(t, s, changed)), "was changed")
		},
	})
}

// P28: a long chain is trimmed in several steps, and appends can come between.
func TestTrimBeforeInSteps(t *testing.T) {
	c := chain(mem.New())
	for range 1100 {
		note(t, c, "old")
	}
	steps := 0
	pass := store.Trimming{Before: time.Now(), Step: func(int) error {
		steps++
		return c.Append(t.Context(), audit.Event{Time: time.Now(), Kind: "tool", What: "young"})
	}}
	if err := c.TrimBefore(t.Context(), pass); err != nil {
		t.Fatal(err)
	}
	if steps != 3 {
		t.Errorf("%d steps, want 3", steps)
	}
	certain(t, c, 6) // of each step, and the record that tells of it
}
