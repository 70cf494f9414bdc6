package tools

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"parley/llm"
	"parley/panics"
	"parley/tools/arguments"
)

// MaxParallel is how many calls of a group run at a time.
const MaxParallel = 4

// Groups divides the calls of a round into groups that run one after another. Adjacent calls
// that may run in parallel form a group, and every other call is a group of its own (D-037). A
// call comes in a later group than its twin, and calls with the hint Last come last.
func (k *Kit) Groups(calls []Call) (groups [][]Call) {
	calls = slices.Clone(calls)
	slices.SortStableFunc(calls, func(a, b Call) int { return k.last(a) - k.last(b) })
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && k.parallel(calls[n]) && !slices.ContainsFunc(calls[:n], calls[n].repeats) {
			n++
		}
		n = max(n, 1)
		groups = append(groups, calls[:n])
		calls = calls[n:]
	}
	return groups
}

func (c Call) repeats(other Call) bool { return c.Twin == other.ID }

func (k *Kit) last(c Call) int {
	if t, _ := k.Tool(c.Name); t.Last {
		return 1
	}
	return 0
}

func (k *Kit) parallel(c Call) bool {
	t, ok := k.Tool(c.Name)
	return ok && t.Parallel() && !k.Asks(c)
}

// Twins returns, by their IDs, the calls of a round that are identical to an earlier one, with
// the ID of that one: the same tool, and arguments with the same meaning. It depends on
// the calls only, so the result is the same after a crash.
func (k *Kit) Twins(calls []llm.ToolCall) map[string]string {
	if len(calls) < 2 {
		return nil
	}
	first, twins := map[string]string{}, map[string]string{}
	for _, c := range calls {
		key, ok := k.meaning(c)
		if !ok {
			continue
		}
		if id, again := first[key]; again {
			twins[c.ID] = id
		} else {
			first[key] = c.ID
		}
	}
	return twins
}

// meaning returns the meaning of c: the tool and its repaired arguments, with sorted keys
//
func (k *Kit) meaning(c llm.ToolCall) (string, bool) {
	t, ok := k.Tool(c.Name)
	if !ok {
		return "", false
	}
	in, problem := t.prepare(c.Args)
	return t.Name + ":" + arguments.JSON(in), problem == ""
}

// An Ended is the result of one call of a group.
type Ended struct {
	Index  int // of the call in its group
	Result Result
	Stack  string // stack of a panic that no stage of the pipeline caught, for the log
}

// Each runs the calls of a group, at most MaxParallel at a time, and sends each result as soon
// as it is there. The channel has room for all of them, and is closed after the last. Calls
// that had not begun when ctx ended do not run: their results have CodeCancelled.
func (k *Kit) Each(ctx context.Context, group []Call) <-chan Ended {
	ended := make(chan Ended, len(group))
	if len(group) == 1 {
		ended <- k.one(ctx, group, 0)
		close(ended)
		return ended
	}
	go func() { // the receiver waits for it, until the channel is closed
		defer close(ended)
		var g errgroup.Group
		g.SetLimit(MaxParallel)
		for i := range group {
			g.Go(func() error {
				ended <- k.one(ctx, group, i)
				return nil
			})
		}
		g.Wait() //nolint:errcheck // none of them returns one
	}()
	return ended
}

// Together runs the calls of a group like Each, and returns their results in the order of the
// calls.
func (k *Kit) Together(ctx context.Context, group []Call) []Result {
	results := make([]Result, len(group))
	for e := range k.Each(ctx, group) {
		results[e.Index] = e.Result
	}
	return results
}

// one runs a call of a group. A panic is a failure of this call, and does not end the process
// (P8).
func (k *Kit) one(ctx context.Context, group []Call, i int) (e Ended) {
	c := group[i]
	e.Index = i
	err := panics.Try(func() error {
		run := k.Call
		if ctx.Err() != nil {
			run = k.notRun
		}
		e.Result = run(ctx, c)
		return nil
	})
	if broke, ok := errors.AsType[*panics.Error](err); ok {
		t := Tool{ToolSpec: llm.ToolSpec{Name: c.Name}}
		e.Result = t.finish(ctx, Failf(CodeError, wordsBrokeDown, c.Name, broke.Value), nil)
		e.Stack = string(broke.Stack)
	}
	return e
}

// wordsBrokeDown tells the model about a panic.
const wordsBrokeDown = "%s crashed: %v. This is a bug in the tool, not a fault in your arguments"

// notRun is the result of a call that had not begun when ctx ended.
func (k *Kit) notRun(ctx context.Context, c Call) Result {
	t, _ := k.Tool(c.Name)
	r := cancelled(ctx)
	r.Text += " before it ran"
	return t.finish(ctx, r, nil)
}
