package store

import (
	"context"
	"errors"
	"iter"
	"time"
)

// pullTime is how long work that waits may take to be pulled.
const pullTime = time.Second

// Waiting yields the work that waits in q, where nobody else is at work, until
// there is none; the caller ends each with Done. What is damaged counts and is
// never handed out, so it is not waited for.
func Waiting(ctx context.Context, q Queue) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for {
			n, err := q.Len(ctx)
			if err == nil && n == 0 {
				return
			}
			var item Item
			if err == nil {
				limited, cancel := context.WithTimeout(ctx, pullTime)
				item, err = q.Pull(limited)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
					return
				}
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}
