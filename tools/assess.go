package tools

import (
	"context"
	"sync"

	"parley/chat"
	"parley/texts"
)

// Assess notes what the tool itself thinks of its success (E-019).
func Assess() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		if err == nil && !r.Failed && t.Assess != nil {
			r.Verdict = t.Assess(r)
		}
		return r, err
	})
}

const mostStrikes = 3

// Strikes ends a turn that gets nowhere (C-041): once a tool has timed out in
// three rounds without a success in between, or failed in three with the same
// words. Failures of one round are one strike, as the model could not know
// better yet. It sees all failures, those of other stages too, of one turn. The
// person is told by say.
func Strikes(say texts.Format) Middleware {
	type fault struct{ tool, text string }
	type strikes struct{ count, round int }
	var mu sync.Mutex
	all := map[fault]strikes{}
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		if r = outcome(ctx, r, err); r.Code == CodeCancelled {
			return r, nil
		}
		f := fault{c.Name, r.Text}
		if r.Code == CodeTimeout || !r.Failed {
			f.text = CodeTimeout
		}
		mu.Lock()
		defer mu.Unlock()
		s := all[f]
		if !r.Failed {
			delete(all, f)
			return r, nil
		}
		if c.Round == 0 || c.Round != s.round {
			s = strikes{s.count + 1, c.Round}
		}
		if all[f] = s; s.count >= mostStrikes && r.End == "" {
			delete(all, f) // the turn may go on, if somebody speaks
			r.End = say.With(chat.Clip(r.Text, 500, ""))
		}
		return r, nil
	})
}
