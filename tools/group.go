package tools

import (
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

// A Group runs parts of a call side by side. A panic in one of them is one of
// Wait, in the goroutine of the call, where the pipeline makes it the call's
// failure: in a goroutine of its own it would end the process (P8).
type Group struct {
	parts errgroup.Group

	mu    sync.Mutex
	panic *partPanic // the first
}

// A partPanic is a panic of a part of a call.
type partPanic struct {
	value any
	stack []byte
}

func (p *partPanic) String() string { return fmt.Sprint(p.value) }

// stackOf returns where the panic p came from, as seen from its recovery.
func stackOf(p any) string {
	if part, ok := p.(*partPanic); ok {
		return string(part.stack)
	}
	return string(debug.Stack())
}

// SetLimit lets at most n parts run at a time. It is called before Go.
func (g *Group) SetLimit(n int) { g.parts.SetLimit(n) }

// Go runs part, once there is room for it.
func (g *Group) Go(part func() error) {
	g.parts.Go(func() error {
		defer func() {
			if p := recover(); p != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				if g.panic == nil {
					g.panic = &partPanic{p, debug.Stack()}
				}
			}
		}()
		return part()
	})
}

// Wait returns when all parts have ended, with the first error of one.
func (g *Group) Wait() error {
	err := g.parts.Wait()
	if g.panic != nil {
		panic(g.panic)
	}
	return err
}
