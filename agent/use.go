package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/untrusted"
)

// use runs the calls of the last answer that have no result, group by group.
func (t *turn) use(ctx context.Context) error {
	twins := t.kit.Twins(t.openTurn().Calls())
	for len(t.openTurn().Calls()) > 0 && ctx.Err() == nil {
		calls := t.todo(twins)
		if len(calls) == 0 {
			t.judge()
			return nil
		}
		if err := t.work(ctx, t.kit.Groups(calls)[0]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// todo returns the calls to run. One that was started before a crash is not run
// again, unless its tool is repeatable: it may have taken effect (P6).
func (t *turn) todo(twins map[string]string) (calls []tools.Call) {
	o, scope := t.openTurn(), t.scope
	scope.From, scope.Tainted, scope.Sources = o.From(), o.Untrusted(), o.Sources()
	if guests := t.session.History.Guests(); len(guests) > 0 {
		scope.Tainted, scope.Sources = true, chat.JoinSources(scope.Sources, guests...)
	}
	scope.Typed, scope.Granted = t.session.History.TypedByOwners(), t.pool.sessions.Granted(t.worker.hard, scope)
	scope.Known = t.known
	scope.Round, scope.Shown = len(o.AllAnswers()), t.session.History.ShownCalls()
	for _, c := range o.Unanswered() {
		if known, _ := t.kit.Tool(c.Name); o.Started(c.ID) && !known.Repeatable {
			t.finished(c, tools.Result{Text: conversation.MsgInterrupted, Failed: true})
			continue
		}
		calls = append(calls, tools.Call{
			ToolCall: c, Scope: scope, Twin: twins[c.ID],
			Tip: func(text string) {
				t.live.Tip(c.ID, text)
			},
		})
	}
	return calls
}

// known returns what the model is shown, by where it came from.
func (t *turn) known() untrusted.Known {
	k := t.session.History.Known(t.kit, t.subagent != nil) // whoever gave a subagent its task was asked about it
	if t.pool.config.Remembered != nil {
		k.Private = append(k.Private, t.pool.config.Remembered(t.scope.Whose()))
	}
	return k
}

// work runs a group of calls. The result of each is on disk as soon as it can
// be: a crash repeats no call that has ended, whatever the others still do (P6).
func (t *turn) work(ctx context.Context, group []tools.Call) error {
	if t.kit.Asks(group[0]) { // and is alone
		results, err := t.wait(ctx, group[0])
		if err != nil {
			return err
		}
		t.finished(group[0].ToolCall, results[0])
		return t.flush(t.worker.hard)
	}
	if err := t.begin(ctx, group); err != nil {
		return err
	}
	return t.collect(t.kit.Each(ctx, group), group)
}

// collect takes in what came of the calls of a group. Those that end while
// others are being saved share the next commit.
func (t *turn) collect(ended <-chan tools.Ended, group []tools.Call) (err error) {
	for e := range ended {
		if err != nil {
			continue // the calls are waited for all the same
		}
		if e.Stack != "" {
			t.pool.log.Error("panic in a tool call", "session", t.session.ID, "call", group[e.Index].Key(), "stack", e.Stack)
		}
		t.finished(group[e.Index].ToolCall, e.Result)
		if len(ended) == 0 {
			err = t.flush(t.worker.hard)
			t.pool.guard.Progressed(t.jobs[0].Key())
		}
	}
	return err
}

// begin notes that calls are about to run.
func (t *turn) begin(ctx context.Context, group []tools.Call) error {
	t.doing(t.pool.texts.Doing.Using.With(group[0].Name))
	ids := make([]string, len(group))
	for i, c := range group {
		ids[i] = c.ID
		t.live.Call(t.kit, c.ToolCall, chat.Running)
	}
	t.session.Keep(conversation.Record{Started: ids})
	if err := t.flush(ctx); err != nil {
		return err
	}
	if t.session.State.Began.IsZero() { // it may be long until the turn ends
		t.remember(t.worker.hard)
	}
	return nil
}

// wait runs a call over which a person is asked: by its tool, all the time it
// runs, or before it begins. The end of the house does not wait for people:
// then the call is made again after the next start.
func (t *turn) wait(ctx context.Context, c tools.Call) ([]tools.Result, error) {
	known, _ := t.kit.Tool(c.Name)
	if known.Waits() {
		if err := t.begin(ctx, []tools.Call{c}); err != nil {
			return nil, err
		}
	} else if err := t.flush(ctx); err != nil { // after a crash it must be this call that is asked for
		return nil, err
	}
	doing := t.pool.texts.Doing.Answer
	if known.Category == "agents" {
		doing = t.pool.texts.Doing.Subagents
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stay := context.AfterFunc(t.worker.soft, func() { leave(tools.ErrClosing) })
	defer stay()
	begun := false
	if !known.Waits() {
		t.pause(doing)
		t.live.Call(t.kit, c.ToolCall, chat.Waiting)
		c.Begin = func(work context.Context) error {
			if begun = stay(); !begun {
				<-ctx.Done() // any moment
				return tools.ErrClosing
			}
			if err := t.worker.hold(work, t.pool.turns); err != nil {
				return err
			}
			return t.begin(work, []tools.Call{c})
		}
	}
	var results []tools.Result
	if use := func() { results = t.kit.Together(ctx, []tools.Call{c}) }; known.Waits() {
		t.pausing(doing, use)
	} else {
		use()
	}
	switch {
	case !begun && results[0].Code == tools.CodeCancelled && errors.Is(context.Cause(ctx), tools.ErrClosing):
		return nil, tools.ErrClosing
	case len(t.worker.places) > 0:
		return results, nil
	}
	return results, t.worker.hold(t.worker.hard, t.pool.turns)
}

// soonest is how long a call takes at least over which a turn pauses.
const soonest = 500 * time.Millisecond

// pausing calls do, which may have to wait, and pauses when it does.
func (t *turn) pausing(doing string, do func()) {
	paused := make(chan struct{})
	soon := time.AfterFunc(soonest, func() {
		defer close(paused)
		t.pool.guarded("pause a turn", func() { t.pause(doing) })
	})
	defer func() {
		if !soon.Stop() {
			<-paused
		}
	}()
	do()
}

// pause leaves to others what the turn holds while it waits, as for a person: its
// place, and the suspicion that it crashes the process.
func (t *turn) pause(doing string) {
	t.doing(doing)
	t.worker.rest()
	t.worker.solo = false
}

// finished takes in the result of c.
func (t *turn) finished(c llm.ToolCall, r tools.Result) {
	if toolCalls(t.openTurn().First()) != nil { // nobody asks in other words
		r.Verdict = tools.Fine
	}
	if r.Verdict == tools.Poor && !t.revocable() {
		r.Text += "\n\n" + conversation.PoorLookup(c)
	}
	m := llm.Message{Role: llm.ToolRole, Call: c.ID, Name: c.Name, Text: r.Text}
	t.live.Result(m, r.Failed, r.Verdict == tools.Poor && t.revocable())
	t.session.Keep(conversation.Record{Finished: &m, Result: &r, Told: r.Told})
}

// How many rounds are taken back: one after the other (E-026), and in a turn (E-027).
const (
	maxRow     = 4
	maxRevoked = 10
)

// revocable says whether the round under way may be taken back: nothing it does
// has an effect.
func (t *turn) revocable() bool {
	o := t.openTurn()
	return t.settings.Rollback && o.RolledBackInRow() < maxRow && o.RolledBack() < maxRevoked && !o.EndedByTool() &&
		!slices.ContainsFunc(o.Calls(), func(c llm.ToolCall) bool {
			known, _ := t.kit.Tool(c.Name)
			return !known.ReadOnly
		})
}

// judge takes back the round if a lookup in it found nothing of use: the model
// asks again without having seen that (E-012, E-019). The log keeps it all.
func (t *turn) judge() {
	o := t.openTurn()
	poor := slices.DeleteFunc(slices.Clone(o.Calls()), func(c llm.ToolCall) bool { return o.Verdict(c.ID) != tools.Poor })
	if len(poor) == 0 || !t.revocable() {
		return
	}
	t.pool.log.Info("round taken back", "session", t.session.ID, "tool", poor[0].Name, "row", o.RolledBackInRow()+1) // E-028
	t.session.Keep(conversation.Record{RolledBack: conversation.PoorLookup(poor[0])})
	for _, c := range poor {
		if t.settings.RolledBack != nil {
			known, _ := t.kit.Tool(c.Name)
			t.settings.RolledBack(cmp.Or(known.AliasOf, known.Name, c.Name))
		}
	}
}
