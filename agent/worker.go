package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/deadletter"
	"parley/agent/live"
	"parley/chat"
	"parley/store"
)

// A job is a message and the work item that brought it.
type job struct {
	chat.Message
	item    store.Item
	command string              // that it is, or ""
	resumed *deadletter.Resumed // it was suspended, and is tried again; nil: it was not
	begun   bool                // a turn of this process has broken off over it
}

// apart reports whether j has a turn of its own: what no person wrote, and what
// was suspended, is answered with nothing else.
func (j job) apart() bool {
	return j.command != "" || j.Origin != chat.FromPerson || j.resumed != nil
}

// isLastTry reports whether j was suspended because the process died over it, and
// is tried for the last time.
func (j job) isLastTry() bool { return j.resumed != nil && j.resumed.Model == "" }

// waitedForModel reports whether j was suspended until a model was back.
func (j job) waitedForModel() bool { return j.resumed != nil && j.resumed.Model != "" }

// A worker answers the messages of one session. Its goroutine exists only while
// there is something to answer (P5).
type worker struct {
	pool *Pool
	id   chat.SessionID
	soft context.Context // when it ends no turn begins
	hard context.Context // when it ends turns end
	pull func() []store.Item

	waiting []job  // in the order they came
	joined  []job  // what joined the turn under way
	solo    bool   // nothing joins it
	begun   func() // ends the time in which the process may be dying over the turn
	places  []*semaphore.Weighted
}

// serve answers what has come in. What fails is tried again, so that the order
// is kept; at shutdown it stays in the inbox.
func (w *worker) serve() {
	for w.gather(); len(w.waiting) > 0; w.gather() {
		if err := w.next(); err != nil && !w.waitToRetry(err) {
			for _, j := range w.waiting {
				j.item.Later(0)
			}
			return
		}
	}
}

// waitToRetry waits before what failed with err is tried again. It returns false
// when the gateway shuts down.
func (w *worker) waitToRetry(err error) bool {
	if w.soft.Err() != nil {
		return false
	}
	w.pool.log.Error("turn broken off, trying again later", "session", w.id, "err", err, "in", retryDelay)
	select {
	case <-w.soft.Done():
		return false
	case <-time.After(retryDelay):
		return true
	}
}

// next answers the first of those that wait, and what can be answered with it; it
// alone if the process may have crashed over it.
func (w *worker) next() error {
	jobs := w.batch()
	over, err := w.redirectLate(jobs)
	if err != nil {
		w.waiting = append(jobs, w.waiting...)
		return err
	}
	if over {
		return nil
	}
	deaths, _ := w.pool.guard.Blame(jobs[0].Key())
	w.solo = deaths > 0 || jobs[0].isLastTry() || jobs[0].item.Again && w.pool.guard.IsCareful()
	if w.solo {
		w.waiting = append(jobs[1:], w.waiting...)
		jobs = jobs[:1:1]
	}
	w.joined = nil
	if err := w.safely(jobs); err != nil {
		broken := append(jobs, w.joined...)
		for i := range broken {
			broken[i].begun = true
		}
		w.waiting = append(broken, w.waiting...)
		return err
	}
	return nil
}

// hold waits for a place of s, which the worker has until it rests.
func (w *worker) hold(ctx context.Context, s *semaphore.Weighted) error {
	if err := s.Acquire(ctx, 1); err != nil {
		return err
	}
	w.places = append(w.places, s)
	return nil
}

// rest gives the worker's places back, and ends the suspicion against it.
func (w *worker) rest() {
	for _, s := range w.places {
		s.Release(1)
	}
	w.places = nil
	if w.begun != nil {
		w.begun()
		w.begun = nil
	}
}

// batch removes from those that wait what one turn can answer: messages up to
// the next that has a turn of its own.
func (w *worker) batch() []job {
	n := 0
	for n < len(w.waiting) && !w.waiting[n].apart() {
		n++
	}
	return w.shift(max(n, 1))
}

func (w *worker) shift(n int) []job {
	jobs := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	return jobs
}

// joining returns what was said while a turn was under way and can be answered with it.
func (w *worker) joining() []job {
	w.gather()
	if w.solo || len(w.waiting) == 0 || w.waiting[0].apart() {
		return nil
	}
	jobs := w.batch()
	w.joined = append(w.joined, jobs...)
	return jobs
}

// take returns the messages that came in since the last take. One that cannot
// be read becomes a dead letter (P4).
func (w *worker) take() (jobs []job) {
	for _, item := range w.pull() {
		j := job{item: item}
		if err := json.Unmarshal(item.Body, &j.Message); err != nil {
			w.pool.log.Error("a message cannot be read and is now a dead letter", "id", item.ID, "err", err)
			_ = w.pool.insist(w.hard, "keep a dead letter", func(ctx context.Context) error { // else it comes again
				if err := w.pool.letters.Put(ctx, item.ID, item.Body); err != nil {
					return err
				}
				return item.Done(ctx)
			})
			continue
		}
		var stays bool
		if j.resumed, stays = w.pool.suspended.Retain(j.Key(), item); stays {
			continue
		}
		j.command = w.pool.command(j.Message)
		jobs = append(jobs, j)
	}
	return jobs
}

const (
	retryDelay    = 5 * time.Second        // until a turn that broke off is tried again
	recentMessage = 10 * time.Second       // an older message waited while nobody listened
	gatherDelay   = 500 * time.Millisecond // until more messages of a burst or an album have come in
)

// gather adds what has come in to what waits. When more is likely to follow, it
// waits for that, so that all of it gets one answer: after messages that waited
// while nobody listened, and after a file, since those of an album come one by one.
// Voice messages do not come in albums.
func (w *worker) gather() {
	for {
		more := w.take()
		w.waiting = append(w.waiting, more...)
		if len(more) == 0 {
			return
		}
		isRecent := time.Since(w.waiting[0].Time) <= recentMessage
		if isRecent && !slices.ContainsFunc(more[len(more)-1].Files, mayBeInAlbum) {
			return
		}
		select {
		case <-w.soft.Done():
			return
		case <-time.After(gatherDelay):
		}
	}
}

// mayBeInAlbum reports whether f may be one of several: it is still at the network.
func mayBeInAlbum(f chat.File) bool { return f.Ref != "" && !f.Voice }

// handle answers jobs, one command or messages.
func (w *worker) handle(jobs []job) error {
	first := jobs[0]
	if first.command == "new" {
		return w.renew(first)
	}
	defer w.rest()
	switch deaths, last := w.pool.guard.Blame(first.Key()); {
	case last, first.resumed != nil && first.resumed.Dismissed:
		return w.giveUp(first)
	case deaths >= deadletter.MaxDeaths:
		return w.suspendCrashing(first)
	}
	if err := w.hold(w.soft, w.pool.turns); err != nil {
		return err
	}
	if err := w.begin(jobs); err != nil {
		return err
	}
	if do := w.pool.later(first.command); do != nil {
		return w.runCommand(first, do)
	}
	return w.turn(jobs)
}

// begin waits until jobs may be answered, alone if the process may have died
// over them.
func (w *worker) begin(jobs []job) (err error) {
	first := jobs[0]
	if first.isLastTry() && !first.resumed.Tried {
		err := w.pool.insist(w.hard, "note the last try", func(ctx context.Context) error {
			return w.pool.suspended.NoteLastTry(ctx, first.resumed)
		})
		if err != nil {
			return err
		}
	}
	w.begun, err = w.pool.guard.Begin(w.soft, deadletter.Answer{
		Key:        first.Key(),
		LeftBehind: slices.ContainsFunc(jobs, func(j job) bool { return j.item.Again }),
		LastTry:    first.isLastTry(),
		Several:    len(jobs) > 1,
	})
	return err
}

// runCommand answers j, which is a command, by do. Nothing is forgotten meanwhile.
func (w *worker) runCommand(j job, do func(context.Context, *worker, chat.Message) string) error {
	a := activity.New(w.pool.texts.Doing.Command.With(j.command))
	if err := w.pool.activities.Enter(w.hard, w.id, a, activity.ErrBusy); err != nil {
		return err
	}
	defer w.pool.activities.Leave(w.id)
	return w.reply(j, do(w.hard, w, j.Message))
}

// renew begins a new conversation, as /new asks.
func (w *worker) renew(j job) error {
	err := w.pool.insist(w.hard, "begin a new conversation", func(ctx context.Context) error {
		return w.pool.sessions.Update(ctx, w.id, (*conversation.State).BeginConversation)
	})
	if err != nil {
		return err
	}
	w.pool.conversationEnded(w.id)
	return w.reply(j, w.pool.texts.Commands.New)
}

// reply answers a command and ends it.
func (w *worker) reply(j job, text string) error {
	if err := w.sendReply(j, text); err != nil {
		return err
	}
	return w.dequeue(w.hard, j)
}

// sendReply sends text, unless it is empty, as the reply to j.
func (w *worker) sendReply(j job, text string) error {
	return w.pool.insist(w.hard, "reply", func(ctx context.Context) error {
		return w.pool.answer(ctx, j.Message, text)
	})
}

// dequeue removes j from the inbox.
func (w *worker) dequeue(ctx context.Context, j job) error {
	return w.pool.insist(ctx, "end "+j.Key(), func(ctx context.Context) error {
		if err := w.pool.suspended.Remove(ctx, j.Key()); err != nil {
			return err
		}
		return j.item.Done(ctx)
	})
}

// turn answers jobs in one turn. A panic on the way ends the turn, not the process.
func (w *worker) turn(jobs []job) (err error) {
	ctx, stop := context.WithCancelCause(w.hard)
	defer stop(nil)
	first := jobs[0].Message
	t := turn{
		pool: w.pool, worker: w, jobs: jobs, live: live.NewView(w.pool.texts.Steps),
		activity: &activity.Activity{
			Since: time.Now(), Stop: stop, Said: first.Time, At: first.At, Options: first.InheritedOptions(),
		},
	}
	if err := w.pool.activities.Enter(w.hard, w.id, t.activity, activity.ErrBusy); err != nil {
		return err
	}
	defer w.pool.activities.Leave(w.id)
	if over, err := w.redirectLate(jobs); over || err != nil { // it was forgotten while it waited for a place
		return err
	}
	ended := func(string) {}
	if w.pool.config.Begun != nil {
		ctx, ended = w.pool.config.Begun(ctx, w.id, jobs[0].Message)
	}
	defer func() { ended(string(t.outcome)) }()
	panicked := w.pool.guarded("a turn of "+string(w.id), func() {
		t.session, err = w.openFor(first)
		if err != nil {
			return
		}
		err = t.do(ctx)
	})
	if panicked {
		t.outcome = conversation.Failed
		return w.endPanicked(t.jobs)
	}
	if err != nil {
		return err
	}
	w.pool.sessions.Cache(t.session)
	return nil
}
