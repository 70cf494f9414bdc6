package channels

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"parley/channels/deadletter"
	"parley/channels/traffic"
	"parley/chat"
	"parley/panics"
	"parley/store"
)

// An outbox sends the replies to one channel, in the order of each chat.
type outbox struct {
	name      string
	channel   Channel
	editor    Editor // the channel, nil if it is none
	log       *slog.Logger
	render    *renderer
	queue     store.Queue
	journal   store.Table[record]
	traffic   *traffic.Counter
	recovery  recovery
	sequence  *sequence // nil: the channel is no Tracer
	questions *Questions
	letters   *deadletter.Letters
	answers   answerFiles
	marks     *marker
	views     sync.Map // *view -> nil: those that may edit messages

	sent func(channel string, r chat.Reply, waited time.Duration, tries int, err error)
	fate func(ctx context.Context, r chat.Reply, tries int, reason string) error
}

// An outboxItem is a reply in the outbox, as the store has it. The fields of the
// reply stand beside its own.
type outboxItem struct {
	chat.Reply
	Pushed time.Time `json:"pushed,omitzero"`
	Tries  int       `json:"tries,omitempty"` // how often it was a dead letter and was retried automatically
	After  Position  `json:"after,omitempty"` // what a Tracer knew when the reply was pushed
}

func (it outboxItem) pushed() time.Time { return cmp.Or(it.Pushed, time.Now()) }

// push puts r, which was a dead letter so many times, into the queue.
func (ob *outbox) push(ctx context.Context, r chat.Reply, tries int) error {
	if err := ob.storeQuestion(ctx, r); err != nil {
		return err
	}
	item := outboxItem{Reply: r, Pushed: time.Now(), Tries: tries}
	if ob.sequence != nil {
		position, err := ob.sequence.tracer.Position(ctx, r)
		if err != nil && !IsPermanent(err) { // else it becomes a dead letter when it is sent
			return err
		}
		item.After = position
	}
	body, err := json.Marshal(item)
	if err != nil {
		return err
	}
	ob.eachView(r.To, func(v *view) { v.noteReply(r.ID) }) // before it can be sent
	if err := ob.queue.Push(ctx, r.ID, body); err != nil {
		ob.eachView(r.To, func(v *view) { v.noteSent(r.ID) })
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// storeQuestion stores the question that r asks if its choices are buttons by which
// people say something: before they can be pressed.
func (ob *outbox) storeQuestion(ctx context.Context, r chat.Reply) error {
	if r.Ask == nil || !r.Ask.Say || !ob.render.hasButtons(r.Ask) {
		return nil
	}
	if !questionID.MatchString(r.Ask.ID) || len(r.Ask.Choices) == 0 {
		return errors.New("a question needs an id of letters and digits, and choices")
	}
	_, err := ob.questions.open(ctx, r)
	return err
}

// destination returns the name of the chat at a, with its thread unless all of a chat
// is sent in sequence. Replies to one destination are sent in order (P9), and none of
// them waits for another destination (P14).
func (ob *outbox) destination(a chat.Address) string {
	if ob.sequence != nil {
		return a.Chat
	}
	return a.Chat + "\x00" + a.Thread
}

// work sends what is in the queue until ctx ends.
func (ob *outbox) work(ctx context.Context) error {
	key := func(item store.Item) string {
		var it outboxItem
		_ = json.Unmarshal(item.Body, &it) // an unreadable item has no chat, and becomes a dead letter
		destination := ob.destination(it.To)
		ob.traffic.Add(destination, it.pushed())
		return destination
	}
	err := store.Work(ctx, ob.queue, key, func(ctx context.Context, destination string, take func() []store.Item) {
		for _, item := range take() {
			to, ended := ob.process(ctx, destination, item)
			if !ended {
				return
			}
			ob.eachView(to, func(v *view) { v.noteSent(item.ID) })
			ob.traffic.Remove(destination)
		}
	})
	if err != nil {
		return fmt.Errorf("outbox of %s: %w", ob.name, err)
	}
	return nil
}

// process sends item, or makes it a dead letter, however long that takes. It returns
// where to, and false if ctx ended before; the item is still in the queue then.
func (ob *outbox) process(
	ctx context.Context, destination string, item store.Item,
) (to chat.Address, ended bool) {
	var it outboxItem
	if err := json.Unmarshal(item.Body, &it); err != nil {
		it.ID = item.ID
		it.To.Channel = ob.name
		d := delivery{outbox: ob, id: item.ID, reply: it.Reply}
		return it.To, ob.end(ctx, &d, item, it, 0, fmt.Errorf("read outbox: %w", err))
	}
	d := delivery{outbox: ob, id: item.ID, reply: it.Reply}
	if !ob.persist(ctx, "read the journal of deliveries", d.enter) {
		return it.To, false
	}
	defer d.exit()
	if s := ob.sequence; s != nil {
		d.after = it.After
		d.begun = item.Again && s.isFirst(it.To.Chat)
	}
	tries, failure := ob.sendWithRetries(ctx, destination, &d)
	return it.To, ob.end(ctx, &d, item, it, tries, failure)
}

// end takes item out of the queue, after so many attempts. With a failure, d becomes a
// dead letter. It returns false if ctx ended before.
func (ob *outbox) end(
	ctx context.Context, d *delivery, item store.Item, it outboxItem, tries int, failure error,
) bool {
	if failure != nil && ctx.Err() != nil {
		return false
	}
	if !ob.recordFate(ctx, d, it.Tries, failure) {
		return false
	}
	wasSent := failure == nil
	done := func(ctx context.Context) error {
		if wasSent && ob.sequence != nil {
			if err := ob.sequence.noteSent(store.Deferred(ctx), d); err != nil {
				return err
			}
		}
		return item.Done(ctx) // not deferred, or a crash would have the reply sent again
	}
	if !ob.persist(ctx, "end delivery", done) {
		return false
	}
	ob.reportEnd(it, tries, failure)
	forget := func(ctx context.Context) error { return d.forget(store.Deferred(ctx)) }
	return ob.persist(ctx, "end delivery", forget)
}

// recordFate records what became of d before it leaves the queue: it is a dead letter
// if it failed, and otherwise, if no person waits for it, it is reported as delivered.
// It returns false if ctx ended before.
func (ob *outbox) recordFate(ctx context.Context, d *delivery, tries int, failure error) bool {
	if failure != nil {
		return ob.persist(ctx, "keep dead letter", func(ctx context.Context) error {
			return ob.letters.Add(ctx, deadletter.Letter{Reply: d.reply, Reason: failure.Error(), Tries: tries})
		})
	}
	if d.reply.Unasked {
		return ob.persist(ctx, "note a delivery", func(ctx context.Context) error {
			return ob.fate(ctx, d.reply, tries, "")
		})
	}
	return true
}

// reportEnd reports that it left the queue: it was sent, or else it failed.
func (ob *outbox) reportEnd(it outboxItem, tries int, failure error) {
	ob.sent(ob.name, it.Reply, time.Since(it.pushed()), tries, failure)
	if failure != nil {
		return
	}
	for _, id := range append([]string{it.Quote}, it.Also...) {
		ob.marks.mark(messageID{it.To, id}, Done)
	}
}

// sendWithRetries sends d, or returns why that is hopeless. It also returns the number
// of attempts.
func (ob *outbox) sendWithRetries(ctx context.Context, destination string, d *delivery) (int, error) {
	backoff := networkBackoff()
	for {
		recovered := ob.recovery.next()
		err := d.finish(ctx)
		if err == nil || ctx.Err() != nil || IsPermanent(err) {
			return backoff.tries + 1, err
		}
		wait := backoff.Next(err)
		if backoff.isHopeless() {
			return backoff.tries, fmt.Errorf("tried for %v: %w", giveUpAfter, err)
		}
		level := slog.LevelDebug
		if backoff.tries == 1 && requestedWait(err) == 0 { // else nothing is wrong
			level = slog.LevelWarn
		}
		ob.log.Log(ctx, level, "reply not sent yet",
			"chat", d.reply.To.Session(), "id", d.id, "again", wait, "err", err, panics.Stack(err))
		ob.traffic.RetryIn(destination, wait)
		if requestedWait(err) > 0 { // the network knows best
			recovered = nil
		}
		select {
		case <-time.After(wait):
		case <-recovered:
			backoff.last = 0
			ob.traffic.RetryIn(destination, 0)
		case <-ctx.Done():
			return backoff.tries, ctx.Err()
		}
	}
}

// persist calls f, which writes to the store, until it succeeds or ctx ends. A full
// disk must not make us send again what was sent (P19).
func (ob *outbox) persist(ctx context.Context, what string, f func(context.Context) error) bool {
	backoff := Backoff{Least: firstWait, Most: maxStoreWait}
	for {
		err := attempt(ctx, f)
		if err == nil {
			return true
		}
		if backoff.tries == 0 {
			ob.log.Error(what, "err", err)
		}
		if !Sleep(ctx, backoff.Next(err)) {
			return false
		}
	}
}

// sendUnqueued sends r in one attempt, past the queue.
func (ob *outbox) sendUnqueued(ctx context.Context, r chat.Reply) error {
	parts, err := ob.render.parts(r)
	if err != nil {
		return err
	}
	d := delivery{outbox: ob, id: r.ID, reply: r, loaded: true}
	if err := d.enter(ctx); err != nil {
		return err
	}
	defer d.exit()
	if ob.sequence != nil {
		if d.after, err = ob.sequence.tracer.Position(ctx, r); err != nil {
			return err
		}
	}
	return d.put(ctx, parts)
}

// eachView calls f with the live views in the chat at.
func (ob *outbox) eachView(at chat.Address, f func(*view)) {
	ob.views.Range(func(key, _ any) bool {
		if v := key.(*view); v.reply.To == at {
			f(v)
		}
		return true
	})
}
