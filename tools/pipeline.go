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
	Texts  *texts.Tools // what people are told; nil: in English
	Strays *Strays      // calls given up on: shared by all Kits, waited for at shutdown
	Stats  *Stats       // what came of the calls: shared by all Kits

	Approve  Asker         // nil: calls that need approval are denied
	Patience time.Duration // with people who are to approve; 0 means DefaultPatience
	Cache    *Cache        // shared by all Kits; nil: nothing is remembered beyond a turn
}

// Standard is the standard pipeline of one Kit: some stages remember what
// was called before in its turn. Read it downward for the way in and upward for
// the way out:
//
//	Observe   ↓↑ logs and counts the call, and notes how it went
//	Strikes    ↑ ends a turn that gets nowhere
//	Recover    ↑  makes a panic the tool's failure, not the program's
//	Approve   ↓  asks a person first, where that is due
//	Dedupe    ↓↑ answers from memory what was asked before
//	Assess     ↑ notes whether the result is worth having
//	Truncate   ↑ keeps what fits; the rest goes to a file that is named
//	Shape      ↑ makes the text of data, and a failure of what says it is one
//	Timeout   ↓  gives up on work that takes too long
//	Recover    ↑  again, for Run has a goroutine of its own
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

// around makes a Middleware of a function that calls t.Run when it sees fit.
func around(f func(ctx context.Context, t Tool, c Call) (Result, error)) Middleware {
	return func(t Tool) Tool {
		inner := t
		t.Run = func(ctx context.Context, c Call) (Result, error) { return f(ctx, inner, c) }
		return t
	}
}

// Observe notes when each call began, how long the tool was at work, and
// whether the result may hold untrusted content; it counts the call in stats and
// tells log what came of it (E-024). Arguments and results stay out of the
// log; a failure's first words do not: the log's handler must redact.
func Observe(log *slog.Logger, stats *Stats) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		start := time.Now()
		r, err := t.Run(ctx, c)
		r = outcome(ctx, r, err)
		r.Time = start
		if len(t.Schema) == 0 { // what the Kit refuses
			r.Took = 0
		}
		r.Tainted = r.Tainted || t.Untrusted && (r.Took > 0 || !r.Failed)
		r.Public = t.Untrusted && !r.Failed
		if r.Tainted && len(r.Sources) == 0 {
			r.Sources = []string{sourceOf(c)}
		}
		if r.Code != CodeCancelled {
			stats.note(t.canonical(), r)
		}
		report(ctx, log, c, r)
		return r, nil
	})
}

// sourceOf says in a few words where the result of c comes from.
func sourceOf(c Call) string {
	for _, name := range []string{"url", "path", "query"} {
		if v, ok := c.Input[name].(string); ok && v != "" {
			return fmt.Sprintf("%s %q", c.Name, chat.Clip(chat.HideLogins(v), 100, "…"))
		}
	}
	return "the result of " + c.Name
}

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

// Recover makes a panic the tool's failure: the model reads what happened,
// the stack goes to log.
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
