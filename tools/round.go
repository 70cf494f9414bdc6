package tools

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// MaxParallel is how many calls of a round run at the same time.
const MaxParallel = 4

// Round runs the calls of one round. Neighbours that may run in parallel form
// a group; every other call is a group of its own, and groups run one after
// another (D-037).
//
// started is called with each group before it runs, finished with the group
// and its results after it ran, both from the caller's goroutine. An error of
// theirs, or the end of ctx, ends the round and is returned. A group that ctx
// interrupts is finished all the same, the calls that were not begun by then
// with CodeCancelled; one that was not started never is.
func (k *Kit) Round(ctx context.Context, calls []Call, started func([]Call) error, finished func([]Call, []Result) error) error {
	err := ctx.Err()
	for err == nil && len(calls) > 0 {
		group := k.next(calls)
		calls = calls[len(group):]
		if err = started(group); err != nil {
			break
		}
		if err = finished(group, k.together(ctx, group)); err == nil {
			err = ctx.Err()
		}
	}
	return err
}

// next returns the first group of calls.
func (k *Kit) next(calls []Call) []Call {
	n := 0
	for n < len(calls) && k.parallel(calls[n]) {
		n++
	}
	return calls[:max(n, 1)]
}

func (k *Kit) parallel(c Call) bool {
	t, ok := k.Tool(c.Name)
	return ok && t.Parallel()
}

// together runs the calls of a group, at most MaxParallel at a time.
func (k *Kit) together(ctx context.Context, group []Call) []Result {
	results := make([]Result, len(group))
	var g errgroup.Group
	g.SetLimit(MaxParallel)
	for i, c := range group {
		g.Go(func() error {
			if ctx.Err() != nil {
				results[i] = notRun(ctx)
			} else {
				results[i] = k.Call(ctx, c)
			}
			return nil
		})
	}
	g.Wait() //nolint:errcheck // none of them returns one
	return results
}

// notRun is the result of a call that was not begun when ctx ended.
func notRun(ctx context.Context) Result {
	r := cancelled(ctx)
	r.Text = prefix + r.Text + " before it ran"
	return r
}
