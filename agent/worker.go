package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/deadletter"
	"parley/agent/live"
	"parley/chat"
	"parley/store"
)

// A delivery is a message and the work item that brought it.
type delivery struct {
	chat.Message
	item    store.Item
	command string              // that it is, or ""
	resumed *deadletter.Resumed // it was suspended, and is tried again; nil: it was not
	begun   bool                // a turn of this process has broken off over it
}

// apart reports whether d has a turn of its own: what no person wrote, what a tool
// answers, what a program has wishes for, and what was suspended, is answered alone.
func (d delivery) apart() bool {
	return d.command != "" || d.Origin != chat.FromPerson || d.Options != nil || d.Wishes != nil || d.Branch != nil ||
		d.resumed != nil
}

// isLastTry reports whether d was suspended because the process died over it, and
// is tried for the last time.
func (d delivery) isLastTry() bool { return d.resumed != nil && d.resumed.Model == "" }

// waitedForModel reports whether d was suspended until a model was back.
func (d delivery) waitedForModel() bool { return d.resumed != nil && d.resumed.Model != "" }

// A worker answers the messages of one session, or the commands that are answered
// beside its turns. Its goroutine exists only while there is something to answer (P5).
type worker struct {
	pool     *Pool
	id       chat.SessionID
	beside   bool            // it answers commands, beside the worker that has the turns
	soft     context.Context // when it ends no turn begins
	hard     context.Context // when it ends turns end
	pull     func() []store.Item
	commands *activity.Pending // that are to be answered beside turns

	waiting []delivery // in the order they came
	joined  []delivery // what joined the turn under way
	solo    bool       // nothing joins it
	begun   func()     // ends the time in which the process may be dying over the turn
	places  []func()   // each gives back a place that the worker has
}

// serve answers what has come in. What fails is tried again, so that the order
// is kept; at shutdown it stays in the inbox.
func (w *worker) serve() {
	for w.gather(); len(w.waiting) > 0; w.gather() {
		if err := w.next(); err != nil && !w.waitToRetry(err) {
			for _, d := range w.waiting {
				d.item.Later(0)
			}
			return
		}
	}
}

// serveCommands is like serve, for a worker that answers commands beside turns. Each
// counts as pending until all of them are answered.
func (w *worker) serveCommands() {
	taken := 0
	take := w.pull
	w.pull = func() []store.Item {
		items := take()
		taken += len(items)
		return items
	}
	w.serve()
	w.commands.Done(w.id, taken)
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
// alone if the process may have crashed over it. Commands that were given before
// are carried out first.
func (w *worker) next() error {
	if !w.beside {
		w.commands.Wait(w.soft, w.id, commandLead)
	}
	deliveries := w.batch()
	over, err := w.redirectLate(deliveries)
	if err != nil {
		w.waiting = append(deliveries, w.waiting...)
		return err
	}
	if over {
		return nil
	}
	deaths, _ := w.pool.guard.Blame(deliveries[0].Key())
	w.solo = deaths > 0 || deliveries[0].isLastTry() || deliveries[0].item.Again && w.pool.guard.IsCareful()
	if w.solo {
		w.waiting = append(deliveries[1:], w.waiting...)
		deliveries = deliveries[:1:1]
	}
	w.joined = nil
	if err := w.safely(deliveries); err != nil {
		broken := append(deliveries, w.joined...)
		for i := range broken {
			broken[i].begun = true
		}
		w.waiting = append(broken, w.waiting...)
		return err
	}
	return nil
}

// hold waits for one of the places, which the worker has until it rests.
func (w *worker) hold(ctx context.Context, places *activity.Places) error {
	release, err := places.Take(ctx)
	if err != nil {
		return err
	}
	w.places = append(w.places, release)
	return nil
}

// rest gives the worker's places back, and ends the suspicion against it.
func (w *worker) rest() {
	for _, release := range w.places {
		release()
	}
	w.places = nil
	if w.begun != nil {
		w.begun()
		w.begun = nil
	}
}

// batch removes from those that wait what one turn can answer: messages up to
// the next that has a turn of its own.
func (w *worker) batch() []delivery {
	n := 0
	for n < len(w.waiting) && !w.waiting[n].apart() {
		n++
	}
	return w.shift(max(n, 1))
}

func (w *worker) shift(n int) []delivery {
	deliveries := w.waiting[:n:n]
	w.waiting = w.waiting[n:]
	return deliveries
}

// joining returns what was said while a turn was under way and can be answered with it.
func (w *worker) joining() []delivery {
	w.gather()
	if w.solo || len(w.waiting) == 0 || w.waiting[0].apart() {
		return nil
	}
	deliveries := w.batch()
	w.joined = append(w.joined, deliveries...)
	return deliveries
}

// take returns the messages that came in since the last take. One that cannot
// be read becomes a dead letter (P4).
func (w *worker) take() (deliveries []delivery) {
	for _, item := range w.pull() {
		d := delivery{item: item}
		if err := json.Unmarshal(item.Body, &d.Message); err != nil {
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
		if d.resumed, stays = w.pool.suspended.Retain(d.Key(), item); stays {
			continue
		}
		d.command = w.pool.command(d.Message)
		deliveries = append(deliveries, d)
	}
	return deliveries
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

// handle answers deliveries: one command, or messages.
func (w *worker) handle(deliveries []delivery) error {
	first := &deliveries[0] // not copied: the stack is held while the model thinks
	if first.command == "new" {
		return w.renew(*first)
	}
	defer w.rest()
	switch deaths, last := w.pool.guard.Blame(first.Key()); {
	case last, first.resumed != nil && first.resumed.Dismissed:
		return w.giveUp(*first)
	case deaths >= deadletter.MaxDeaths:
		return w.suspendCrashing(*first)
	}
	places := w.pool.turns
	if w.beside {
		places = w.pool.besides
	}
	if err := w.hold(w.soft, places); err != nil {
		return err
	}
	if err := w.begin(deliveries); err != nil {
		return err
	}
	if c := w.pool.findCommand(first.command); c != nil && c.Do != nil {
		return w.runCommand(*first, c)
	}
	return w.turn(deliveries)
}

// begin waits until deliveries may be answered, alone if the process may have died
// over them.
func (w *worker) begin(deliveries []delivery) (err error) {
	first := deliveries[0]
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
		LeftBehind: slices.ContainsFunc(deliveries, func(d delivery) bool { return d.item.Again }),
		LastTry:    first.isLastTry(),
		Several:    len(deliveries) > 1,
	})
	return err
}

// runCommand answers d, which gives the command c. What the end of the process breaks
// off is done by the next one.
func (w *worker) runCommand(d delivery, c *Command) error {
	ctx := w.hard
	if w.beside {
		limited, cancel := context.WithTimeout(w.hard, commandTimeout)
		defer cancel()
		ctx = limited
	} else { // nothing is forgotten meanwhile
		a := activity.New(w.pool.texts.Doing.Command.With(d.command))
		if err := w.pool.activities.Enter(w.hard, w.id, a, activity.ErrBusy); err != nil {
			return err
		}
		defer w.pool.activities.Leave(w.id)
	}
	text, done := w.pool.carryOut(ctx, c, d.Message)
	if err := w.hard.Err(); err != nil && !done {
		return err
	}
	return w.reply(d, text)
}

// renew begins a new conversation, as /new asks.
func (w *worker) renew(d delivery) error {
	err := w.pool.insist(w.hard, "begin a new conversation", func(ctx context.Context) error {
		return w.pool.sessions.Update(ctx, w.id, (*conversation.State).BeginConversation)
	})
	if err != nil {
		return err
	}
	w.pool.conversationEnded(w.id)
	return w.reply(d, w.pool.texts.Commands.New)
}

// reply answers a command and ends it.
func (w *worker) reply(d delivery, text string) error {
	if err := w.sendReply(d, text); err != nil {
		return err
	}
	return w.dequeue(w.hard, d)
}

// sendReply sends text, unless it is empty, as the reply to d.
func (w *worker) sendReply(d delivery, text string) error {
	return w.pool.insist(w.hard, "reply", func(ctx context.Context) error {
		return w.pool.answer(ctx, d.Message, text)
	})
}

// dequeue removes d from the inbox.
func (w *worker) dequeue(ctx context.Context, d delivery) error {
	return w.pool.insist(ctx, "end "+d.Key(), func(ctx context.Context) error {
		if err := w.pool.suspended.Remove(ctx, d.Key()); err != nil {
			return err
		}
		return d.item.Done(ctx)
	})
}

// turn answers deliveries in one turn. A panic on the way ends the turn, not the process.
func (w *worker) turn(deliveries []delivery) (err error) {
	ctx, stop := context.WithCancelCause(w.hard)
	defer stop(nil)
	first := &deliveries[0].Message
	t := turn{
		pool: w.pool, worker: w, deliveries: deliveries, live: live.NewView(w.pool.texts.Steps),
		activity: &activity.Activity{
			Since: time.Now(), Stop: stop, Said: first.Time, At: first.At, From: first.From,
			Options: first.InheritedOptions(),
		},
	}
	if err := w.pool.activities.Enter(w.hard, w.id, t.activity, activity.ErrBusy); err != nil {
		return err
	}
	defer w.pool.activities.Leave(w.id)
	if over, err := w.redirectLate(deliveries); over || err != nil { // it was forgotten while it waited for a place
		return err
	}
	ended := func(string) {}
	if w.pool.config.Begun != nil {
		ctx, ended = w.pool.config.Begun(ctx, w.id, deliveries[0].Message)
	}
	defer func() { ended(string(t.outcome)) }()
	panicked := w.pool.guarded("a turn of "+string(w.id), func() {
		t.session, err = w.openFor(*first)
		if err != nil {
			return
		}
		err = t.do(ctx)
	})
	if panicked {
		return w.endPanicked(&t)
	}
	if err != nil {
		return err
	}
	w.pool.sessions.Cache(t.session)
	return nil
}
