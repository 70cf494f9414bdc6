package bolt_test

import (
	"context"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
)

// Two writes in order may share a commit, if the writer has not begun the first.
func TestInOrderSharesCommits(t *testing.T) {
	commits := 0
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: t.TempDir(), Committed: func(time.Duration) { commits++ }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	b := s.Bucket("b")
	put := func(key string) func(context.Context) error {
		return func(ctx context.Context) error {
			_, err := b.Put(ctx, key, []byte("x"), store.Any)
			return err
		}
	}
	const pairs = 200
	for range pairs {
		if err := store.InOrder(t.Context(), put("a"), put("b")); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d commits", commits); commits > pairs*19/10 {
		t.Errorf("%d commits for %d pairs", commits, pairs)
	}
}
