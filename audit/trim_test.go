package audit_test

import (
	"bytes"
	"fmt"
	"strings"
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

// P28, R-S27: events beyond the number that is kept are archived, too, with a crash anywhere.
func TestTrimTo(t *testing.T) {
	const events, surplus = 25, 4
	var archived []string
	for n := range surplus {
		archived = append(archived, fmt.Sprintf(`"what":"%d"}`, n+1))
	}
	retentiontest.Run(t, retentiontest.Case{
		Open: func() store.Store {
			s := mem.New()
			for n := range events {
				note(t, chain(s), fmt.Sprint(n+1))
			}
			return s
		},
		Trim: func(s store.Store, pass store.Trimming) error {
			keep := -surplus // and what tells of those that are removed
			for _, err := range s.Log("audit").Since(t.Context(), 0) {
				if err != nil {
					return err
				}
				keep++
			}
			if keep < events-surplus {
				return nil
			}
			return chain(s).TrimTo(t.Context(), pass, keep)
		},
		Archived: archived,
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			c := chain(s)
			got := whats(t, c, events)
			if len(got) < events-surplus+1 || got[0] != "5" || !strings.HasPrefix(got[events-surplus], "the entries up to number 4 were removed: ") {
				t.Errorf("left are %q", got)
			}
			certain(t, c, len(got))
		},
	})
}

// P28: many events beyond the limit go in several steps, and appends can come between.
func TestTrimToInSteps(t *testing.T) {
	s := mem.New()
	c := chain(s)
	for range 1300 {
		note(t, c, "old")
	}
	steps, archived := 0, 0
	pass := store.Trimming{
		Step: func(int) error {
			steps++
			return c.Append(t.Context(), audit.Event{Time: time.Now(), Kind: "tool", What: "young"})
		},
		Archive: func(_ string, lines ...[]byte) error {
			archived += len(lines)
			return nil
		},
	}
	if err := c.TrimTo(t.Context(), pass, 100); err != nil {
		t.Fatal(err)
	}
	if steps != 3 || archived != 1200 {
		t.Errorf("%d steps, %d archived; want 3 and 1200", steps, archived)
	}
	certain(t, c, 100+6) // of each step, and the record that tells of it
	if err := c.TrimTo(t.Context(), pass, 100); err != nil || archived != 1200 {
		t.Errorf("%d archived, less than a tenth beyond what is kept; %v", archived, err)
	}
}
