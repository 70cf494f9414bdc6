package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/agent/subagents"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

// Subagents returns the supervisor of all subagents.
func (p *Pool) Subagents() *subagents.Supervisor { return p.subagents }

// newSupervisor returns the supervisor of the subagents of p.
func newSupervisor(p *Pool, bucket store.Bucket) *subagents.Supervisor {
	return subagents.New(subagents.Config{
		Bucket:  bucket,
		Log:     p.log,
		Admit:   p.admitSubagent,
		Deliver: p.push,
		Stop:    p.stopSubagent,
		Forget:  p.forget,
		Retry:   p.insist,
	})
}

// admitSubagent counts a subagent against the limits of whoever pays for its
// parent's turn, of which it inherits the options.
func (p *Pool) admitSubagent(ctx context.Context, c *tools.Subagent) error {
	p.mu.Lock()
	if r := p.running[c.Parent]; r != nil && !r.said.IsZero() {
		c.Said, c.Options = r.said, r.options
	}
	p.mu.Unlock()
	m := subagents.TaskMessage(*c)
	m.In = c.Parent
	return p.budget.Spend(ctx, p.spender(m), "", budget.Amounts{budget.Subagents: 1})
}

// stopSubagent ends the turn under way in session. If that of its parent was
// stopped by a person, what was said before then is not answered here either.
func (p *Pool) stopSubagent(session, parent chat.SessionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.running[session]
	if r == nil {
		return
	}
	if above := p.running[parent]; above != nil {
		r.asked = above.asked
	}
	r.stop(errStopped)
}

// beginSubagentTurn applies the settings of a subagent if m is for one, and lifts
// the age limit of a turn that somebody still waits for.
func (t *turn) beginSubagentTurn(m chat.Message) error {
	supervisor := t.pool.subagents
	if err := t.pool.insist(t.worker.hard, "load the subagents", supervisor.Load); err != nil {
		return err
	}
	maxAge := t.settings.MaxAge
	if m.Origin == chat.FromSubagent || supervisor.Roster().Awaits(t.session.ID, maxAge) {
		t.settings.MaxAge = 0
	}
	id := subagents.IDOf(m.In)
	if id == "" {
		return nil
	}
	c, changed := supervisor.Roster().Watch(id)
	if changed == nil { // it was stopped a moment ago
		t.run.stop(errStopped)
		return errStopped
	}
	if subagents.IsCurrent(c, maxAge) {
		t.settings.MaxAge = 0
	}
	t.subagent = &c
	if t.settings.Models[c.Model].Model != nil {
		t.name, t.model = c.Model, t.settings.Models[c.Model]
	}
	if c.Patience > 0 {
		t.model.Model = llm.Limit(c.Patience)(t.model.Model)
	}
	t.settings.Rounds = cmp.Or(c.Rounds, t.settings.Rounds)
	t.scope.Model = t.name
	t.scope.Depth = c.Depth
	t.scope.Agent = c.Agent
	t.scope.Only = c.Only
	t.scope.Root, t.scope.RootTurn = supervisor.Roster().Root(t.session.ID)
	return nil
}

// waitWhilePaused returns once the subagent is not paused. Its place is free for
// other turns meanwhile.
func (t *turn) waitWhilePaused(ctx context.Context) error {
	if t.subagent == nil {
		return nil
	}
	id := t.subagent.ID
	t.pool.subagents.Roster().NoteRounds(id, len(t.openTurn().AllAnswers()))
	c, changed := t.pool.subagents.Roster().Watch(id)
	if c.State != tools.SubagentPaused {
		return nil
	}
	t.pause("paused")
	for c.State == tools.SubagentPaused {
		select {
		case <-changed:
			c, changed = t.pool.subagents.Roster().Watch(id)
		case <-ctx.Done():
			return ctx.Err()
		case <-t.worker.soft.Done():
			return tools.ErrClosing
		}
	}
	return t.worker.hold(ctx, t.pool.turns)
}

// settleSubagents stops the subagents that the turn, which has ended, was
// waiting for. If it was the turn of a subagent, its outcome is recorded.
func (t *turn) settleSubagents(ctx context.Context) error {
	session := t.session.ID
	last := t.session.History.LastTurn()
	supervisor := t.pool.subagents
	supervisor.Roster().EndTurn(last.First.Key())
	err := supervisor.CancelAll(ctx, func(c tools.Subagent) bool { return c.Parent == session && !c.Report })
	id := subagents.IDOf(session)
	if err != nil || id == "" {
		return err
	}
	state := tools.SubagentFailed
	switch last.Outcome {
	case conversation.Answered:
		state = tools.SubagentAnswered
	case conversation.Stopped:
		state = tools.SubagentStopped
	}
	return supervisor.Move(ctx, id, state, func(c *tools.Subagent) {
		c.Result = chat.Clip(strings.ToValidUTF8(last.Text, "\uFFFD"), tools.MaxSubagentText, "")
		c.Tainted = c.Tainted || last.Untrusted()
		c.Sources = chat.JoinSources(c.Sources, last.Sources...)
		c.Pure = state == tools.SubagentAnswered && t.onlyRead(last.Steps)
	})
}

// onlyRead reports whether all steps are known to be of read-only tools.
func (t *turn) onlyRead(steps []chat.Step) bool {
	return t.kit != nil && !slices.ContainsFunc(steps, func(s chat.Step) bool {
		known, _ := t.kit.Tool(s.Tool)
		return !known.ReadOnly
	})
}

// redirectLate takes care of jobs for a subagent that has ended or is unknown:
// what a person said goes to its parent (C-033). It reports whether it did.
func (w *worker) redirectLate(jobs []job) (bool, error) {
	id := subagents.IDOf(w.id)
	if id == "" {
		return false, nil
	}
	c, working, err := w.pool.subagents.Receive(w.hard, id, jobs[0].Message)
	if working || err != nil {
		return false, err
	}
	for _, j := range jobs {
		err := w.pool.insist(w.hard, "end "+j.Key(), func(ctx context.Context) error { return w.redirect(ctx, c, j) })
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// redirect ends j, which came after c had ended. If the person chose that
// subagent, the parent learns for whom the message was meant.
func (w *worker) redirect(ctx context.Context, c tools.Subagent, j job) error {
	if j.Origin != chat.FromPerson {
		if err := w.pool.subagents.Interrupt(ctx, c.ID); err != nil {
			return err
		}
		return w.dequeue(ctx, j)
	}
	m := j.Message
	m.Account += "+" // the inbox has seen the key
	m.In = cmp.Or(c.Parent, m.At.Session())
	if m.In == m.At.Session() && !strings.HasPrefix(m.Text, "/") { // else the text might pass for a command
		m.In = ""
	}
	deliver := w.pool.Deliver
	if strings.HasSuffix(m.ID, toldTo(c.ID)) {
		m.Quote = &chat.Quote{From: "you", Text: fmt.Sprintf(wordsMeantFor, label(c))}
		m.Tainted = m.Tainted || c.Tainted // the label may be untrusted content
		m.Sources = chat.JoinSources(m.Sources, c.Sources...)
		deliver = w.pool.push // to the parent, not to a subagent that listens in its place
	}
	if err := deliver(ctx, m); err != nil {
		return err
	}
	return w.dequeue(ctx, j)
}
