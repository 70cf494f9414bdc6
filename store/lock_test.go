package store_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// leased is a Store whose locks can be lost.
type leased struct {
	store.Store
	lost     chan struct{}
	unlocked int
}

func (l *leased) Lock(context.Context, string) (store.Lease, error) {
	return store.Lease{Fence: 1, Lost: l.lost, Unlock: func() { l.unlocked++ }}, nil
}

// When a lock is lost, what is done under it can write nothing more, and says why.
func TestLockedEndsWithItsLease(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := &leased{Store: mem.New(), lost: make(chan struct{})}
		b := s.Bucket("b")
		err := store.Locked(t.Context(), s, "l", func(ctx context.Context) error {
			if _, err := b.Put(ctx, "before", nil, 0); err != nil {
				t.Error(err)
			}
			close(s.lost)
			<-ctx.Done()
			_, err := b.Put(ctx, "after", nil, 0)
			return err
		})
		if !errors.Is(err, store.ErrLockLost) || !errors.Is(err, context.Canceled) {
			t.Errorf("Locked = %v, want ErrLockLost", err)
		}
		if _, _, err := b.Get(t.Context(), "after"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("written after the lock was lost: %v", err)
		}
		if s.unlocked != 1 {
			t.Errorf("unlocked %d times, want once", s.unlocked)
		}
	})
}

// What was done before a lock is lost is done, and errors of the work are its own.
func TestLockedReturnsTheErrorOfTheWork(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := &leased{Store: mem.New(), lost: make(chan struct{})}
		wrong := errors.New("wrong")
		if err := store.Locked(t.Context(), s, "l", func(context.Context) error { return wrong }); !errors.Is(err, wrong) {
			t.Errorf("Locked = %v, want %v", err, wrong)
		}
		gone, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		err := store.Locked(gone, s, "l", func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrLockLost) {
			t.Errorf("Locked = %v, want the error of its context", err)
		}
		err = store.Locked(t.Context(), s, "l", func(ctx context.Context) error {
			close(s.lost)
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Errorf("Locked = %v although all was done", err)
		}
	})
}

// failing is a bucket that takes nothing, because of err.
type failing struct {
	store.Bucket
	err error
}

func (f *failing) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if f.err != nil {
		return 0, f.err
	}
	return f.Bucket.Put(ctx, key, val, rev)
}

// P19: a lock that cannot be had leaves nothing locked. P21: damage locks nobody out, and
// fences grow all the same.
func TestLocksOfAFailingBucket(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := mem.New().Bucket("b")
		sound, err := store.NewLocks(b).Lock(t.Context(), "l")
		if err != nil {
			t.Fatal(err)
		}
		f := &failing{Bucket: b, err: store.ErrFull}
		locks := store.NewLocks(f)
		if _, err := locks.Lock(t.Context(), "l"); !errors.Is(err, store.ErrFull) {
			t.Errorf("Lock = %v, want ErrFull", err)
		}
		f.err = store.ErrDamaged
		lease, err := locks.Lock(t.Context(), "l")
		if err != nil {
			t.Fatal(err)
		}
		if lease.Fence <= sound.Fence {
			t.Errorf("fence %d after %d", lease.Fence, sound.Fence)
		}
	})
}
