package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agent/budget"
	"parley/chat"
	"parley/store"
	"parley/tools"
)

const (
	helperPrefix = "agent:"           // of the sessions of helpers
	reportPrefix = "report/"          // of the IDs of the messages that tell how helpers ended
	lostAfter    = time.Minute        // a task that nobody has seen by then may be lost
	keepFor      = 7 * 24 * time.Hour // what is known of a helper that has ended
)

func helperSession(id string) chat.SessionID { return chat.SessionID(helperPrefix + id) }

// helperOf returns the ID of the helper whose session is id, or "".
func helperOf(id chat.SessionID) string {
	self, helps := strings.CutPrefix(string(id), helperPrefix)
	if !helps {
		return ""
	}
	return self
}

// Spawn begins the helper c. To do it again for the same Call is to find the
// same helper, ended or not; and so is to await once more in a turn what a
// helper found out in it by looking alone (E-039). A *[tools.BusyError], or the
// error of a limit, says that none was begun.
func (p *Pool) Spawn(ctx context.Context, c tools.Child) (tools.Child, error) {
	known, err := p.found(ctx, c)
	if err != nil || known.ID != "" {
		return known, err
	}
	c.Began, c.Only = time.Now(), append([]string{}, c.Only...) // nil would be all tools
	c.Woken, c.Said = c.Began, c.Began
	p.mu.Lock()
	if r := p.running[c.Parent]; r != nil && !r.said.IsZero() {
		c.Said, c.Options = r.said, r.options
	}
	p.mu.Unlock()
	if err := p.kin.add(c); err != nil {
		return c, err
	}
	whole := context.WithoutCancel(ctx) // half of it would be lost
	if err = ctx.Err(); err == nil {    // else who stopped the turn has not seen c
		err = p.budget.Spend(ctx, p.spender(taskOf(c)), "", budget.Amounts{budget.Subagents: 1})
	}
	if err == nil {
		err = p.insist(ctx, "begin helper "+c.ID, func(context.Context) error { return p.begin(whole, c) })
	}
	if err != nil {
		p.kin.drop(c.ID)
		_ = p.helpers.Delete(whole, c.ID) // what is left of it is lost, and ends
	}
	return c, err
}

// begin notes c and gives it its task.
func (p *Pool) begin(ctx context.Context, c tools.Child) error {
	rev, err := p.helpers.Put(ctx, c.ID, c, store.Any)
	if err != nil {
		return err
	}
	p.kin.note(c, rev)
	return p.push(ctx, taskOf(c))
}

// searchChat returns the helper that does c's work already, if there is one.
func (p *Pool) found(ctx context.Context, c tools.Child) (known tools.Child, err error) {
	if err = p.know(ctx); err != nil {
		return known, err
	}
	known, _, err = p.helpers.Get(ctx, c.ID)
	like := p.kin.like(c)
	switch {
	case errors.Is(err, store.ErrNotFound) && like != "" && !c.Report:
		known, _, err = p.helpers.Get(ctx, like)
	case err == nil && known.Call != c.Call:
		err = fmt.Errorf("begin helper: its ID %s is another's", c.ID)
	}
	return known, ignore(err, store.ErrNotFound)
}

// taskOf is the message that begins c. Who pays for the run of a job pays for
// those who help it.
func taskOf(c tools.Child) chat.Message {
	m := chat.Message{
		ID: c.ID, Account: "agent", At: c.At, From: c.From, Group: c.Group, Text: c.Task, Time: c.Began,
		Origin: chat.FromParent, In: helperSession(c.ID), Tainted: c.Tainted, Sources: c.Sources,
	}
	if c.Options != nil {
		m.Options = &chat.RunOptions{Job: c.Options.Job, Run: c.Options.Run, RetriedJob: c.Options.RetriedJob}
	}
	return m
}

// reportOf is the message that tells c's parent how it ended; the turn that
// answers it speaks in the chat (D-092), of a quiet task if there is something
// to say.
func reportOf(c tools.Child) chat.Message {
	how := "failed"
	if c.State == tools.ChildAnswered {
		how = "completed successfully"
	}
	m := chat.Message{
		ID: reportPrefix + c.ID, Account: "agent", At: c.At, From: c.From, Group: c.Group, Time: c.Ended, Origin: chat.FromSubagent, Tainted: c.Tainted, Sources: c.Sources,
		Text: fmt.Sprintf(wordsReport, c.Label, how, c.Task, cmp.Or(c.Result, wordsNoResult)),
	}
	if c.Parent != c.At.Session() {
		m.In = c.Parent
	}
	if e := c.Options; e != nil {
		m.Options = &chat.RunOptions{Job: e.Job, Run: e.Run, Model: e.Model, Quiet: e.Quiet, RetriedJob: e.RetriedJob}
	}
	return m
}

// Await returns the helper id once it has ended. Of one that nobody knows the
// error is store.ErrNotFound.
func (p *Pool) Await(ctx context.Context, id string) (c tools.Child, err error) {
	err = p.know(ctx)
	var news chan struct{}
	for err == nil && p.kin.with(id, func(k *kid) { news = k.news }) {
		select {
		case <-news:
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
	}
	if err == nil {
		c, _, err = p.helpers.Get(ctx, id)
	}
	return c, err
}

// Children returns the helpers of the session id, of "" those of all, those too
// that ended within a week.
func (p *Pool) Children(ctx context.Context, id chat.SessionID) (all []tools.Child, err error) {
	for e, err := range p.helpers.Each(ctx, "") {
		switch {
		case errors.Is(err, store.ErrDamaged):
			if _, told := p.kin.damaged.LoadOrStore(e.Key, true); !told { // P21
				p.log.Error("the record of a helper is damaged", "helper", e.Key, "err", err)
			}
		case err != nil:
			return nil, fmt.Errorf("list helpers: %w", err)
		case id == "" || e.Value.Parent == id:
			all = append(all, e.Value)
		}
	}
	return all, nil
}

// restoreChild replaces the record of a helper that was damaged while the helper
// works (P21).
func restoreChild(f *family) store.OnDamage[tools.Child] {
	return func(id string, err error) (c tools.Child, _ error) {
		if f.with(id, func(k *kid) { c = k.Child }) {
			return c, nil
		}
		return c, err
	}
}

// change has f change the record of a helper, if there is one; f says whether it
// does.
func (p *Pool) change(ctx context.Context, id string, f func(*tools.Child) bool) (tools.Child, error) {
	c, rev, err := p.helpers.Update(ctx, id, func(c *tools.Child) error {
		if !f(c) {
			return store.ErrUnchanged
		}
		return nil
	})
	if err == nil {
		p.kin.note(c, rev)
	}
	return c, ignore(err, store.ErrNotFound)
}

// settle notes how a helper ended, unless it has ended before, and tells its
// parent where that is due. It is done again until it is done: each part of it
// takes effect once.
func (p *Pool) settle(ctx context.Context, id string, how tools.ChildState, result string, more func(*tools.Child)) error {
	c, err := p.change(ctx, id, func(c *tools.Child) bool {
		if c.State.Over() {
			return false
		}
		c.State, c.Ended, c.Result = how, time.Now(), chat.Clip(strings.ToValidUTF8(result, "\uFFFD"), tools.MaxChildText, "")
		if more != nil {
			more(c)
		}
		return true
	})
	if err == nil && c.Report {
		err = p.push(ctx, reportOf(c))
		if err == nil {
			_, err = p.change(ctx, id, func(c *tools.Child) bool { c.Report = false; return true })
		}
	}
	return err
}

// NoteDelivery notes what became of the message that tells the report run of a
// subagent: with reason "" the network has taken it, else it has refused it for
// that reason, and may take it yet (P26). Anything else is none of its business.
func (p *Pool) NoteDelivery(ctx context.Context, run, reason string) error {
	id, isReport := strings.CutPrefix(run, reportPrefix)
	if !isReport {
		return nil
	}
	_, err := p.change(ctx, id, func(c *tools.Child) bool {
		isNews := c.Undelivered != reason
		c.Undelivered = reason
		return isNews
	})
	return ignore(err, store.ErrDamaged)
}

func ignore(err, such error) error {
	if errors.Is(err, such) {
		return nil
	}
	return err
}
