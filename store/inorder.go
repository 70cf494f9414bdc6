package store

import (
	"context"
	"sync"
)

// InOrder does two writes, the second as soon as it cannot overtake the first
// any more, so that they may share a commit: if the second is on disk, the first
// is. Its error is that of both. When the first failed, the second is not done,
// unless it had begun.
func InOrder(ctx context.Context, first, second func(context.Context) error) error {
	var wg sync.WaitGroup
	var errSecond error
	begin := sync.OnceFunc(func() {
		wg.Go(func() { errSecond = second(ctx) })
	})
	err := first(context.WithValue(ctx, queuedKey{}, begin))
	if err == nil {
		begin()
	}
	wg.Wait()
	if err != nil {
		return err
	}
	return errSecond
}

type queuedKey struct{}

// Queued tells who writes with ctx that no later write can overtake this one. A
// Store whose writes wait for their turn may call it as soon as that is so.
func Queued(ctx context.Context) {
	if begin, ok := ctx.Value(queuedKey{}).(func()); ok {
		begin()
	}
}
