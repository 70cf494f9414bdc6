package agent

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// use runs the calls of the last answer that have no result.
func (t *turn) use(ctx context.Context) (err error) {
	for _, group := range t.kit.Groups(t.todo()) {
		if err = ctx.Err(); err == nil {
			err = t.work(ctx, group)
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// work runs a group of calls, between two records of it (P6).
func (t *turn) work(ctx context.Context, group []tools.Call) error {
	first, _ := t.kit.Tool(group[0].Name)
	if first.Waits() { // and is alone
		t.pause()
	} else {
		t.doing("using " + group[0].Name)
	}
	ids := make([]string, len(group))
	for i, c := range group {
		ids[i] = c.ID
		t.step(c, chat.Running)
	}
	t.keep(record{Started: ids})
	if err := t.flush(ctx); err != nil {
		return err
	}
	if t.Began.IsZero() { // it may be long until the turn ends
		t.remember(t.hard)
	}
	var results []tools.Result
	if !first.Waits() {
		results = t.kit.Together(ctx, group)
	} else if results = t.wait(ctx, group); results == nil {
		return tools.ErrClosing
	} else if err := t.hold(t.hard, t.turns); err != nil {
		return err
	}
	for i, c := range group {
		t.finished(c.ToolCall, results[i])
		if results[i].Failed {
			t.step(c, chat.Failed)
		} else {
			t.step(c, chat.Done)
		}
	}
	return t.flush(t.hard)
}

// wait runs calls that wait for a person. It returns nil at the end of the
// house, which does not wait for people: they are made again after the next start.
func (t *turn) wait(ctx context.Context, group []tools.Call) []tools.Result {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	defer context.AfterFunc(t.soft, func() { leave(tools.ErrClosing) })()
	results := t.kit.Together(ctx, group)
	if results[0].Code == tools.CodeCancelled && errors.Is(context.Cause(ctx), tools.ErrClosing) {
		return nil
	}
	return results
}

// todo returns the calls to run. One that was started before a crash is not run
// again, unless its tool is repeatable: it may have taken effect (P6).
func (t *turn) todo() (calls []tools.Call) {
	o := t.history.open
	for _, c := range o.unanswered() {
		if known, _ := t.kit.Tool(c.Name); o.started[c.ID] && !known.Repeatable {
			t.finished(c, tools.Result{Text: wordsInterrupted, Failed: true})
			continue
		}
		scope := t.scope
		scope.From = o.from
		calls = append(calls, tools.Call{ToolCall: c, Scope: scope})
	}
	return calls
}

func (t *turn) finished(c llm.ToolCall, r tools.Result) {
	t.keep(record{Finished: &llm.Message{Role: llm.ToolRole, Call: c.ID, Name: c.Name, Text: r.Text}, Told: r.Told})
}

// pause leaves to others what the turn holds while it waits for a person: its
// place, and the suspicion that it crashes the process.
func (t *turn) pause() {
	t.doing("waiting for your answer")
	t.rest()
	t.uncount(t.jobs, nil)
	t.crashed, t.solo = 0, false
}

// step shows the person how far c is.
func (t *turn) step(c tools.Call, s chat.StepState) {
	t.live.Step(chat.Step{Call: c.ID, Tool: c.Name, State: s, Tip: tip(c.Args)})
}

// tip returns the first words among the arguments of a call, such as the path of a file.
func tip(args string) string {
	d := json.NewDecoder(strings.NewReader(args))
	for key := false; ; key = !key {
		switch v, err := d.Token(); v := v.(type) {
		case json.Delim:
			if v != '{' || key {
				return ""
			}
		case string:
			if !key {
				return tame(v, 80)
			}
		default:
			if err != nil {
				return ""
			}
		}
	}
}
