package tools

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"time"
)

// Middleware returns a Tool that does something before or after t.Run.
type Middleware func(t Tool) Tool

// Chain applies ms so that the first is outermost: Chain(t, a, b) is a(b(t)).
func Chain(t Tool, ms ...Middleware) Tool {
	for _, m := range slices.Backward(ms) {
		t = m(t)
	}
	return t
}

// StandardConfig is what the standard pipeline needs to know. All of it is optional.
type StandardConfig struct {
	Log    *slog.Logger
	Strays *Strays // calls given up on: shared by all Kits, waited for at shutdown
}

// Standard is the pipeline of the house, for one Kit: some stages remember what
// was called before in its turn. Read it downward for the way in and upward for
// the way out:
//
//	Observe   ↓↑ logs the call
//	Cast      ↓  mends names and types of arguments the model got wrong
//	Validate  ↓  checks the arguments against the schema
//	Truncate  ↑  keeps what fits; the rest goes to a file that is named
//	Timeout   ↓  gives up on work that takes too long
//	Recover   ↑  makes a panic the tool's failure, not the house's
//	Run
//
// Approval, answers from memory and judgement of results belong between
// Validate and Truncate, in this order.
func Standard(c StandardConfig) []Middleware {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return []Middleware{Observe(log), Cast(), Validate(), Truncate(), Timeout(c.Strays), Recover(log)}
}

// around makes a Middleware of a function that calls t.Run when it sees fit.
func around(f func(ctx context.Context, t Tool, c Call) (Result, error)) Middleware {
	return func(t Tool) Tool {
		inner := t
		t.Run = func(ctx context.Context, c Call) (Result, error) { return f(ctx, inner, c) }
		return t
	}
}

// Observe tells log what came of each call. Arguments and results may hold
// secrets and stay out of it.
func Observe(log *slog.Logger) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		start := time.Now()
		r, err := t.Run(ctx, c)
		r = outcome(ctx, r, err)
		log.DebugContext(ctx, "tool called", "tool", c.Name, "session", c.Session, "call", c.Key(),
			"took", time.Since(start), "failed", r.Failed, "code", r.Code, "bytes", len(r.Text))
		return r, nil
	})
}

// Recover makes a panic the tool's failure: the model reads what happened,
// the stack goes to log.
func Recover(log *slog.Logger) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (r Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				log.ErrorContext(ctx, "tool panicked", "tool", t.Name, "call", c.Key(), "panic", p, "stack", string(debug.Stack()))
				r, err = Failf(CodeError, "%s broke down: %v. This is a fault of the tool, not of your arguments", t.Name, p), nil
			}
		}()
		return t.Run(ctx, c)
	})
}
