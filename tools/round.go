package tools

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// MaxParallel is how many calls of a group run at the same time.
const MaxParallel = 4

// Groups divides the calls of a round, which are to run one group after
// another: neighbours that may run in parallel form a group, and every other
// call is a group of its own (D-037).
func (k *Kit) Groups(calls []Call) (groups [][]Call) {
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && k.parallel(calls[n]) {
			n++
		}
		n = max(n, 1)
		groups, calls = append(groups, calls[:n]), calls[n:]
	}
	return groups
}

func (k *Kit) parallel(c Call) bool {
	t, ok := k.Tool(c.Name)
	return ok && t.Parallel()
}

// Together runs the calls of a group, at most MaxParallel at a time, and
// returns their results in the same order. Those that had not begun when ctx
// ended do not run: they have CodeCancelled.
func (k *Kit) Together(ctx context.Context, group []Call) []Result {
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
