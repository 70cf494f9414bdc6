package agent

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/store"
)

const (
	healthyTime = 5 * time.Minute // a process that is up for so long tries again what was put aside (P8)

	leastOutage = time.Minute // between two looks whether a model is back that nobody else asks …
	mostOutage  = 10 * time.Minute
)

// A hold is why a message stays in the inbox and is not answered for now. Its
// turn is put aside in the session's log, and goes on where it was.
type hold struct {
	Key   string    `json:"key"` // of the message
	Since time.Time `json:"since"`
	Tried bool      `json:"tried,omitempty"` // of one that the process died over: its last try has begun
	Model string    `json:"model,omitempty"` // it waits for that model to come back
}

// holds are the messages that wait.
type holds struct {
	table store.Table[hold]
	nudge chan struct{} // wakes run

	mu sync.Mutex
	by map[string]*held
}

// A held message is one of this process.
type held struct {
	hold
	item *store.Item // nil until it was pulled
	free bool        // it is to be answered now …
	drop bool        // … or to be given up
	due  time.Time   // of one that waits for a model: when to look whether it is back
	wait time.Duration
}

func newHolds(bucket store.Bucket, log *slog.Logger) *holds {
	table := store.NewTable(bucket, store.Forget[hold](log, "suspended message"))
	return &holds{table: table, nudge: make(chan struct{}, 1), by: map[string]*held{}}
}

// load reads what former processes put aside. What another version of Parley
// left behind is removed.
func (h *holds) load(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.table.Retain(ctx, func(key string, is hold) bool {
		if key == suspicionKey {
			return true
		}
		if is.Key != key {
			return false
		}
		h.by[key] = &held{hold: is, free: is.Tried, due: time.Now().Add(leastOutage), wait: leastOutage}
		return true
	})
}

// keep holds item back from now on.
func (h *holds) keep(ctx context.Context, is hold, item store.Item) error {
	if err := h.table.Set(ctx, is.Key, is); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	now := &held{hold: is, item: &item, wait: leastOutage}
	if before := h.by[is.Key]; before != nil && before.Model != "" {
		now.wait = min(2*before.wait, mostOutage)
	}
	now.due = time.Now().Add(now.wait)
	h.by[is.Key] = now
	h.poke()
	return nil
}

// forget lets go of the message key, which is answered or given up.
func (h *holds) forget(ctx context.Context, key string) error {
	h.mu.Lock()
	known := h.by[key] != nil
	delete(h.by, key)
	h.mu.Unlock()
	if !known {
		return nil
	}
	return h.table.Delete(ctx, key)
}

// takes says whether item stays with h for now, and else what is known of it.
func (h *holds) takes(key string, item store.Item) (was *held, stays bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	is := h.by[key]
	if is == nil {
		return nil, false
	}
	if !is.free {
		is.item = &item
		return nil, true
	}
	was = new(*is)
	return was, false
}

// release has those answered that which wants, and returns how many there are.
func (h *holds) release(drop bool, which func(held) bool) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, is := range h.by {
		if is.free || !which(*is) {
			continue
		}
		n++
		is.free, is.drop = true, drop
		if is.item != nil {
			is.item.Later(0)
			is.item = nil
		}
	}
	return n
}

// back has those answered that wait for the model called name.
func (h *holds) back(name string) {
	h.release(false, func(is held) bool { return is.Model == name })
}

// all returns what is held, the oldest first.
func (h *holds) all() (all []held) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, is := range h.by {
		all = append(all, *is)
	}
	slices.SortFunc(all, func(a, b held) int { return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key)) })
	return all
}

func (h *holds) poke() {
	select {
	case h.nudge <- struct{}{}:
	default:
	}
}

// run releases what is due, in a process that began at began.
func (h *holds) run(ctx context.Context, began time.Time) {
	for {
		now, next := time.Now(), began.Add(healthyTime)
		h.release(false, func(is held) bool {
			if is.Model == "" {
				return !now.Before(next)
			}
			return !now.Before(is.due)
		})
		wait := time.Hour
		for _, is := range h.all() {
			due := is.due
			if is.Model == "" {
				due = next
			}
			if !is.free {
				wait = min(wait, due.Sub(now))
			}
		}
		select {
		case <-h.nudge:
		case <-time.After(wait):
		case <-ctx.Done():
			h.giveBack()
			return
		}
	}
}

// giveBack leaves what is held to the next process.
func (h *holds) giveBack() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, is := range h.by {
		if is.item != nil {
			is.item.Later(0)
			is.item = nil
		}
	}
}

// putAside takes j, over which the process died again and again, out of the way
// of others. It is tried once more when the process has proved healthy (P8).
func (w *worker) putAside(j job) error {
	err := w.inSession(j, func(t *turn) error {
		if err := t.catchUp(w.hard); err != nil || len(t.jobs) == 0 {
			return err
		}
		w.pool.log.Error("message put aside for now: the process died over it again and again", "message", j.Key(), "session", w.id, "again in", healthyTime)
		if j.command == "" {
			t.session.Keep(conversation.Record{Suspended: &conversation.Suspension{Key: j.Key()}})
		}
		return t.suspend(hold{Key: j.Key(), Since: time.Now()})
	})
	if err == nil {
		w.pool.guard.clearSuspect(j.Key())
	}
	return err
}

// suspend saves that the turn was put aside, and holds back its jobs.
func (t *turn) suspend(why hold) error {
	if err := t.flush(t.worker.hard); err != nil {
		return err
	}
	for _, j := range t.jobs {
		why.Key = j.Key()
		if err := t.pool.insist(t.worker.hard, "put aside "+why.Key, func(ctx context.Context) error { return t.pool.holds.keep(ctx, why, j.item) }); err != nil {
			return err
		}
	}
	return nil
}

// giveUp parks j and says so (P8).
func (w *worker) giveUp(j job) error {
	err := w.inSession(j, func(t *turn) error {
		if err := t.catchUp(w.hard); err != nil || len(t.jobs) == 0 { // it had its answer
			return err
		}
		return t.giveUp()
	})
	if err == nil {
		w.pool.guard.clearSuspect(j.Key())
	}
	return err
}

// giveUp parks the first of the jobs.
func (t *turn) giveUp() error {
	j := t.jobs[0]
	t.pool.log.Error("message parked: the process crashed with it again and again", "message", j.Key(), "session", t.session.ID)
	err := t.pool.insist(t.worker.hard, "park message", func(ctx context.Context) error {
		_, err := t.pool.parked.Put(ctx, j.Key(), j.item.Body, store.Any)
		return err
	})
	if err != nil {
		return err
	}
	if t.session.History.IsSuspended(j.Key()) {
		t.session.Keep(conversation.Record{Resumed: j.Key()})
	}
	t.session.History.Begin(j.Message)
	return t.end(t.worker.hard, conversation.GivenUp, t.pool.texts.Turn.GivenUp)
}

// inSession does what is to be done about j, which is not answered by it, while
// nothing else is at work in the session.
func (w *worker) inSession(j job, do func(*turn) error) error {
	run := &running{since: time.Now(), doing: w.pool.texts.Doing.PuttingAside, stop: func(error) {}}
	if err := w.pool.enter(w.hard, w.id, run, errBusy); err != nil {
		return err
	}
	defer w.pool.leave(w.id)
	s, err := w.openFor(j.Message)
	if err != nil {
		return err
	}
	if err := do(&turn{session: s, pool: w.pool, worker: w, jobs: []job{j}, run: run}); err != nil {
		return err
	}
	w.pool.idle.put(s)
	return nil
}

// takeUp goes on with the turn of the first job, if that was put aside. Of one
// that was put aside in a conversation that is over, gone is true.
func (t *turn) takeUp() (gone bool) {
	key := t.jobs[0].Key()
	if t.session.History.IsSuspended(key) {
		t.session.Keep(conversation.Record{Resumed: key})
		return false
	}
	return t.jobs[0].held != nil && (t.openTurn() == nil || !t.openTurn().Has(key))
}

// outage says whether err is one of a model that may be back later, and the
// person who waits for the answer is told that it will be tried again then.
func (t *turn) outage(err error) bool {
	var e *llm.Error
	o := t.openTurn()
	return !t.pool.config.Brief && errors.As(err, &e) && slices.Contains([]llm.Kind{llm.Overloaded, llm.RateLimited, llm.Unreachable, llm.TimedOut, llm.Cut}, e.Kind) &&
		o.First().Origin == chat.FromPerson && t.child == nil && o.First().In == "" && t.jobs[0].command == "" && t.settings.MaxAge > 0 && len(t.pool.holds.all()) < maxHeld
}

// maxHeld bounds how many messages wait for models.
const maxHeld = 1000

// await puts the turn aside until its model is back after err, and tells the
// person once.
func (t *turn) await(err error) error {
	t.pool.log.Warn("the model is out of reach, its answer is tried again later", "session", t.session.ID, "model", t.name, "err", err)
	m := t.openTurn().First()
	r := m.Reply()
	r.ID += "#later" // the answer has the other one
	var e *llm.Error
	errors.As(err, &e)
	r.Text, r.Also, r.Failed = conversation.Join(t.openTurn().Notice(), t.away(e.Kind)), t.others(r.Quote), true
	t.session.Keep(conversation.Record{Suspended: &conversation.Suspension{Key: m.Key(), Whole: true}})
	if err := t.flush(t.worker.hard); err != nil {
		return err
	}
	t.live.Close()
	if t.jobs[0].held == nil { // else it was told before
		if err := t.pool.insist(t.worker.hard, "send reply", func(ctx context.Context) error { return t.pool.config.Send(ctx, r) }); err != nil {
			return err
		}
	}
	return t.suspend(hold{Since: time.Now(), Model: t.name})
}
