package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/deadletter"
	"parley/chat"
	"parley/llm"
)

// suspendCrashing takes j, over which the process died again and again, out of
// the way of others. It is tried once more when the process has proved healthy (P8).
func (w *worker) suspendCrashing(j job) error {
	return w.inSession(j, func(t *turn) error {
		if err := t.catchUp(w.hard); err != nil || len(t.jobs) == 0 {
			return err
		}
		w.pool.log.Error("message suspended: the process died over it again and again",
			"message", j.Key(), "session", w.id, "again in", deadletter.HealthyTime)
		if j.command == "" {
			t.session.Keep(conversation.Record{Suspended: &conversation.Suspension{Key: j.Key()}})
		}
		return t.suspend(deadletter.Suspension{Since: time.Now()})
	})
}

// suspend saves that the turn is suspended, and with it the messages it answers.
func (t *turn) suspend(why deadletter.Suspension) error {
	if err := t.flush(t.worker.hard); err != nil {
		return err
	}
	for _, j := range t.jobs {
		why.Key = j.Key()
		err := t.pool.insist(t.worker.hard, "suspend "+why.Key, func(ctx context.Context) error {
			return t.pool.suspended.Add(ctx, why, j.item)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// giveUp makes j a dead letter and says so (P8).
func (w *worker) giveUp(j job) error {
	return w.inSession(j, func(t *turn) error {
		if err := t.catchUp(w.hard); err != nil || len(t.jobs) == 0 { // it was answered
			return err
		}
		return t.giveUp()
	})
}

// giveUp makes the first of the jobs a dead letter, and says so.
func (t *turn) giveUp() error {
	j := t.jobs[0]
	t.pool.log.Error("message given up: the process died over it again and again",
		"message", j.Key(), "session", t.session.ID)
	if err := t.worker.keepDeadLetter(j); err != nil {
		return err
	}
	if t.session.History.IsSuspended(j.Key()) {
		t.session.Keep(conversation.Record{Resumed: j.Key()})
	}
	t.session.History.Begin(j.Message)
	return t.end(t.worker.hard, conversation.GivenUp, t.pool.texts.Turn.GivenUp)
}

// keepDeadLetter makes j a dead letter. It stays in the inbox, too.
func (w *worker) keepDeadLetter(j job) error {
	return w.pool.insist(w.hard, "keep a dead letter", func(ctx context.Context) error {
		return w.pool.letters.Put(ctx, j.item.ID, j.item.Body)
	})
}

// inSession calls do with a turn of j, over which the process died, while nothing
// else is under way in the session. Then j is not under suspicion any more.
func (w *worker) inSession(j job, do func(*turn) error) error {
	a := activity.New(w.pool.texts.Doing.Suspending)
	if err := w.pool.activities.Enter(w.hard, w.id, a, activity.ErrBusy); err != nil {
		return err
	}
	defer w.pool.activities.Leave(w.id)
	s, err := w.openFor(j.Message)
	if err != nil {
		return err
	}
	if err := do(&turn{session: s, pool: w.pool, worker: w, jobs: []job{j}, activity: a}); err != nil {
		return err
	}
	w.pool.sessions.Cache(s)
	w.pool.guard.ClearSuspect(j.Key())
	return nil
}

// resume goes on with the turn of the first job, if that was suspended. gone
// reports that it was suspended in a conversation that has ended since.
func (t *turn) resume() (gone bool) {
	key := t.jobs[0].Key()
	if t.session.History.IsSuspended(key) {
		t.session.Keep(conversation.Record{Resumed: key})
		return false
	}
	return t.jobs[0].resumed != nil && (t.openTurn() == nil || !t.openTurn().Has(key))
}

// outages are the kinds of errors of a model that may be back later.
var outages = []llm.Kind{llm.Overloaded, llm.RateLimited, llm.Unreachable, llm.TimedOut, llm.Cut}

// canWaitForModel reports whether err is that of a model that may be back later,
// and the turn is one that a person waits for and that may be answered then.
func (t *turn) canWaitForModel(err error) bool {
	e, isModels := errors.AsType[*llm.Error](err)
	if !isModels || !slices.Contains(outages, e.Kind) || t.pool.config.Brief {
		return false
	}
	m := t.openTurn().First()
	isPersons := m.Origin == chat.FromPerson && m.In == "" && t.subagent == nil && t.jobs[0].command == ""
	return isPersons && t.settings.MaxAge > 0 && t.pool.suspended.HasRoom()
}

// waitForModel suspends the turn until its model is back after err, and tells the
// person once.
func (t *turn) waitForModel(err error) error {
	t.pool.log.Warn("the model is out of reach, its answer is tried again later",
		"session", t.session.ID, "model", t.name, "err", err)
	m := t.openTurn().First()
	r := m.Reply()
	r.ID += "#later" // the answer will have the plain ID
	r.Also = otherIDs(t.jobs, r.Quote)
	r.Failed = true
	if e, isModels := errors.AsType[*llm.Error](err); isModels {
		r.Text = conversation.Join(t.openTurn().Notice(), conversation.OutageText(t.pool.texts, e.Kind))
	}
	t.session.Keep(conversation.Record{Suspended: &conversation.Suspension{Key: m.Key(), Whole: true}})
	if err := t.flush(t.worker.hard); err != nil {
		return err
	}
	t.live.Close()
	if t.jobs[0].resumed == nil { // else the person was told before
		err := t.pool.insist(t.worker.hard, "send reply", func(ctx context.Context) error {
			return t.pool.config.Send(ctx, r)
		})
		if err != nil {
			return err
		}
	}
	return t.suspend(deadletter.Suspension{Since: time.Now(), Model: t.name})
}
