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

// slowCall is how long a call takes before the turn gives its place to others.
const slowCall = 500 * time.Millisecond

// How many rounds are rolled back: in a row (E-026), and in a turn (E-027).
const (
	maxRolledBackInRow = 4
	maxRolledBack      = 10
)

// A toolRunner runs the calls of tools that the answers of a turn ask for.
type toolRunner struct{ turn *turn }

// run runs the calls of the last answer that have no result, group by group.
func (r toolRunner) run(ctx context.Context) error {
	twins := r.turn.kit.Twins(r.turn.openTurn().Calls())
	for len(r.turn.openTurn().Calls()) > 0 && ctx.Err() == nil {
		calls := r.pending(twins)
		if len(calls) == 0 {
			r.rollBackIfPoor()
			return nil
		}
		if err := r.runGroup(ctx, r.turn.kit.Groups(calls)[0]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// pending returns the calls to run. One that was started before a crash is not run
// again, unless its tool is repeatable or it waits for a person: it may have taken
// effect (P6).
func (r toolRunner) pending(twins map[string]string) (calls []tools.Call) {
	scope := r.currentScope()
	o := r.turn.openTurn()
	for _, c := range o.Unanswered() {
		call := tools.Call{
			ToolCall: c, Scope: scope, Twin: twins[c.ID],
			Tip: func(text string) { r.turn.live.Tip(c.ID, text) },
		}
		if known, _ := r.turn.kit.Tool(c.Name); o.Started(c.ID) && !known.CanRun(call) {
			r.finish(c, tools.Result{Text: conversation.MsgInterrupted, Failed: true, Code: tools.CodeInterrupted})
			continue
		}
		calls = append(calls, call)
	}
	return calls
}

// currentScope returns the scope of calls as the conversation stands now.
func (r toolRunner) currentScope() tools.Scope {
	scope := r.turn.scope
	o := r.turn.openTurn()
	history := r.turn.session.History
	scope.From = o.From()
	scope.Workspace = r.turn.pool.config.workspaceOf(scope.Whose())
	scope.Tainted = o.Untrusted()
	scope.Sources = o.Sources()
	if guests := history.Guests(); len(guests) > 0 {
		scope.Tainted = true
		scope.Sources = chat.JoinSources(scope.Sources, guests...)
	}
	scope.Typed = history.TypedByOwners()
	scope.Granted = r.turn.pool.sessions.Granted(r.turn.worker.hard, scope)
	scope.Known = r.knownContent
	scope.Round = len(o.AllAnswers())
	scope.Shown = history.ShownCalls()
	return scope
}

// knownContent returns what the model is shown, by where it came from.
func (r toolRunner) knownContent() untrusted.Known {
	// Whoever gave a subagent its task was asked about it.
	known := r.turn.session.History.Known(r.turn.kit, r.turn.subagent != nil)
	if remembered := r.turn.pool.config.Remembered; remembered != nil {
		known.Private = append(known.Private, remembered(r.turn.scope.Whose()))
	}
	return known
}

// runGroup runs a group of calls. The result of each is on disk as soon as it can
// be: a crash repeats no call that has ended, whatever the others still do (P6).
func (r toolRunner) runGroup(ctx context.Context, group []tools.Call) error {
	if r.turn.kit.Asks(group[0]) { // such a call is the only one of its group
		result, err := r.runAsking(ctx, group[0])
		if err != nil {
			return err
		}
		if result.Code == tools.CodeWaiting { // pending has it run again
			return nil
		}
		r.finish(group[0].ToolCall, result)
		return r.turn.flush(r.turn.worker.hard)
	}
	if err := r.begin(ctx, group); err != nil {
		return err
	}
	return r.collect(r.turn.kit.Each(ctx, group), group)
}

// collect takes in the results of the calls of a group. Those that end while
// others are being saved share the next commit.
func (r toolRunner) collect(ended <-chan tools.Ended, group []tools.Call) (err error) {
	for e := range ended {
		if err != nil || e.Result.Code == tools.CodeWaiting { // pending has the latter run again
			continue // the other calls are waited for all the same
		}
		if e.Stack != "" {
			r.turn.pool.log.Error("panic in a tool call",
				"session", r.turn.session.ID, "call", group[e.Index].Key(), "stack", e.Stack)
		}
		r.finish(group[e.Index].ToolCall, e.Result)
		if len(ended) == 0 {
			err = r.turn.flush(r.turn.worker.hard)
			r.turn.pool.guard.Progressed(r.turn.deliveries[0].Key())
		}
	}
	return err
}

// begin records that calls are about to run.
func (r toolRunner) begin(ctx context.Context, group []tools.Call) error {
	r.turn.doing(r.turn.pool.texts.Doing.Using.With(group[0].Name))
	ids := make([]string, len(group))
	for i, c := range group {
		ids[i] = c.ID
		r.turn.live.Call(r.turn.kit, c.ToolCall, chat.Running)
	}
	r.turn.session.Keep(conversation.Record{Started: ids})
	if err := r.turn.flush(ctx); err != nil {
		return err
	}
	if r.turn.session.State.Began.IsZero() { // it may be long until the turn ends
		r.turn.completion(r.turn.deliveries).noteState(r.turn.worker.hard)
	}
	return nil
}

// runAsking runs a call over which a person is asked: by its tool, all the time it
// runs, or before it begins. Shutting down does not wait for people: then the call
// is made again after the next start.
func (r toolRunner) runAsking(ctx context.Context, c tools.Call) (result tools.Result, err error) {
	known, _ := r.turn.kit.Tool(c.Name)
	waits := known.Waits(c)
	if waits {
		err = r.begin(ctx, []tools.Call{c})
	} else {
		err = r.turn.flush(ctx) // after a crash it must be this call that is asked for
	}
	if err != nil {
		return result, err
	}
	doing := r.turn.pool.texts.Doing.Answer
	if known.Category == "agents" {
		doing = r.turn.pool.texts.Doing.Subagents
	}
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	stay := context.AfterFunc(r.turn.worker.soft, func() { leave(tools.ErrClosing) })
	defer stay()
	begun := false
	if waits {
		r.pauseIfSlow(doing, func() { result = r.turn.kit.Together(ctx, []tools.Call{c})[0] })
	} else {
		r.turn.pause(doing)
		r.turn.live.Ask(r.turn.kit, c.ToolCall)
		c.Begin = func(work context.Context) error {
			begun = stay()
			if !begun {
				<-ctx.Done() // any moment
				return tools.ErrClosing
			}
			if err := r.turn.worker.hold(work, r.turn.pool.turns); err != nil {
				return err
			}
			return r.begin(work, []tools.Call{c})
		}
		result = r.turn.kit.Together(ctx, []tools.Call{c})[0]
	}
	if !begun && result.Code == tools.CodeCancelled && errors.Is(context.Cause(ctx), tools.ErrClosing) {
		return result, tools.ErrClosing
	}
	if len(r.turn.worker.places) > 0 {
		return result, nil
	}
	return result, r.turn.worker.hold(r.turn.worker.hard, r.turn.pool.turns)
}

// pauseIfSlow calls do, and pauses the turn when that takes long.
func (r toolRunner) pauseIfSlow(doing string, do func()) {
	paused := make(chan struct{})
	timer := time.AfterFunc(slowCall, func() {
		defer close(paused)
		r.turn.pool.guarded("pause a turn", func() { r.turn.pause(doing) })
	})
	defer func() {
		if !timer.Stop() {
			<-paused
		}
	}()
	do()
}

// finish takes in the result of c.
func (r toolRunner) finish(c llm.ToolCall, result tools.Result) {
	if conversation.DirectCalls(r.turn.openTurn().First()) != nil { // no model could ask in other words
		result.Verdict = tools.Fine
	}
	r.turn.newTools = r.turn.newTools || result.NewTools
	rollBack := result.Verdict == tools.Poor && r.canRollBack()
	if result.Verdict == tools.Poor && !rollBack {
		result.Text += "\n\n" + conversation.PoorLookup(c)
	}
	m := llm.Message{Role: llm.ToolRole, Call: c.ID, Name: c.Name, Text: result.Text}
	r.turn.live.Result(m, result, rollBack)
	r.turn.session.Keep(conversation.Record{Finished: &m, Result: &result, Told: result.Told})
}

// canRollBack reports whether the round under way may be rolled back, because
// nothing it does has an effect.
func (r toolRunner) canRollBack() bool {
	o := r.turn.openTurn()
	if !r.turn.settings.Rollback || o.EndedByTool() {
		return false
	}
	if o.RolledBackInRow() >= maxRolledBackInRow || o.RolledBack() >= maxRolledBack {
		return false
	}
	return !slices.ContainsFunc(o.Calls(), func(c llm.ToolCall) bool {
		known, _ := r.turn.kit.Tool(c.Name)
		return !known.ReadOnly
	})
}

// rollBackIfPoor rolls back the round if a lookup in it found nothing of use: the
// model asks again without having seen that (E-012, E-019). The log keeps it all.
func (r toolRunner) rollBackIfPoor() {
	o := r.turn.openTurn()
	isFine := func(c llm.ToolCall) bool { return o.Verdict(c.ID) != tools.Poor }
	poor := slices.DeleteFunc(slices.Clone(o.Calls()), isFine)
	if len(poor) == 0 || !r.canRollBack() {
		return
	}
	r.turn.pool.log.Info("round rolled back", // E-028
		"session", r.turn.session.ID, "tool", poor[0].Name, "row", o.RolledBackInRow()+1)
	r.turn.session.Keep(conversation.Record{RolledBack: conversation.PoorLookup(poor[0])})
	if r.turn.settings.RolledBack == nil {
		return
	}
	for _, c := range poor {
		known, _ := r.turn.kit.Tool(c.Name)
		r.turn.settings.RolledBack(cmp.Or(known.AliasOf, known.Name, c.Name))
	}
}
