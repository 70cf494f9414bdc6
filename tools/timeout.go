package tools

import (
	"context"
	"fmt"
	"slices"
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
		limit := t.Timeout
		if limit <= 0 {
			limit = DefaultTimeout
		}
		limit = min(limit, MaxTimeout)
		work, cancel := context.WithTimeout(ctx, limit)
		defer cancel()

		a, answered := s.run(work, t, c)
		late := work.Err() != nil
		whole := a.err == nil && (!a.r.Failed || a.r.Code == CodeTimeout)
		switch {
		case answered && (!late || whole):
			return a.r, a.err
		case ctx.Err() != nil:
			return Result{}, context.Cause(ctx)
		}
		return Failf(CodeTimeout, "Tool execution timeout after %dms", limit.Milliseconds()), nil
	})
}

// Strays are calls whose work goes on although they were given up on. The zero value is ready.
type Strays struct {
	mu   sync.Mutex
	left []<-chan struct{} // each is closed when the work ends
}

type answer struct {
	r   Result
	err error
}

// run runs t until it returns, or for a moment longer than ctx lasts: then
// the call is a stray.
func (s *Strays) run(ctx context.Context, t Tool, c Call) (a answer, answered bool) {
	done := make(chan struct{})
	var got answer
	go func() {
		defer close(done)
		got.r, got.err = t.Run(ctx, c)
	}()
	select {
	case <-done:
		return got, true
	case <-ctx.Done():
	}
	last := time.NewTimer(grace)
	defer last.Stop()
	select {
	case <-done:
		return got, true
	case <-last.C:
		s.add(done)
		return answer{}, false
	}
}

func (s *Strays) add(done <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = append(s.still(), done)
}

// Count says how many there are.
func (s *Strays) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = s.still()
	return len(s.left)
}

func (s *Strays) still() []<-chan struct{} {
	return slices.DeleteFunc(s.left, func(done <-chan struct{}) bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	})
}

// Wait returns when there are none left, or with ctx's error: a shutdown
// waits for them no longer than it can afford to.
func (s *Strays) Wait(ctx context.Context) error {
	for s.Count() > 0 {
		s.mu.Lock()
		done := s.left[0]
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
			return fmt.Errorf("wait for %d tool calls: %w", s.Count(), ctx.Err())
		}
	}
	return nil
}
