package tools

import (
	"context"
	"log/slog"
	"time"
)

// Observe tells seen and log what came of each call. Arguments and results
// may hold secrets and stay out of the log. seen may be nil.
func Observe(log *slog.Logger, seen func(Call, Result, time.Duration)) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		start := time.Now()
		r, err := t.Run(ctx, c)
		r, took := outcome(ctx, r, err), time.Since(start)
		log.DebugContext(ctx, "tool called", "tool", c.Name, "session", c.Session, "call", c.Key(),
			"took", took, "failed", r.Failed, "code", r.Code, "bytes", len(r.Text))
		if seen != nil {
			seen(c, r, took)
		}
		return r, nil
	})
}
