package bolt_test

import (
	"context"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
)

// Two writes in order share a commit, if the writer has not begun the first.
func TestInOrderSharesCommits(t *testing.T) {
	committed := func() {}
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: t.TempDir(), Committed: func(time.Duration) { committed() }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	commits, busy, queued := 0, make(chan struct{}), make(chan struct{})
	committed = func() { // the writer is busy until both writes wait for it
		if commits++; commits == 1 {
			close(busy)
			select {
			case <-queued:
			case <-time.After(time.Minute): // they do not wait at once: there will be three commits
			}
		}
	}
	put := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := s.Bucket("b").Put(ctx, key, []byte("x"), store.Any)
			return err
		}
	}
	before := make(chan error, 1)
	go func() { before <- put("before")(t.Context()) }()
	<-busy
	second := func(ctx context.Context) error {
		return store.InOrder(ctx, put("b"), func(context.Context) error { close(queued); return nil })
	}
	if err := store.InOrder(t.Context(), put("a"), second); err != nil {
		t.Fatal(err)
	}
	if err := <-before; err != nil || commits != 2 {
		t.Errorf("%d commits, want 2: %v", commits, err)
	}
}
