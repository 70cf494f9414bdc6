package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"parley/agent/activity"
	"parley/agent/budget"
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
		Stop:    p.activities.InterruptSubagent,
		Forget:  p.forget,
		Retry:   p.insist,
	})
}

// admitSubagent counts a subagent against the limits of whoever pays for its
// parent's turn, of which it inherits the options.
func (p *Pool) admitSubagent(ctx context.Context, c *tools.Subagent) error {
	if a, _ := p.activities.Get(c.Parent); !a.Said.IsZero() {
		c.Said = a.Said
		c.Options = a.Options
	}
	m := subagents.TaskMessage(*c)
	m.In = c.Parent
	return p.budget.Spend(ctx, p.spender(m), "", budget.Amounts{budget.Subagents: 1})
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
		t.activity.Stop(activity.ErrStopped)
		return activity.ErrStopped
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
	t.scope.Depth, t.scope.Agent = c.Depth, c.Agent
	t.scope.Task = cmp.Or(c.Label, c.Task)
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

// redirectLate takes care of deliveries for a subagent that has ended or is unknown:
// what a person said goes to its parent (C-033). It reports whether it did.
func (w *worker) redirectLate(deliveries []delivery) (bool, error) {
	id := subagents.IDOf(w.id)
	if id == "" {
		return false, nil
	}
	c, working, err := w.pool.subagents.Receive(w.hard, id, deliveries[0].Message)
	if working || err != nil {
		return false, err
	}
	for _, d := range deliveries {
		err := w.pool.insist(w.hard, "end "+d.Key(), func(ctx context.Context) error { return w.redirect(ctx, c, d) })
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// redirect ends d, which came after c had ended. If the person chose that
// subagent, the parent learns for whom the message was meant.
func (w *worker) redirect(ctx context.Context, c tools.Subagent, d delivery) error {
	if d.Origin != chat.FromPerson {
		if err := w.pool.subagents.Interrupt(ctx, c.ID); err != nil {
			return err
		}
		return w.dequeue(ctx, d)
	}
	m := d.Message
	m.Account += "+" // the inbox has seen the key
	m.In = cmp.Or(c.Parent, m.At.Session())
	if m.In == m.At.Session() && !strings.HasPrefix(m.Text, "/") { // else the text might pass for a command
		m.In = ""
	}
	deliver := w.pool.Deliver
	if subagents.IsToldTo(c.ID, m) {
		m.Quote = &chat.Quote{From: "you", Text: fmt.Sprintf(msgMeantFor, subagents.Label(c))}
		m.Tainted = m.Tainted || c.Tainted // the label may be untrusted content
		m.Sources = chat.JoinSources(m.Sources, c.Sources...)
		deliver = w.pool.push // to the parent, not to a subagent that listens in its place
	}
	if err := deliver(ctx, m); err != nil {
		return err
	}
	return w.dequeue(ctx, d)
}
