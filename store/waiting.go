package store

import (
	"context"
	"errors"
	"iter"
	"time"
)

// pullTimeout is how long it may take to pull work that is there.
const pullTimeout = time.Second

// Waiting yields the work in q until there is none. Nobody else may pull from q. The
// caller ends each item with Done. Damaged work counts in Len but is never pulled, so
// Waiting does not wait for it.
func Waiting(ctx context.Context, q Queue) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for {
			n, err := q.Len(ctx)
			if err != nil {
				yield(Item{}, err)
				return
			}
			if n == 0 {
				return
			}
			limited, cancel := context.WithTimeout(ctx, pullTimeout)
			item, err := q.Pull(limited)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
				return
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}
