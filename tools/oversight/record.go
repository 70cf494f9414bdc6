package oversight

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// Audit returns a stage of the pipeline that records every call with add, and gives
// its result the receipt that the record has. The stages around it must leave the
// result as it is.
func Audit(add func(kind, who, what string)) tools.Middleware {
	return func(tool tools.Tool) tools.Tool {
		inner := tool
		tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			r, err := inner.Run(ctx, c)
			r = inner.Sign(ctx, c, r, err)
			outcome := "done"
			switch {
			case r.Failed:
				outcome = "failed"
			case r.Code == tools.CodeWaiting:
				outcome = "waiting for a person"
			}
			what := fmt.Sprintf("%s %s, call %s", c.Name, outcome, c.Key())
			if r.Receipt != "" {
				what += ", receipt " + r.Receipt
			}
			add("tool", c.From.ID+" at "+string(c.Session), what)
			return r, nil
		}
		return tool
	}
}

// NoteArguments returns a stage of the pipeline that tells note the arguments of every
// call before it is made.
func NoteArguments(note func(ctx context.Context, arguments string)) tools.Middleware {
	return func(tool tools.Tool) tools.Tool {
		run := tool.Run
		tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			note(ctx, string(c.Args))
			return run(ctx, c)
		}
		return tool
	}
}

// CountWritten returns a stage of the pipeline that counts the arguments of calls
// that change files as bytes of the person whom s is for. take counts them, or
// returns a [*chat.Refusal] when they are too many.
func CountWritten(s tools.Scope, take func(ctx context.Context, who chat.Person, bytes int64) error) tools.Middleware {
	who := chat.Whose(s.At, s.From, s.Group)
	return func(tool tools.Tool) tools.Tool {
		if tool.ReadOnly || tool.Category != "files" {
			return tool
		}
		run := tool.Run
		tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			err := take(ctx, who, int64(len(c.Args)))
			if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
				return tools.Result{Text: "Nothing was changed. " + refusal.Text, Failed: true}, nil
			}
			if err != nil {
				return tools.Result{}, err
			}
			return run(ctx, c)
		}
		return tool
	}
}

// Statistics says how often each tool was used, and how that went.
func Statistics(stats *tools.Stats, say texts.ToolUse) string {
	all := stats.All()
	if len(all) == 0 {
		return say.None
	}
	var b strings.Builder
	b.WriteString(say.List + "\n")
	for _, s := range all {
		b.WriteString("\n- " + say.Tool.With(s.Tool, s.Runs, s.Failures, s.AverageDuration))
		for _, count := range []struct {
			n    int
			text texts.Format
		}{
			{s.CacheHits, say.Cached},
			{s.Skipped, say.Skipped},
			{s.Duplicates, say.Repeated},
			{s.Rollbacks, say.RolledBack},
		} {
			if count.n > 0 {
				b.WriteString(count.text.With(count.n))
			}
		}
	}
	if names := stats.Unreliable(); len(names) > 0 {
		b.WriteString("\n\n" + say.Unreliable.With(strings.Join(names, ", ")))
	}
	return b.String()
}
