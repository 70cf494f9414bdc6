package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/panics"
	"parley/texts"
)

// Middleware wraps t.Run with something that happens before or after it.
type Middleware func(t Tool) Tool

// Chain applies ms so that the first is outermost: Chain(t, a, b) is a(b(t)).
func Chain(t Tool, ms ...Middleware) Tool {
	for _, m := range slices.Backward(ms) {
		t = m(t)
	}
	return t
}

// StandardConfig configures the standard pipeline. Everything is optional.
type StandardConfig struct {
	Log    *slog.Logger
	Texts  *texts.Tools // messages for people; nil is English
	Strays *Strays      // calls at work: shared by all Kits, and waited for at shutdown
	Stats  *Stats       // results of calls: shared by all Kits

	Approve  Asker         // nil: calls that need approval are denied
	Patience time.Duration // how long people may take to approve; 0 is DefaultPatience
	Cache    *Cache        // shared by all Kits; nil: results are remembered for one turn only
}

// Standard returns the standard pipeline for one Kit. Some of its stages remember the
// earlier calls of the turn. A call passes them downward, and its result upward:
//
//	Observe   ↓↑ logs, counts and times the call
//	Strikes    ↑ ends a turn that makes no progress
//	Recover    ↑ turns a panic into a failure of the call
//	Approve   ↓  asks a person for approval, where needed
//	Dedupe    ↓↑ answers repeated calls from memory
//	Assess     ↑ records whether the result is useful
//	Truncate   ↑ cuts a long result, and saves the rest in a file
//	Shape      ↑ makes text from data, and a failure from data that says it is one
//	Timeout   ↓  ends calls that take too long
//	Recover    ↑ again, because Run has a goroutine of its own
//	Run
func Standard(c StandardConfig) []Middleware {
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	say := c.Texts
	if say == nil {
		say = &texts.English().Tools
	}
	return []Middleware{
		Observe(log, cmp.Or(c.Stats, new(Stats))), Strikes(say.Struck), Recover(log),
		Approve(c.Approve, c.Patience, say.Approval), Dedupe(c.Cache),
		Assess(), Truncate(), Shape(), Timeout(c.Strays), Recover(log),
	}
}

// around makes a Middleware from a function that calls t.Run itself, if and when
// it wants to.
func around(f func(ctx context.Context, t Tool, c Call) (Result, error)) Middleware {
	return func(t Tool) Tool {
		inner := t
		t.Run = func(ctx context.Context, c Call) (Result, error) { return f(ctx, inner, c) }
		return t
	}
}

// Observe records when each call began, how long it took, and whether the result
// may hold untrusted content. It counts the call in stats and logs the result
// (E-024). Arguments and results are not logged, except for the first line of a
// failure: the log's handler must redact secrets.
func Observe(log *slog.Logger, stats *Stats) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		start := time.Now()
		r, err := t.Run(ctx, c)
		r = outcome(ctx, r, err)
		if r.Time.Before(start) { // not one that a person was asked about
			r.Time = start
		}
		if len(t.Schema) == 0 { // a call that the Kit refuses
			r.Took = 0
		}
		r.Tainted = r.Tainted || t.Untrusted && (r.Took > 0 || !r.Failed)
		r.Public = t.Untrusted && !t.Private && !r.Failed
		if r.Tainted && len(r.Sources) == 0 {
			r.Sources = []string{sourceOf(c)}
		}
		if r.Code != CodeCancelled && r.Code != CodeWaiting {
			stats.note(t.canonical(), r)
		}
		report(ctx, log, c, r)
		return r, nil
	})
}

// sourceOf describes in a few words where the result of c comes from.
func sourceOf(c Call) string {
	for _, name := range []string{"url", "path", "query"} {
		if v, ok := c.Input[name].(string); ok && v != "" {
			return fmt.Sprintf("%s %q", c.Name, chat.Clip(chat.HideLogins(v), 100, "…"))
		}
	}
	return "the result of " + c.Name
}

// report logs a call.
func report(ctx context.Context, log *slog.Logger, c Call, r Result) {
	if !log.Enabled(ctx, slog.LevelDebug) {
		return
	}
	message := fmt.Sprintf("Tool %s completed in %dms", c.Name, r.Took.Milliseconds())
	if r.Failed {
		first, _, _ := strings.Cut(r.Text, "\n")
		message = fmt.Sprintf("Tool %s failed to execute: %s", c.Name, chat.Clip(first, 120, "")) // D-040
	}
	log.DebugContext(ctx, message, "tool", c.Name, "session", c.Session, "call", c.Key(), "round", c.Round,
		"code", r.Code, "cached", r.Cached, "skipped", r.Skipped, "verdict", r.Verdict, "bytes", len(r.Text))
}

// Recover turns a panic into a failure of the call: the model reads what happened,
// and the stack is logged.
func Recover(log *slog.Logger) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (r Result, err error) {
		err = panics.Try(func() (err error) {
			r, err = t.Run(ctx, c)
			return err
		})
		if broke, ok := errors.AsType[*panics.Error](err); ok {
			log.ErrorContext(ctx, "tool panicked", "tool", t.Name, "call", c.Key(), "err", err, panics.Stack(err))
			r, err = Failf(CodeError, wordsBrokeDown, t.Name, broke.Value), nil
		}
		return r, err
	})
}
