package tools

import (
	"errors"

	"golang.org/x/sync/errgroup"

	"parley/panics"
)

// A Group runs parts of a call in parallel. Wait re-panics with a panic of a part,
// in the goroutine of the call, where the pipeline turns it into a failure of the
// call: in a goroutine of its own it would end the process (P8).
type Group struct {
	parts errgroup.Group
}

// SetLimit limits how many parts run at a time. It must be called before Go.
func (g *Group) SetLimit(n int) { g.parts.SetLimit(n) }

// Go runs part, as soon as the limit allows it.
func (g *Group) Go(part func() error) {
	g.parts.Go(func() error { return panics.Try(part) })
}

// Wait returns when all parts have ended, with the first error.
func (g *Group) Wait() error {
	err := g.parts.Wait()
	if broke, ok := errors.AsType[*panics.Error](err); ok {
		panic(broke)
	}
	return err
}
