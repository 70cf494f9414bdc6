package host

import (
	"errors"
	"testing"

	"parley/store"
)

// TestReserve checks how much of a disk is kept free.
func TestReserve(t *testing.T) {
	for _, c := range []struct {
		total, free uint64
		full        bool
	}{
		{10 << 30, 1 << 30, false},
		{10 << 30, 101 << 20, true},
		{1 << 40, 1<<30 - 1, true},
		{1 << 40, 1 << 30, false},
		{24 << 20, 7 << 20, false},
		{24 << 20, 5 << 20, true},
		{0, 0, false},
	} {
		measure := func(string) (uint64, uint64, bool) { return c.free, c.total, true }
		s := Space{Folders: []string{"data"}, Measure: measure}
		if err := s.Check(); errors.Is(err, store.ErrFull) != c.full {
			t.Errorf("%d of %d MB are free: %v", c.free>>20, c.total>>20, err)
		}
	}
}

// TestSpaceForCopy checks that a copy of the store must leave the reserve free,
// which is kept for messages that were accepted (P19).
func TestSpaceForCopy(t *testing.T) {
	const total = 100 << 30
	free := reserve(total) + 1
	s := Space{Measure: func(string) (uint64, uint64, bool) { return free, total, true }}
	if err := s.CheckFor("data", 1<<20); !errors.Is(err, store.ErrFull) {
		t.Errorf("without room: %v", err)
	}
	free += 1 << 20
	if err := s.CheckFor("data", 1<<20); err != nil {
		t.Errorf("with room: %v", err)
	}
}
