package bolt_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/refusal"
	"parley/store/storetest"
)

// P21: changes that cannot be moved to a page that is lost stay in the log. All others are moved, and the segments that had them are dropped.
func TestStuckChanges(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s := open(t, dir)
	for i := range 120 {
		if _, err := s.Log("l").Append(ctx, store.Any, fmt.Appendf(nil, "record %d. %s", i+1, strings.Repeat("x", 200))); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	zeroPageOf(t, dir, "record 60.")
	lines := logLine("stay in its log")
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Stopped: func(err error) { t.Error(err) }, Log: lines.logger()})
	if err != nil {
		t.Fatal(err)
	}
	trimmed := uint64(0)
	for stuck := false; !stuck && trimmed < 59; { // what is left of a page is joined with the lost one
		trimmed++
		if err := errors.Join(s.Log("l").Trim(ctx, trimmed), s.Flush(ctx)); err != nil {
			t.Fatalf("trim to %d: %v", trimmed, err)
		}
		select {
		case <-lines.seen:
			stuck = true
		default:
		}
	}
	for i := range 3 {
		if _, err := s.Bucket("b").Put(ctx, fmt.Sprint(i), []byte("v"), 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for r, err := range s.Log("l").Since(ctx, 0) {
		if r.Seq <= trimmed {
			t.Errorf("record %d was trimmed: %v", r.Seq, err)
		}
	}
	if data, _ := os.ReadFile(file(dir)); !strings.Contains(string(data), "=2") {
		t.Error("the other changes were not moved")
	}
	segments, err := os.ReadDir(bolt.LogOf(file(dir)))
	if err != nil || len(segments) != 2 {
		t.Errorf("segments %v, %v; want one and a spare", segments, err)
	}
	s.Close()
	if _, err := os.Stat(bolt.LogOf(file(dir))); err != nil {
		t.Errorf("the log is gone with what is in it alone: %v", err)
	}
	var damaged *refusal.DamagedError // as any damaged store after an unclean end
	if _, err := bolt.Open(ctx, bolt.Config{Dir: dir}); !errors.As(err, &damaged) {
		t.Errorf("Open = %v", err)
	}
}

// P21: a change that belongs into a page that is lost is refused, and not acknowledged.
func TestPutIntoLostPage(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s := open(t, dir)
	b := s.Bucket("b")
	for i := range 120 {
		if _, err := b.Put(ctx, fmt.Sprintf("key %03d", i), fmt.Appendf(nil, "value %d. %s", i, strings.Repeat("x", 200)), 0); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	zeroPageOf(t, dir, "value 60.")
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Stopped: func(err error) { t.Error(err) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b = s.Bucket("b")
	if _, err := b.Put(ctx, "key 060", nil, store.Any); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("put into the lost page = %v", err)
	}
	if err := b.Delete(ctx, "key 060"); !errors.Is(err, store.ErrDamaged) {
		t.Errorf("delete from the lost page = %v", err)
	}
	if _, err := b.Put(ctx, "key 000", nil, store.Any); err != nil {
		t.Errorf("put elsewhere = %v", err)
	}
	if err := s.Flush(ctx); err != nil {
		t.Error(err)
	}
}
