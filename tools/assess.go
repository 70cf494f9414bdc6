package tools

import (
	"context"
	"sync"

	"parley/chat"
	"parley/texts"
)

// Assess records the tool's own verdict on its result (E-019).
func Assess() Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		if err != nil || r.Failed || t.Assess == nil {
			return r, err
		}
		r.Verdict = t.Assess(r)
		return r, nil
	})
}

const maxStrikes = 3

// Strikes ends a turn that makes no progress (C-041): a tool has timed out in
// three rounds without a success in between, or failed in three rounds with the
// same text. Failures in one round count once, because the model could not know
// better yet. Strikes sees all failures of one turn, including those of other
// stages. The person reads say.
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
		all[f] = s
		if s.count >= maxStrikes && r.End == "" {
			delete(all, f) // the turn goes on if the person writes something
			r.End = say.With(chat.Clip(r.Text, 500, ""))
		}
		return r, nil
	})
}
