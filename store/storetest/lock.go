package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"parley/store"
)

var locks = []check{
	{"lock: one at a time, each with a larger fence", func(t *testing.T, s store.Store) {
		inside := 0 // the race detector watches it
		last := uint64(0)
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 50 {
					lease, err := s.Lock(t.Context(), "l")
					if err != nil {
						t.Errorf("Lock = %v", err)
						return
					}
					inside++
					if lease.Fence <= last {
						t.Errorf("fence %d after %d", lease.Fence, last)
					}
					last = lease.Fence
					lease.Unlock()
				}
			})
		}
		all.Wait()
		want(t, "times inside", inside, 400)
	}},
	{"lock: it is not lost while it is held", func(t *testing.T, s store.Store) {
		lease := lock(t, s, "l")
		ok(t, store.Locked(t.Context(), s, "another", func(ctx context.Context) error { return ctx.Err() }))
		select {
		case <-lease.Lost:
			t.Error("a lock that is held was lost")
		default:
		}
		lease.Unlock()
	}},
}

// timedLocks are checks that run in a bubble of synctest.
var timedLocks = []check{
	{"lock: unlock twice, waiting ends with its context and with the Store", func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		first := lock(t, s, "a")
		lock(t, s, "b").Unlock()
		_, err := s.Lock(ctx, "a")
		wantErr(t, "Lock of what is locked", err, context.DeadlineExceeded)
		time.AfterFunc(time.Hour, first.Unlock)
		start := time.Now()
		second := lock(t, s, "a")
		want(t, "waited", time.Since(start), time.Hour)
		want(t, "the second fence is larger", second.Fence > first.Fence, true)
		first.Unlock() // for the second time: it is somebody else's
		time.AfterFunc(time.Hour, func() { s.Close() })
		_, err = s.Lock(t.Context(), "a")
		wantErr(t, "Lock while the Store closes", err, store.ErrClosed)
		second.Unlock()
		second.Unlock()
	}},
}

var reopenedLocks = []reopening{
	{"reopen: the fences of locks go on growing", func(t *testing.T, open func() store.Store) {
		last := uint64(0)
		for range 3 {
			s := open()
			for _, name := range []string{"b", "a"} {
				lease := lock(t, s, name)
				if lease.Fence <= last {
					t.Errorf("the fence of %s is %d, after %d", name, lease.Fence, last)
				}
				last = lease.Fence
			}
			ok(t, s.Close()) // it ends the leases
		}
	}},
}

// lock locks name.
func lock(t *testing.T, s store.Store, name string) store.Lease {
	t.Helper()
	lease, err := s.Lock(t.Context(), name)
	ok(t, err)
	return lease
}
