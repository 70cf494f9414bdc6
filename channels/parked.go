package channels

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

// A Parked reply could not be sent and is tried no more (P10).
type Parked struct {
	Key    string     `json:"-"` // names it, and sorts by time
	Reply  chat.Reply `json:"reply"`
	Reason string     `json:"reason"`
	Time   time.Time  `json:"time"`
	Tries  int        `json:"tries,omitempty"` // how often it was tried again by itself
}

const maxParked = 1000

// retryAfter is when a parked reply that no person waits for is tried again by
// itself, after the first time, the second and so on (P26). What a person waited
// for is not: they have asked again by then, or have given up.
var retryAfter = []time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour}

// retryEvery is how often parked replies are looked through.
const retryEvery = time.Minute

// park keeps a reply to be looked at, unless it is kept already, and ends the
// question it asks. Of one that no person waits for it tells its fate.
func (h *Hub) park(ctx context.Context, now Parked) error {
	if now.Reply.Unasked {
		if err := h.cfg.Fate(ctx, now.Reply, now.Tries, now.Reason); err != nil {
			return err
		}
	}
	return h.shelve(ctx, now)
}

// shelve is park of a reply whose fate is nobody's concern.
func (h *Hub) shelve(ctx context.Context, parked Parked) error {
	r := parked.Reply
	if r.Ask != nil {
		if err := h.Withdraw(ctx, r.Ask.ID); err != nil {
			return err
		}
	}
	sum := fmt.Sprintf("%.4x", sha256.Sum256([]byte(r.ID)))
	for key, err := range h.kept.deadLetters.Keys(ctx, "") {
		var p Parked
		if err == nil && strings.HasSuffix(key, sum) {
			p, _, err = h.kept.deadLetters.Get(ctx, key)
		}
		kept := p.Reply.ID == r.ID && p.Reply.To == r.To // since before a crash
		if kept || err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	parked.Time = time.Now()
	key := fmt.Sprintf("%016x%s", parked.Time.UnixNano(), sum)
	if err := h.kept.deadLetters.Set(ctx, key, parked); err != nil {
		return fmt.Errorf("park reply: %w", err)
	}
	h.cfg.Log.Error("reply parked", "chat", r.To.Session(), "id", r.ID, "reason", parked.Reason)
	if err := h.clear(ctx); err != nil {
		h.cfg.Log.Error("old parked replies not forgotten", "err", err)
	}
	return nil
}

// clear drops the oldest of too many parked replies.
func (h *Hub) clear(ctx context.Context) error {
	var keys []string
	for key, err := range h.kept.deadLetters.Keys(ctx, "") {
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	for ; len(keys) > maxParked; keys = keys[1:] {
		h.cfg.Log.Error("parked reply dropped: there are too many", "key", keys[0])
		if err := h.Drop(ctx, keys[0]); err != nil {
			return err
		}
	}
	return nil
}

// Parked returns the parked replies, oldest first.
func (h *Hub) Parked(ctx context.Context) (all []Parked, err error) {
	for e, err := range h.kept.deadLetters.Each(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list parked replies: %w", err)
		}
		e.Value.Key = e.Key
		all = append(all, e.Value)
	}
	return all, nil
}

// Resend sends the parked reply of that key again, once, however often it is
// called. It returns store.ErrNotFound if none is parked under that key.
func (h *Hub) Resend(ctx context.Context, key string) error {
	return h.resend(ctx, key, len(retryAfter))
}

func (h *Hub) resend(ctx context.Context, key string, tries int) error {
	p, _, err := h.kept.deadLetters.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("send parked reply: %w", err)
	}
	p.Reply.ID = "again:" + key // the old one may have been seen by the outbox or the network
	p.Reply.Ask = nil           // nobody waits for the answer any more
	if err := h.push(ctx, p.Reply, tries); err != nil {
		return err
	}
	return h.Drop(ctx, key)
}

// retryParked tries parked replies again that no person waits for, until ctx ends.
func (h *Hub) retryParked(ctx context.Context) {
	for Sleep(ctx, retryEvery) {
		all, err := h.Parked(ctx)
		for _, p := range all {
			if p.Reply.Unasked && p.Tries < len(retryAfter) && time.Since(p.Time) >= retryAfter[p.Tries] {
				err = errors.Join(err, h.resend(ctx, p.Key, p.Tries+1))
			}
		}
		if err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("parked replies not tried again", "err", err)
		}
	}
}

// Drop forgets the parked reply of that key, if there is one.
func (h *Hub) Drop(ctx context.Context, key string) error {
	if err := h.kept.deadLetters.Delete(ctx, key); err != nil {
		return fmt.Errorf("forget parked reply: %w", err)
	}
	return nil
}

// Shelve parks all that waits in the outboxes among queues, as when the store
// is a backup: what waited when it was made has been sent since (P20). The Hub
// must not be at work.
func (h *Hub) Shelve(ctx context.Context, queues []string, reason string) (n int, err error) {
	for _, name := range queues {
		channel, ok := strings.CutPrefix(name, store.OutboxPrefix)
		if !ok {
			continue
		}
		for item, err := range store.Waiting(ctx, h.cfg.Store.Queue(store.QueueOutbox(channel))) {
			if err != nil {
				return n, err
			}
			var r chat.Reply
			if json.Unmarshal(item.Body, &r) != nil {
				r = chat.Reply{ID: item.ID, To: chat.Address{Channel: channel}}
			}
			if err := h.shelve(ctx, Parked{Reply: r, Reason: reason, Tries: len(retryAfter)}); err != nil {
				return n, err
			}
			if err := item.Done(ctx); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
