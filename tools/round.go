package tools

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// MaxParallel is how many calls of a round run at the same time.
const MaxParallel = 4

// Round runs the calls of one round and returns their results in the same
// order. Neighbours that may run in parallel form a group; every other call is
// a group of its own, and groups run one after another (D-037).
//
// started is called with each group before it runs, finished with the group
// and its results after it ran, both from the caller's goroutine; either may
// be nil. An error of theirs, or the end of ctx, ends the round: the error is
// returned beside the results, those of calls that ran being kept and the
// others having CodeCancelled. A group that ctx interrupts is finished all
// the same; one that was not started never is.
func (k *Kit) Round(ctx context.Context, calls []Call, started func([]Call) error, finished func([]Call, []Result) error) ([]Result, error) {
	var results []Result
	err := ctx.Err()
	for err == nil && len(results) < len(calls) {
		group := k.next(calls[len(results):])
		if started != nil {
			if err = started(group); err != nil {
				break
			}
		}
		rs := k.together(ctx, group)
		results = append(results, rs...)
		if finished != nil {
			err = finished(group, rs)
		}
		if err == nil {
			err = ctx.Err()
		}
	}
	for len(results) < len(calls) {
		results = append(results, notRun(ctx))
	}
	return results, err
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

// notRun is the result of a call that the end of its round left out.
func notRun(ctx context.Context) Result {
	if ctx.Err() == nil {
		return Failf(CodeCancelled, prefix+"not run: the round was broken off")
	}
	r := cancelled(ctx)
	r.Text = prefix + r.Text + " before it ran"
	return r
}
