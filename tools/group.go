package tools

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"parley/panics"
)

// A Group runs parts of a call side by side. A panic in one of them is one of
// Wait, in the goroutine of the call, where the pipeline makes it the call's
// failure: in a goroutine of its own it would end the process (P8).
type Group struct {
	parts errgroup.Group
}

// SetLimit lets at most n parts run at a time. It is called before Go.
func (g *Group) SetLimit(n int) { g.parts.SetLimit(n) }

// Go runs part, once there is room for it.
func (g *Group) Go(part func() error) {
	g.parts.Go(func() error { return panics.Try(part) })
}

// Wait returns when all parts have ended, with the first error of one.
func (g *Group) Wait() error {
	err := g.parts.Wait()
	if broke, ok := errors.AsType[*panics.Error](err); ok {
		panic(broke)
	}
	return err
}
