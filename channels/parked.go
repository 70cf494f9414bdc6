package channels

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
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
}

const maxParked = 1000

func (h *Hub) shelf() store.Bucket { return h.store.Bucket("parked replies") }

// park keeps r to be looked at, and ends the question it asks. A crash may keep it twice.
func (h *Hub) park(ctx context.Context, r chat.Reply, reason string) error {
	if r.Ask != nil {
		if err := h.Withdraw(ctx, r.Ask.ID); err != nil {
			return err
		}
	}
	now := time.Now()
	key := fmt.Sprintf("%016x%.4x", now.UnixNano(), sha256.Sum256([]byte(r.ID)))
	if err := write(ctx, h.shelf(), key, Parked{Reply: r, Reason: reason, Time: now}); err != nil {
		return fmt.Errorf("park reply: %w", err)
	}
	h.log.Error("reply parked", "chat", r.To.Session(), "id", r.ID, "reason", reason)
	if err := h.clear(ctx); err != nil {
		h.log.Error("old parked replies not forgotten", "err", err)
	}
	return nil
}

// clear drops the oldest of too many parked replies.
func (h *Hub) clear(ctx context.Context) error {
	keys, err := h.parkedKeys(ctx)
	for ; err == nil && len(keys) > maxParked; keys = keys[1:] {
		h.log.Error("parked reply dropped: there are too many", "key", keys[0])
		err = h.Drop(ctx, keys[0])
	}
	return err
}

func (h *Hub) parkedKeys(ctx context.Context) (keys []string, err error) {
	for key, err := range h.shelf().Keys(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list parked replies: %w", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// Parked returns the parked replies, oldest first. Those damaged on disk are left out.
func (h *Hub) Parked(ctx context.Context) ([]Parked, error) {
	keys, err := h.parkedKeys(ctx)
	var all []Parked
	for _, key := range keys {
		p := Parked{Key: key}
		switch err := read(ctx, h.shelf(), key, &p); {
		case err == nil:
			all = append(all, p)
		case !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNotFound):
			return nil, fmt.Errorf("list parked replies: %w", err)
		}
	}
	return all, err
}

// Resend sends the parked reply of that key again, once, however often it is
// called. It returns store.ErrNotFound if none is parked under that key.
func (h *Hub) Resend(ctx context.Context, key string) error {
	var p Parked
	if err := read(ctx, h.shelf(), key, &p); err != nil {
		return fmt.Errorf("send parked reply: %w", err)
	}
	p.Reply.ID = "again:" + key // the old one may have been seen by the outbox or the network
	p.Reply.Ask = nil           // nobody waits for the answer any more
	if err := h.Send(ctx, p.Reply); err != nil {
		return err
	}
	return h.Drop(ctx, key)
}

// Drop forgets the parked reply of that key, if there is one.
func (h *Hub) Drop(ctx context.Context, key string) error {
	if err := h.shelf().Delete(ctx, key); err != nil {
		return fmt.Errorf("forget parked reply: %w", err)
	}
	return nil
}
