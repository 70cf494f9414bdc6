package tools

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"sync"
	"time"
)

// grace is how long a tool may take to return after its context has ended.
const grace = 200 * time.Millisecond

// Timeout ends a call after the time that its Hints allow, or when ctx ends
// (C-039). The tool's context ends, which stops a well-behaved tool and its
// processes. A call that does not return within a moment is abandoned, so that the
// session can continue (P14), and stays among the strays until it returns.
func Timeout(s *Strays) Middleware {
	if s == nil {
		s = new(Strays)
	}
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		limit := min(cmp.Or(t.Timeout, DefaultTimeout), MaxTimeout)
		if t.Waits(c) {
			limit = math.MaxInt64
		}
		work, cancel := context.WithTimeout(ctx, limit)
		defer cancel()

		start := time.Now()
		a, answered := s.run(work, t.Run, c)
		took := max(time.Since(start), 1) // 0 would mean that the call was not executed
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

// Strays knows the calls at work. Abandoned calls among them may outlive their
// turn. The zero value is ready to use.
type Strays struct{ running sync.WaitGroup }

type answer struct {
	r   Result
	err error
}

// run calls do, and waits until it returns or shortly after ctx has ended: then
// the call is abandoned.
func (s *Strays) run(
	ctx context.Context,
	do func(context.Context, Call) (Result, error),
	c Call,
) (a answer, answered bool) {
	done := make(chan answer, 1)
	s.running.Add(1)
	go func() { // running.Go would allocate once more
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

// Wait returns when no call is at work, or with ctx's error, since a shutdown
// cannot wait forever. No call may be started any more.
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
