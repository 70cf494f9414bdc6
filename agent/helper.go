package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

// assume makes the turn that of a helper, if m is one's task: it has what its
// record says.
func (t *turn) assume(m chat.Message) error {
	if err := t.pool.insist(t.worker.hard, "see to helpers", t.pool.know); err != nil {
		return err
	}
	fresh := func(k *kid) bool { return k.State == tools.ChildPaused || time.Since(k.Woken) <= t.settings.MaxAge }
	if m.Origin == chat.FromSubagent || t.pool.kin.awaits(t.session.ID, fresh) { // a report is never too old, nor who waits for one
		t.settings.MaxAge = 0
	}
	if helperOf(m.In) == "" {
		return nil
	}
	c, young := new(tools.Child), false
	if !t.pool.kin.with(helperOf(m.In), func(k *kid) { *c, young = k.Child, fresh(k) }) { // it was stopped a moment ago
		t.run.stop(errStopped)
		return errStopped
	}
	t.child = c
	if t.settings.Models[c.Model].Model != nil {
		t.name, t.model = c.Model, t.settings.Models[c.Model]
	}
	if c.Patience > 0 {
		t.model.Model = llm.Limit(c.Patience)(t.model.Model)
	}
	if young {
		t.settings.MaxAge = 0
	}
	t.settings.Rounds = cmp.Or(c.Rounds, t.settings.Rounds)
	t.scope.Model, t.scope.Depth, t.scope.Agent, t.scope.Only = t.name, c.Depth, c.Agent, c.Only
	t.scope.Root, t.scope.RootTurn = t.pool.kin.root(t.session.ID)
	return nil
}

// lower has m answered with the rights that the person has by now, if those are
// less than when it was said (R-S24). Of jobs the scheduler has asked.
func (t *turn) lower(ctx context.Context, m chat.Message) error {
	if t.pool.config.Role == nil || m.Origin == chat.FromSchedule {
		return nil
	}
	role, err := t.pool.config.Role(ctx, m.At, m.From)
	switch {
	case err != nil:
		return fmt.Errorf("ask for the role of %s: %w", m.From.ID, err)
	case role == chat.Unknown:
		t.run.stop(errStopped)
		return errStopped
	case role != chat.Owner:
		t.openTurn().LimitRole(role)
	}
	return nil
}

// system returns the instructions of the session.
func (t *turn) system(ctx context.Context) (string, error) {
	if t.child != nil {
		return t.pool.config.Memory.Helper(ctx, t.scope.Whose(), t.child.Instruction)
	}
	return t.pool.config.Memory.System(ctx, t.session.ID, t.scope.Whose())
}

// halt waits while the helper is paused, and holds no place meanwhile.
func (t *turn) halt(ctx context.Context) error {
	for paused := false; t.child != nil; paused = true {
		var now kid
		t.pool.kin.with(t.child.ID, func(k *kid) { k.rounds, now = len(t.openTurn().AllAnswers()), *k })
		switch {
		case now.State != tools.ChildPaused && paused:
			return t.worker.hold(ctx, t.pool.turns)
		case now.State != tools.ChildPaused:
			return nil
		case !paused:
			t.pause("paused")
		}
		select {
		case <-now.news:
		case <-ctx.Done():
			return ctx.Err()
		case <-t.worker.soft.Done():
			return tools.ErrClosing
		}
	}
	return nil
}

// conclude ends the turn with its last words, and says so: unless a helper was told
// something meanwhile, which it answers first, however many its rounds were (C-033).
func (t *turn) conclude(ctx context.Context) (bool, error) {
	if n := t.openTurn().MessageCount(); t.child != nil {
		if err := t.join(ctx); err != nil || t.openTurn().MessageCount() > n {
			return false, err
		}
	}
	how, o := conversation.Answered, t.openTurn()
	if o.Text() == "" && len(o.Told()) == 0 && !t.exhausted() {
		how = conversation.Failed
	}
	return true, t.end(t.worker.hard, how, t.text())
}

// exhausted says whether all rounds of the turn were used, with tools.
func (t *turn) exhausted() bool {
	o := t.openTurn()
	return len(o.Answers()) >= t.settings.Rounds && len(o.Steps()) > 0
}

// failure says why there is no answer: to people kindly, to agents as it is.
func (t *turn) failure(err error) string {
	var e *llm.Error
	if t.child != nil && errors.As(err, &e) {
		return "LLM API error: " + chat.Clip(err.Error(), 500, "")
	}
	return conversation.Join(t.openTurn().Notice(), t.openTurn().Text(), Kindly(t.pool.texts.Model, err))
}

// settled sees to helpers once the turn has ended: those it waited for end with
// it, as nobody wants to know any more, and of a helper's own turn it is noted
// what came of it.
func (t *turn) settled(ctx context.Context) error {
	id, last := t.session.ID, t.session.History.LastTurn()
	t.pool.kin.turnEnded(last.First.Key())
	err := t.pool.know(ctx)
	if err == nil {
		err = t.pool.dismissAll(ctx, func(k *kid) bool { return k.Parent == id && !k.Report })
	}
	if err != nil || helperOf(id) == "" {
		return err
	}
	how := map[conversation.Outcome]tools.ChildState{conversation.Answered: tools.ChildAnswered, conversation.Stopped: tools.ChildStopped}[last.Outcome]
	return t.pool.settle(ctx, helperOf(id), cmp.Or(how, tools.ChildFailed), last.Text, func(c *tools.Child) {
		c.Tainted, c.Sources = c.Tainted || last.Untrusted(), chat.JoinSources(c.Sources, last.Sources...)
		c.Pure = how == tools.ChildAnswered && t.pure(last.Steps)
	})
}

// pure says whether steps changed nothing, as far as is known.
func (t *turn) pure(steps []chat.Step) bool {
	return t.kit != nil && !slices.ContainsFunc(steps, func(s chat.Step) bool {
		known, _ := t.kit.Tool(s.Tool)
		return !known.ReadOnly
	})
}

// dismiss ends a helper and those that work for it. Its parent is told, if it was
// to be, and told is true. What people said that it has not heard is the
// parent's, unless that was stopped since (C-033).
func (p *Pool) dismiss(ctx context.Context, id, why string, told bool) error {
	var parent chat.SessionID
	p.kin.with(id, func(k *kid) { parent = k.Parent })
	err := p.settle(ctx, id, tools.ChildStopped, why, func(c *tools.Child) { c.Report = c.Report && told })
	p.mu.Lock()
	if r := p.running[helperSession(id)]; r != nil && err == nil {
		if above := p.running[parent]; above != nil {
			r.asked = above.asked
		}
		r.stop(errStopped)
	}
	p.mu.Unlock()
	return errors.Join(err, p.dismissAll(ctx, of(helperSession(id))))
}

// dismissAll ends those that are wanted: nobody waits for them any more.
func (p *Pool) dismissAll(ctx context.Context, want func(*kid) bool) (err error) {
	for _, k := range p.kin.all(want) {
		err = errors.Join(err, p.dismiss(ctx, k.ID, "It was stopped, because nobody waits for it any more.", false))
	}
	return err
}

// late takes care of jobs in the session of a helper that has ended, or that
// nobody knows any more: its task is done, and what a person said is said to its
// parent (C-033).
func (w *worker) late(jobs []job) (bool, error) {
	id := helperOf(w.id)
	if id == "" {
		return false, nil
	}
	if err := w.pool.know(w.hard); err != nil || w.pool.kin.with(id, func(k *kid) { k.taken = true }) {
		return err != nil, err
	}
	c, _, err := w.pool.helpers.Get(w.hard, id)
	if errors.Is(err, store.ErrDamaged) { // P21
		m := jobs[0].Message
		c = tools.Child{
			ID: id, Label: id, Task: m.Text, Parent: m.At.Session(), At: m.At, From: m.From, Group: m.Group, Tainted: m.Tainted, Sources: m.Sources,
			Began: m.Time, Ended: time.Now(), State: tools.ChildFailed, Result: "Its record is damaged.", Report: true,
		}
		err = w.pool.helpers.Set(w.hard, id, c)
	}
	c.ID = id // also of one that was forgotten
	for _, j := range jobs {
		if err = ignore(err, store.ErrNotFound); err == nil {
			err = w.pool.insist(w.hard, "end "+j.Key(), func(ctx context.Context) error { return w.bounce(ctx, c, j) })
		}
	}
	return true, err
}

// bounce ends j, which came too late for c. The parent learns whom words were
// meant for, if a person chose that.
func (w *worker) bounce(ctx context.Context, c tools.Child, j job) (err error) {
	m, deliver := j.Message, w.pool.Deliver
	m.In, m.Account = cmp.Or(c.Parent, m.At.Session()), m.Account+"+" // the old key was seen
	if m.In == m.At.Session() && !strings.HasPrefix(m.Text, "/") {
		m.In = "" // of words that might pass for a command it stays
	}
	if strings.HasSuffix(m.ID, toldTo(c.ID)) {
		m.Quote = &chat.Quote{From: "you", Text: fmt.Sprintf(wordsMeantFor, label(c))}
		m.Tainted, m.Sources = m.Tainted || c.Tainted, chat.JoinSources(m.Sources, c.Sources...) // the label may be untrusted
		deliver = w.pool.push                                                                    // to the parent, not to another helper
	}
	if m.Origin == chat.FromPerson {
		err = deliver(ctx, m)
	} else {
		err = w.pool.vanished(ctx, c.ID)
	}
	if err == nil {
		err = w.dequeue(ctx, j)
	}
	return err
}

// vanished notes that the task of a helper is nowhere, unless it has ended.
func (p *Pool) vanished(ctx context.Context, id string) error {
	return p.settle(ctx, id, tools.ChildFailed, "Its task was lost.", nil)
}

// tend sees to helpers: as the Pool begins, soon after, and now and then.
func (p *Pool) tend(ctx context.Context) {
	for n := 0; p.insist(ctx, "see to helpers", p.inspect) == nil && ctx.Err() == nil; n++ {
		wait := time.Hour
		if n < 2 {
			wait = lostAfter
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// inspect gives those helpers their task once more whose task nobody has seen,
// and ends them if that is in vain; it reports what was not reported yet, and
// forgets those that ended long ago.
func (p *Pool) inspect(ctx context.Context) error {
	err := p.know(ctx)
	all, bad := p.Children(ctx, "")
	for _, c := range all {
		lost, again := false, false
		p.kin.with(c.ID, func(k *kid) {
			lost, again = !k.taken && time.Since(k.since) >= lostAfter, k.again
			k.again = lost
		})
		switch {
		case lost && !again:
			bad = errors.Join(bad, p.push(ctx, taskOf(c))) // dropped, if it was pushed before
		case lost, c.State.Over() && c.Report:
			bad = errors.Join(bad, p.vanished(ctx, c.ID))
		case c.State.Over() && time.Since(c.Ended) > keepFor:
			bad = errors.Join(bad, p.forgetChild(ctx, all, c.ID))
		}
	}
	return errors.Join(err, bad)
}

// forgetChildren ends and forgets the helpers of the session id, which is to be
// forgotten, and ends its helper, if it is one's.
func (p *Pool) forgetChildren(ctx context.Context, id chat.SessionID) error {
	if err := p.know(ctx); err != nil {
		return err
	}
	all, err := p.Children(ctx, "")
	if self := helperOf(id); err == nil && self != "" {
		err = p.dismiss(ctx, self, "It was forgotten.", true)
	}
	if err == nil {
		err = p.forgetThose(ctx, all, id)
	}
	return err
}

// forgetThose ends and forgets those of all that work for the session id.
func (p *Pool) forgetThose(ctx context.Context, all []tools.Child, id chat.SessionID) (err error) {
	for _, c := range all {
		if c.Parent == id && err == nil {
			err = p.forgetChild(ctx, all, c.ID)
		}
	}
	return err
}

// forgetChild ends and forgets a helper, with all that was said in its session,
// and those of all that work for it: to read the records of each one's takes long.
func (p *Pool) forgetChild(ctx context.Context, all []tools.Child, id string) error {
	err, session := p.dismiss(ctx, id, "It was forgotten.", false), helperSession(id)
	if err == nil {
		err = p.forget(ctx, session, func() error { return p.forgetThose(ctx, all, session) })
	}
	if err == nil {
		err = p.helpers.Delete(ctx, id)
	}
	if err != nil {
		return fmt.Errorf("forget helper %s: %w", id, err)
	}
	return nil
}
