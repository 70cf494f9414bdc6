package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

// assume makes the turn that of a helper, if m is for one: it has what its record says.
func (t *turn) assume(m chat.Message) error {
	if m.Origin == chat.FromSubagent { // a report is never too old
		t.MaxAge = 0
	}
	id := helperOf(m)
	if id == "" {
		return nil
	}
	k, alive := t.kin.get(id)
	if !alive { // it was stopped a moment ago
		t.run.stop(errStopped)
		return errStopped
	}
	c := k.Child
	t.child = &c
	if t.Models[c.Model].Model != nil {
		t.name, t.model = c.Model, t.Models[c.Model]
	}
	if c.Patience > 0 {
		t.model.Model = llm.Limit(c.Patience)(t.model.Model)
	}
	if t.Rounds = cmp.Or(c.Rounds, t.Rounds); c.State == tools.ChildPaused || time.Since(c.Woken) <= t.MaxAge { // it was paused, and not forgotten
		t.MaxAge = 0
	}
	t.scope.Model, t.scope.Depth, t.scope.Agent, t.scope.Only = t.name, c.Depth, c.Agent, append([]string{}, c.Only...)
	return nil
}

// system returns the instructions of the session.
func (t *turn) system(ctx context.Context) (string, error) {
	if t.child != nil {
		return t.Memory.Helper(ctx, t.scope.Whose(), t.child.Instruction)
	}
	return t.Memory.System(ctx, t.session.id, t.scope.Whose())
}

// halt waits while the helper is paused, and holds no place meanwhile.
func (t *turn) halt(ctx context.Context) error {
	if t.child == nil {
		return nil
	}
	for paused := false; ; paused = true {
		var k kid
		alive := t.kin.with(t.child.ID, func(now *kid) {
			now.rounds = len(t.history.open.all())
			k = *now
		})
		switch {
		case alive && k.State == tools.ChildPaused:
		case paused:
			return t.hold(ctx, t.turns)
		default:
			return nil
		}
		if !paused {
			t.pause("paused")
		}
		select {
		case <-k.news:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.soft.Done():
			return tools.ErrClosing
		}
	}
}

// failure says for whom the turn is why it has no answer.
func (t *turn) failure(err error) string {
	var e *llm.Error
	switch o := t.history.open; {
	case t.child == nil:
		return joined(o.notice(), o.text(), llm.Kindly(err))
	case errors.As(err, &e):
		return "LLM API error: " + head(err.Error(), 500)
	}
	return llm.Kindly(err)
}

// settled notes what came of the helper whose turn has ended. The helpers that
// a turn waited for end with it: nobody wants to know any more.
func (t *turn) settled(ctx context.Context) error {
	self, last := t.session.id, t.history.last
	if err := t.know(ctx); err != nil {
		return err
	}
	left := t.kin.under(self, func(c tools.Child) bool { return !c.Report })
	if err := t.dismissKids(ctx, left, "nobody waits for it any more"); err != nil {
		return err
	}
	t.kin.forget(last.first.Key())
	id := helperOf(last.first)
	if id == "" {
		return nil
	}
	return t.settle(ctx, id, func(c *tools.Child) {
		c.State, c.Result, c.Tainted = tools.ChildFailed, last.text, c.Tainted || last.tainted
		switch last.how {
		case answered:
			c.State, c.Pure = tools.ChildAnswered, t.pure(last.steps)
		case stopped:
			c.State = tools.ChildStopped
		}
		if c.Report && c.State != tools.ChildAnswered {
			c.Result = progress(last.steps, c.Result)
		}
	})
}

// pure says whether steps changed nothing.
func (t *turn) pure(steps []chat.Step) bool {
	return t.kit != nil && !slices.ContainsFunc(steps, func(s chat.Step) bool {
		known, _ := t.kit.Tool(s.Tool)
		return !known.ReadOnly
	})
}

// progress tells how far a helper came that failed.
func progress(steps []chat.Step, failure string) string {
	var b strings.Builder
	done := slices.DeleteFunc(slices.Clone(steps), func(s chat.Step) bool { return s.State == chat.Failed })
	if len(done) > 0 {
		b.WriteString("Completed steps:\n")
	}
	for _, s := range done[max(0, len(done)-3):] {
		b.WriteString("- " + s.Tool + "\n")
	}
	return joined(b.String(), "Failure:\n- "+failure)
}

// dismissKids ends helpers that nobody is to hear of any more.
func (p *Pool) dismissKids(ctx context.Context, kids []kid, why string) error {
	var errs []error
	for _, k := range kids {
		errs = append(errs, p.stopChild(ctx, k.ID, why, false))
	}
	return errors.Join(errs...)
}

// stopChild ends a helper. Its parent is told, if that is due.
func (p *Pool) stopChild(ctx context.Context, id, why string, tell bool) error {
	err := p.settle(ctx, id, func(c *tools.Child) {
		c.State, c.Result, c.Report = tools.ChildStopped, why, c.Report && tell
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.running[helperSession(id)]; r != nil && err == nil {
		r.asked = time.Now()
		r.stop(errStopped)
	}
	return err
}

// late takes care of jobs in the session of a helper that has ended, or that
// nobody knows any more: its task is done, and what a person said is for its
// parent (C-033).
func (l *lane) late(jobs []job) (bool, error) {
	id := helperOf(jobs[0].Message)
	if id == "" {
		return false, nil
	}
	if err := l.know(l.hard); err != nil {
		return false, err
	}
	if l.kin.with(id, func(k *kid) { k.taken = true }) {
		return false, nil
	}
	c, _, err := store.Load[tools.Child](l.hard, l.helpers, id)
	if errors.Is(err, store.ErrDamaged) {
		c, err = l.lost(id, jobs[0].Message)
	}
	if err = ignore(err, store.ErrNotFound); err != nil {
		return false, err
	}
	for _, j := range jobs {
		if err := l.bounce(c, j); err != nil {
			return false, err
		}
	}
	l.uncount(jobs, nil)
	return true, nil
}

// lost makes a record in the place of one that is damaged (P21).
func (l *lane) lost(id string, m chat.Message) (tools.Child, error) {
	c := tools.Child{
		ID: id, Label: id, Task: m.Text, Parent: m.At.Session(), At: m.At, From: m.From, Group: m.Group, Tainted: m.Tainted,
		Began: m.Time, Ended: time.Now(), State: tools.ChildFailed, Result: "Its record is damaged.", Report: true,
	}
	_, err := store.Save(l.hard, l.helpers, id, c, store.Any)
	return c, err
}

// bounce ends j, which came too late for c.
func (l *lane) bounce(c tools.Child, j job) error {
	return l.insist(l.hard, "end "+j.Key(), func(ctx context.Context) (err error) {
		if m := j.Message; m.Origin != chat.FromPerson {
			err = l.settle(ctx, c.ID, vanish)
		} else {
			m.In, m.Account = c.Parent, m.Account+"+" // the old key was seen
			if m.In == m.At.Session() {
				m.In = ""
			}
			err = l.Deliver(ctx, m)
		}
		if err == nil {
			err = j.item.Done(ctx)
		}
		return err
	})
}

// tend sees to the helpers of former lives as the Pool begins, and now and then
// to those that are lost, and to those that ended long ago.
func (p *Pool) tend(ctx context.Context) {
	if p.insist(ctx, "see to the helpers there are", p.revive) != nil {
		return
	}
	for wait := lostAfter; ; wait = time.Hour {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if err := p.sweep(ctx); err != nil && ctx.Err() == nil {
			p.Log.Error("helpers not seen to", "err", err)
		}
	}
}

// revive gives the helpers that have not ended their task again, which is
// dropped if it is there, and tells of those whose report is still due.
func (p *Pool) revive(ctx context.Context) error {
	if err := p.know(ctx); err != nil {
		return err
	}
	all, err := p.Children(ctx, "")
	for _, c := range all {
		switch {
		case err != nil:
		case !c.State.Over():
			err = p.push(ctx, taskOf(c))
		case c.Report:
			err = p.settle(ctx, c.ID, vanish)
		}
	}
	return err
}

// vanish is the end of a helper whose task is nowhere.
func vanish(c *tools.Child) { c.State, c.Result = tools.ChildFailed, "Its task was lost." }

// sweep ends the helpers whose task is nowhere, and forgets those that ended
// long ago.
func (p *Pool) sweep(ctx context.Context) error {
	var errs []error
	for _, k := range p.kin.all(func(tools.Child) bool { return true }) {
		if !k.taken && time.Since(k.Began) > lostAfter {
			errs = append(errs, p.settle(ctx, k.ID, vanish))
		}
	}
	all, err := p.Children(ctx, "")
	for _, c := range all {
		if c.State.Over() && !c.Report && time.Since(c.Ended) > keepFor {
			errs = append(errs, p.forgetChild(ctx, c.ID))
		}
	}
	return errors.Join(append(errs, err)...)
}

// forgetChildren ends and forgets the helpers of the session id, which is to be
// forgotten; if it is a helper's, that has ended, too.
func (p *Pool) forgetChildren(ctx context.Context, id chat.SessionID) error {
	if self, helps := strings.CutPrefix(string(id), helperPrefix); helps {
		if err := p.settle(ctx, self, func(c *tools.Child) { c.State, c.Result = tools.ChildStopped, "It was forgotten." }); err != nil {
			return err
		}
	}
	all, err := p.Children(ctx, id)
	for _, c := range all {
		if err == nil {
			err = p.stopChild(ctx, c.ID, "its parent was forgotten", false)
		}
		if err == nil {
			err = p.forgetChild(ctx, c.ID)
		}
	}
	return err
}

// forgetChild forgets a helper and all that was said in its session.
func (p *Pool) forgetChild(ctx context.Context, id string) error {
	err := p.Forget(ctx, helperSession(id))
	if err == nil {
		err = p.helpers.Delete(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("forget helper %s: %w", id, err)
	}
	return nil
}
