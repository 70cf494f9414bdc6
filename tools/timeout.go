package tools

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// grace is how long a tool may take to end its work when its time is up.
const grace = 200 * time.Millisecond

// Timeout ends a call whose time is up, as its Hints say, or whose ctx ended
// (C-039). The tool's context ends, which stops the work of a good tool and
// its processes; one that does not return within a moment is given up on, so
// that its session goes on (P14), and is among the strays until it does return.
func Timeout(s *Strays) Middleware {
	if s == nil {
		s = new(Strays)
	}
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		limit := min(cmp.Or(t.Timeout, DefaultTimeout), MaxTimeout)
		if t.Waits() {
			limit = math.MaxInt64
		}
		work, cancel := context.WithTimeout(ctx, limit)
		defer cancel()

		start := time.Now()
		a, answered := s.run(work, t.Run, c)
		took := max(time.Since(start), 1) // 0 is for what was not executed
		late := work.Err() != nil
		whole := a.err == nil && (!a.r.Failed || a.r.Code == CodeTimeout)
		switch {
		case answered && (!late || whole):
		case ctx.Err() != nil:
			a = answer{err: context.Cause(ctx)}
		default:
			a = answer{r: Failf(CodeTimeout, "Tool execution timeout after %dms", limit.Milliseconds())}
		}
		a.r.Took = took
		return a.r, a.err
	})
}

// Strays knows the calls at work, of which those that were given up on may
// outlive their turn. The zero value is ready.
type Strays struct{ running sync.WaitGroup }

type answer struct {
	r   Result
	err error
}

// run calls do until it returns, or for a moment longer than ctx lasts: then
// the call is a stray.
func (s *Strays) run(
	ctx context.Context,
	do func(context.Context, Call) (Result, error),
	c Call,
) (a answer, answered bool) {
	done := make(chan answer, 1)
	s.running.Add(1)
	go func() { // with Go there would be an allocation more
		defer s.running.Done()
		r, err := do(ctx, c)
		done <- answer{r, err}
	}()
	select {
	case a = <-done:
		return a, true
	case <-ctx.Done():
	}
	select {
	case a = <-done:
		return a, true
	case <-time.After(grace):
		return answer{}, false
	}
}

// Wait returns when none is at work, or with ctx's error: a shutdown waits no
// longer than it can afford to. Nothing may be called any more by then.
func (s *Strays) Wait(ctx context.Context) error {
	none := make(chan struct{})
	go func() {
		defer close(none)
		s.running.Wait()
	}()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("wait for tools: %w", ctx.Err())
	}
}
