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
func (t *turn) use(ctx context.Context) error {
	todo := t.todo()
	if len(todo) == 0 {
		return nil
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stay := func() bool { return true } // when the house closes
	started := func(calls []tools.Call) error {
		if t.waits(calls[0]) {
			t.pause()
			stay = context.AfterFunc(t.soft, func() { leave(tools.ErrClosing) })
		} else {
			t.doing("using " + calls[0].Name)
		}
		ids := make([]string, len(calls))
		for i, c := range calls {
			ids[i] = c.ID
			t.step(c, chat.Running)
		}
		t.keep(record{Started: ids})
		return t.flush(ctx)
	}
	finished := func(calls []tools.Call, results []tools.Result) error {
		if t.waits(calls[0]) {
			if stay(); results[0].Code == tools.CodeCancelled && closing(ctx) {
				return tools.ErrClosing
			}
			if err := t.hold(t.hard, t.turns); err != nil {
				return err
			}
		}
		for i, c := range calls {
			t.finished(c.ToolCall, results[i])
			if results[i].Failed {
				t.step(c, chat.Failed)
			} else {
				t.step(c, chat.Done)
			}
		}
		return t.flush(t.hard)
	}
	err := t.kit.Round(ctx, todo, started, finished)
	if err != nil && closing(ctx) {
		return tools.ErrClosing
	}
	return err
}

// closing says whether ctx ended because the house is shut down.
func closing(ctx context.Context) bool { return errors.Is(context.Cause(ctx), tools.ErrClosing) }

// todo returns the calls to run. One that was started before a crash is not run
// again, unless its tool is repeatable: it may have taken effect (P6).
func (t *turn) todo() (calls []tools.Call) {
	o := t.history.open
	for _, c := range o.unanswered() {
		if known, ok := t.kit.Tool(c.Name); o.started[c.ID] && !(ok && known.Repeatable) {
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

// waits says whether c waits for a person.
func (t *turn) waits(c tools.Call) bool {
	known, ok := t.kit.Tool(c.Name)
	return ok && known.Waits()
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
