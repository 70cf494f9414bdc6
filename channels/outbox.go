package channels

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"

	"parley/chat"
	"parley/store"
)

// A line is one channel of a Hub, with its outbox.
type line struct {
	Channel
	name     string
	hub      *Hub
	log      *slog.Logger
	queue    store.Queue
	delivery store.Bucket // reply id -> how far it has come
	traffic  traffic
	notices  notices
	dropped  atomic.Int64          // messages of strangers
	err      atomic.Pointer[error] // why it does not receive, if it does not
}

func (l *line) health() error {
	if err := l.err.Load(); err != nil {
		return *err
	}
	return nil
}

// lane names the chat of a. Replies to one lane go out in order (P9), and no
// lane waits for another (P14).
func lane(a chat.Address) string { return a.Chat + "\x00" + a.Thread }

// work sends what is in the outbox until ctx ends.
func (l *line) work(ctx context.Context) error {
	key := func(item store.Item) string {
		var r chat.Reply
		_ = json.Unmarshal(item.Body, &r) // what cannot be read is parked in the lane of no chat
		l.traffic.pulled(lane(r.To))
		return lane(r.To)
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
	d := delivery{line: l, id: item.ID}
	if reason := l.try(ctx, lane, item, &d); reason != nil {
		if ctx.Err() != nil {
			return false
		}
		parked := func(ctx context.Context) error { return l.hub.park(ctx, d.reply, reason.Error()) }
		if !l.persist(ctx, "park reply", parked) {
			return false
		}
	}
	return l.persist(ctx, "end delivery", item.Done) && l.persist(ctx, "end delivery", d.forget)
}

// try sends item until it is sent, and returns nil, or until that is hopeless.
func (l *line) try(ctx context.Context, lane string, item store.Item, d *delivery) error {
	if err := json.Unmarshal(item.Body, &d.reply); err != nil {
		d.reply.ID, d.reply.To.Channel = item.ID, l.name
		return fmt.Errorf("read outbox: %w", err)
	}
	var p pace
	for {
		err := d.finish(ctx)
		if err == nil || ctx.Err() != nil || permanent(err) {
			return err
		}
		wait := p.wait(err)
		if p.over() {
			return fmt.Errorf("tried for %v: %w", giveUp, err)
		}
		level := slog.LevelDebug
		if p.tries == 1 && asked(err) == 0 { // else nothing is wrong
			level = slog.LevelWarn
		}
		l.log.Log(ctx, level, "reply not sent yet", "chat", d.reply.To.Session(), "id", item.ID, "again", wait, "err", err, stack(err))
		l.traffic.rest(lane, wait)
		if !sleep(ctx, wait) {
			return ctx.Err()
		}
	}
}

// persist does f, which writes to the store, until it succeeds or ctx ends. A
// full disk must not make us send twice what was sent (P19).
func (l *line) persist(ctx context.Context, what string, f func(context.Context) error) bool {
	var p pace
	for {
		err := attempt(ctx, f)
		if err == nil {
			return true
		}
		if p.tries == 0 {
			l.log.Error(what, "err", err)
		}
		if !sleep(ctx, min(p.wait(err), storeWait)) {
			return false
		}
	}
}
