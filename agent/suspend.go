package agent

import (
	"context"
	"errors"
	"time"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/deadletter"
	"parley/agent/modelerrors"
	"parley/chat"
	"parley/llm"
)

// suspendCrashing takes d, over which the process died again and again, out of
// the way of others. It is tried once more when the process has proved healthy (P8).
func (w *worker) suspendCrashing(d delivery) error {
	return w.inSession(d, func(t *turn) error {
		if err := t.catchUp(w.hard); err != nil || len(t.deliveries) == 0 {
			return err
		}
		w.pool.log.Error("message suspended: the process died over it again and again",
			"message", d.Key(), "session", w.id, "again in", deadletter.HealthyTime)
		if d.command == "" {
			t.session.Keep(conversation.Record{Suspended: &conversation.Suspension{Key: d.Key()}})
		}
		return t.suspend(deadletter.Suspension{Since: time.Now()})
	})
}

// suspend saves that the turn is suspended, and with it the messages it answers.
func (t *turn) suspend(why deadletter.Suspension) error {
	if err := t.flush(t.worker.hard); err != nil {
		return err
	}
	for _, d := range t.deliveries {
		why.Key = d.Key()
		err := t.pool.insist(t.worker.hard, "suspend "+why.Key, func(ctx context.Context) error {
			return t.pool.suspended.Add(ctx, why, d.item)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// giveUp makes d a dead letter and says so (P8).
func (w *worker) giveUp(d delivery) error {
	return w.inSession(d, func(t *turn) error {
		if err := t.catchUp(w.hard); err != nil || len(t.deliveries) == 0 { // it was answered
			return err
		}
		return t.giveUp()
	})
}

// giveUp makes the first of the deliveries a dead letter, and says so.
func (t *turn) giveUp() error {
	d := t.deliveries[0]
	t.pool.log.Error("message given up: the process died over it again and again",
		"message", d.Key(), "session", t.session.ID)
	if err := t.worker.keepDeadLetter(d); err != nil {
		return err
	}
	if t.session.History.IsSuspended(d.Key()) {
		t.session.Keep(conversation.Record{Resumed: d.Key()})
	}
	t.session.History.Begin(d.Message)
	return t.end(t.worker.hard, conversation.GivenUp, t.pool.texts.Turn.GivenUp)
}

// keepDeadLetter makes d a dead letter. It stays in the inbox, too.
func (w *worker) keepDeadLetter(d delivery) error {
	return w.pool.insist(w.hard, "keep a dead letter", func(ctx context.Context) error {
		return w.pool.letters.Put(ctx, d.item.ID, d.item.Body)
	})
}

// inSession calls do with a turn of d, over which the process died, while nothing
// else is under way in the session. Then d is not under suspicion any more.
func (w *worker) inSession(d delivery, do func(*turn) error) error {
	a := activity.New(w.pool.texts.Doing.Suspending)
	why := activity.ErrBusy
	if w.beside { // the turn under way goes on to its end
		why = nil
	}
	if err := w.pool.activities.Enter(w.hard, w.id, a, why); err != nil {
		return err
	}
	defer w.pool.activities.Leave(w.id)
	s, err := w.openFor(d.Message)
	if err != nil {
		return err
	}
	if err := do(&turn{session: s, pool: w.pool, worker: w, deliveries: []delivery{d}, activity: a}); err != nil {
		return err
	}
	w.pool.sessions.Cache(s)
	w.pool.guard.ClearSuspect(d.Key())
	return nil
}

// resume goes on with the turn of the first delivery, if that was suspended. gone
// reports that it was suspended in a conversation that has ended since.
func (t *turn) resume() (gone bool) {
	key := t.deliveries[0].Key()
	if t.session.History.IsSuspended(key) {
		t.session.Keep(conversation.Record{Resumed: key})
		return false
	}
	return t.deliveries[0].resumed != nil && (t.openTurn() == nil || !t.openTurn().Has(key))
}

// canWaitForModel reports whether err is that of a model that may be back later,
// and the turn is one that a person waits for and that may be answered then.
func (t *turn) canWaitForModel(err error) bool {
	e, isModels := errors.AsType[*llm.Error](err)
	if !isModels || !modelerrors.IsOutage(e.Kind) || t.pool.config.Brief {
		return false
	}
	m := t.openTurn().First()
	isPersons := m.Origin == chat.FromPerson && m.In == "" && t.subagent == nil && t.deliveries[0].command == ""
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
	r.Also = otherIDs(t.deliveries, r.Quote)
	r.Failed = true
	if e, isModels := errors.AsType[*llm.Error](err); isModels {
		r.Text = conversation.Join(t.openTurn().Notice(), modelerrors.OutageText(t.pool.texts, e.Kind))
	}
	t.session.Keep(conversation.Record{Suspended: &conversation.Suspension{Key: m.Key(), Whole: true}})
	if err := t.flush(t.worker.hard); err != nil {
		return err
	}
	t.live.Close()
	if t.deliveries[0].resumed == nil { // else the person was told before
		err := t.pool.insist(t.worker.hard, "send reply", func(ctx context.Context) error {
			return t.pool.config.Send(ctx, r)
		})
		if err != nil {
			return err
		}
	}
	return t.suspend(deadletter.Suspension{Since: time.Now(), Model: t.name})
}
