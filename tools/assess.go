package tools

import (
	"context"
	"fmt"
	"sync"
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
// better yet. It sees all failures, those of other stages too, of one turn.
func Strikes() Middleware {
	type fault struct{ tool, text string }
	type strikes struct{ count, round int }
	var mu sync.Mutex
	all := map[fault]strikes{}
	strike := func(f fault, round int) bool {
		mu.Lock()
		defer mu.Unlock()
		s := all[f]
		if round == 0 || round != s.round {
			s.count++
		}
		s.round = round
		all[f] = s
		return s.count >= mostStrikes
	}
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		r, err := t.Run(ctx, c)
		r = outcome(ctx, r, err)
		f := fault{c.Name, r.Text}
		if r.Code == CodeTimeout || !r.Failed {
			f.text = CodeTimeout
		}
		switch {
		case !r.Failed:
			mu.Lock()
			delete(all, f)
			mu.Unlock()
		case r.Code != CodeCancelled && strike(f, c.Round) && r.End == "":
			r.End = fmt.Sprintf("检测到相同错误重复出现3次，任务已暂停。\n错误: %s\n\n"+
				"The same error came up three times, so the work is paused: send a message to go on.", cut(r.Text, 500))
		}
		return r, nil
	})
}
