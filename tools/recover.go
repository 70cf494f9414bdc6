package tools

import (
	"context"
	"log/slog"
	"runtime/debug"
)

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
