package bolt

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"parley/store"
)

// All work of a queue is done, and more is pushed in the same commit: then its pages
// are empty, with which bbolt's Cursor.Last cannot deal.
func TestDoneAndPushTogether(t *testing.T) {
	s, err := Open(t.Context(), Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	q := s.Queue("q")
	var items []store.Item
	for i := range 300 {
		if err := q.Push(t.Context(), fmt.Sprint(i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		item, err := q.Pull(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		items = append(items, item)
	}

	results := make(chan error)
	do := func(f func(context.Context) error) { go func() { results <- f(context.WithoutCancel(t.Context())) }() }
	busy, release := make(chan struct{}), make(chan struct{})
	do(func(ctx context.Context) error {
		return s.write(ctx, func(*txn) error { close(busy); <-release; return errUnchanged }, nil)
	})
	<-busy // what comes now shares the next commit
	for i, item := range items {
		do(item.Done)
		for len(s.writer.ops) <= i {
			runtime.Gosched()
		}
	}
	do(func(ctx context.Context) error { return q.Push(ctx, "more", nil) })
	for len(s.writer.ops) <= len(items) {
		runtime.Gosched()
	}
	close(release)
	for range len(items) + 2 {
		select {
		case err := <-results:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("the writer does not come back") // nor would Close
		}
	}
	if item, err := q.Pull(t.Context()); err != nil || item.ID != "more" {
		t.Errorf("pulled %q, %v", item.ID, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
