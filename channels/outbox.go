package channels

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"parley/chat"
	"parley/panics"
	"parley/store"
)

// A line is one channel of a Hub, with its outbox.
type line struct {
	Channel
	editor   Editor // the channel, nil if it is none
	name     string
	hub      *Hub
	log      *slog.Logger
	queue    store.Queue
	delivery store.Table[record]
	traffic  traffic
	views    sync.Map     // *view -> nil: those that edit messages
	noticed  sync.Map     // chat.Address -> true: was told that the disk is full
	marks    chan marking // what react does next; nil for a channel without marks
	errands  chan errand
	dropped  atomic.Int64 // messages of strangers
	fault    fault
	sequence *sequence // nil: the channel is no Tracer
	recovery recovery
}

// A letter is a reply in the outbox.
type letter struct {
	chat.Reply
	Pushed time.Time `json:"pushed,omitzero"`
	Tries  int       `json:"tries,omitempty"` // how often it was parked and tried again by itself
	After  Position  `json:"after,omitempty"` // that a Tracer knew then
}

func (r letter) pushed() time.Time { return cmp.Or(r.Pushed, time.Now()) }

// lane names the chat of a, and the thread unless all of a chat are sent in
// sequence. Replies to one lane go out in order (P9), and no lane waits for
// another (P14).
func (l *line) lane(a chat.Address) string {
	if l.sequence != nil {
		return a.Chat
	}
	return a.Chat + "\x00" + a.Thread
}

// work sends what is in the outbox until ctx ends.
func (l *line) work(ctx context.Context) error {
	key := func(item store.Item) string {
		var r letter
		_ = json.Unmarshal(item.Body, &r) // what cannot be read is parked in the lane of no chat
		l.traffic.pulled(l.lane(r.To), r.pushed())
		return l.lane(r.To)
	}
	err := store.Work(ctx, l.queue, key, func(ctx context.Context, lane string, take func() []store.Item) {
		for _, item := range take() {
			if !l.deliver(ctx, lane, item) {
				return
			}
			l.traffic.gone(lane)
		}
	})
	if err != nil {
		return fmt.Errorf("outbox of %s: %w", l.name, err)
	}
	return nil
}

// deliver sends item, or parks it, however long it takes. It returns false when
// ctx ended before; the item is then still in the queue.
func (l *line) deliver(ctx context.Context, lane string, item store.Item) bool {
	var r letter
	d := delivery{line: l, id: item.ID}
	reason, tries := json.Unmarshal(item.Body, &r), 0
	if d.reply = r.Reply; reason != nil {
		d.reply.ID, d.reply.To.Channel = item.ID, l.name
		reason = fmt.Errorf("read outbox: %w", reason)
	} else {
		if !l.persist(ctx, "read the journal of deliveries", d.enter) {
			return false
		}
		defer d.exit()
		if s := l.sequence; s != nil {
			d.after, d.begun = r.After, item.Again && s.first(r.To.Chat)
		}
		tries, reason = l.try(ctx, lane, &d)
	}
	if reason != nil {
		if ctx.Err() != nil {
			return false
		}
		parked := func(ctx context.Context) error {
			return l.hub.park(ctx, Parked{Reply: d.reply, Reason: reason.Error(), Tries: r.Tries})
		}
		if !l.persist(ctx, "park reply", parked) {
			return false
		}
	} else if d.reply.Unasked {
		taken := func(ctx context.Context) error { return l.hub.cfg.Fate(ctx, d.reply, r.Tries, "") }
		if !l.persist(ctx, "note a delivery", taken) {
			return false
		}
	}
	done := item.Done
	if reason == nil && l.sequence != nil {
		done = func(ctx context.Context) error {
			note := func(ctx context.Context) error { return l.sequence.note(ctx, &d) }
			return store.InOrder(ctx, note, item.Done)
		}
	}
	if !l.persist(ctx, "end delivery", done) {
		return false
	}
	l.left(r, tries, reason)
	return l.persist(ctx, "end delivery", d.forget)
}

// left tells that r is no longer in the outbox: it was sent, or parked for a reason.
func (l *line) left(r letter, tries int, reason error) {
	if reason == nil {
		for _, id := range append([]string{r.Quote}, r.Also...) {
			l.mark(spot{r.To, id}, Done)
		}
	}
	l.hub.cfg.Sent(l.name, r.Reply, time.Since(r.pushed()), tries, reason)
}

// try sends d until it is sent, or until that is hopeless and the error says
// why. It returns how often it tried.
func (l *line) try(ctx context.Context, lane string, d *delivery) (int, error) {
	p := patience()
	for {
		recovered := l.recovery.next()
		err := d.finish(ctx)
		if err == nil || ctx.Err() != nil || IsPermanent(err) {
			return p.tries + 1, err
		}
		wait := p.Next(err)
		if p.over() {
			return p.tries, fmt.Errorf("tried for %v: %w", giveUp, err)
		}
		level := slog.LevelDebug
		if p.tries == 1 && asked(err) == 0 { // else nothing is wrong
			level = slog.LevelWarn
		}
		l.log.Log(ctx, level, "reply not sent yet", "chat", d.reply.To.Session(), "id", d.id, "again", wait, "err", err, panics.Stack(err))
		l.traffic.rest(lane, wait)
		if asked(err) > 0 { // the network knows best
			recovered = nil
		}
		select {
		case <-time.After(wait):
		case <-recovered:
			p.last = 0
			l.traffic.rest(lane, 0)
		case <-ctx.Done():
			return p.tries, ctx.Err()
		}
	}
}

// persist does f, which writes to the store, until it succeeds or ctx ends. A
// full disk must not make us send twice what was sent (P19).
func (l *line) persist(ctx context.Context, what string, f func(context.Context) error) bool {
	p := Backoff{Least: firstWait, Most: storeWait}
	for {
		err := attempt(ctx, f)
		if err == nil {
			return true
		}
		if p.tries == 0 {
			l.log.Error(what, "err", err)
		}
		if !Sleep(ctx, p.Next(err)) {
			return false
		}
	}
}
