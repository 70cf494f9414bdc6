package memory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"parley/chat"
	"parley/store"
	"parley/timetest"
)

// A losing Store loses each lock that is held.
type losing struct {
	store.Store
	lost chan struct{}
}

func (l *losing) Lock(ctx context.Context, name string) (store.Lease, error) {
	lease, err := l.Store.Lock(ctx, name)
	lease.Lost = l.lost
	return lease, err
}

// Nothing is written to somebody's memory after the lock on it was lost.
func TestLostLock(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		a := newAttic(t)
		a.set("owner", memoryFile, "before\n")
		l := &losing{Store: a.mem, lost: make(chan struct{})}
		a.store = l
		_, err := a.edit(t.Context(), Change{Who: "owner", By: byDream}, func(ctx context.Context, _ *head, texts map[string]string) error {
			close(l.lost)
			synctest.Wait()
			texts[memoryFile] = "after\n"
			return nil
		})
		if !errors.Is(err, store.ErrLockLost) {
			t.Errorf("edit = %v, want ErrLockLost", err)
		}
		a.store = a.mem
		a.want("owner", memoryFile, "before\n")
		if all := a.consistent("owner"); len(all) != 1 {
			t.Errorf("%d changes, want that of before", len(all))
		}
	})
}

// A file is not written either, when there is no text to read for it.
func TestLostLockEmptiesNothing(t *testing.T) {
	a := newAttic(t)
	a.set("owner", memoryFile, "before\n")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.writeText(gone, chat.TheOwner, memoryFile, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("writeText = %v", err)
	}
	a.want("owner", memoryFile, "before\n")
}
