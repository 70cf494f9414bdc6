package store

import (
	"context"
	"sync"
)

// InOrder makes two writes. The second begins as soon as it cannot overtake the first
// any more, so that they may share a commit: if the second is on disk, so is the first.
// It returns the error of either. If the first fails, the second is not made, unless it
// had begun.
func InOrder(ctx context.Context, first, second func(context.Context) error) error {
	var wg sync.WaitGroup
	var errSecond error
	begin := sync.OnceFunc(func() {
		wg.Go(func() { errSecond = second(ctx) })
	})
	if err := first(context.WithValue(ctx, queuedKey{}, begin)); err != nil {
		wg.Wait()
		return err
	}
	begin()
	wg.Wait()
	return errSecond
}

type queuedKey struct{}

// Queued tells the caller of InOrder that no later write can overtake the one with this
// ctx. A Store that queues its writes may call it as soon as that is so.
func Queued(ctx context.Context) {
	if begin, ok := ctx.Value(queuedKey{}).(func()); ok {
		begin()
	}
}
