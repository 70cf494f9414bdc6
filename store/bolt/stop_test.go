package bolt

import (
	"errors"
	"strings"
	"testing"
	"time"

	"parley/store"
)

// If it is unknown what is on disk, the Store says so once, goes on reading, and does not
// write any more.
func TestStopsWriting(t *testing.T) {
	var told []error
	var took []time.Duration
	s, err := Open(t.Context(), Config{
		Dir: t.TempDir(), Stopped: func(err error) { told = append(told, err) }, Committed: func(d time.Duration) { took = append(took, d) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := s.Bucket("b")
	if _, err := b.Put(t.Context(), "k", []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	fault := func(*txn) error { panic("a fault in the mapped file") }
	if err := s.write(t.Context(), fault, nil); !errors.Is(err, store.ErrDamaged) { // P21: it affects only itself
		t.Errorf("a fault is %v", err)
	}
	if _, err := b.Put(t.Context(), "k", []byte("v"), store.Any); err != nil {
		t.Errorf("put after a fault elsewhere: %v", err)
	}
	err = s.submit(t.Context(), &op{do: fault, vital: true})
	if err == nil {
		t.Fatal("a fault is no error")
	}
	if _, err := b.Put(t.Context(), "k", []byte("w"), store.Any); err == nil || !strings.Contains(err.Error(), "stopped writing") {
		t.Errorf("put: %v", err)
	}
	if v, _, err := b.Get(t.Context(), "k"); err != nil || string(v) != "v" {
		t.Errorf("get: %q, %v", v, err)
	}
	if len(told) != 1 || len(took) != 2 || took[0] <= 0 {
		t.Errorf("told %v, and that commits took %v", told, took)
	}
}
