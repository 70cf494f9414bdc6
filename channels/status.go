package channels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/chat"
	"parley/store"
)

// A Status is how one channel does.
type Status struct {
	Channel string
	Err     error // why it does not receive; nil when it does
	Pending int   // replies in its outbox
	Dropped int64 // messages of strangers since the start (R-S10)
}

// Status returns the Status of every channel, by name.
func (h *Hub) Status(ctx context.Context) ([]Status, error) {
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(h.lines)) {
		l := h.lines[name]
		n, err := l.queue.Len(ctx)
		if err != nil {
			return nil, fmt.Errorf("outbox of %s: %w", name, err)
		}
		all = append(all, Status{Channel: name, Err: l.health(), Pending: n, Dropped: l.dropped.Load()})
	}
	return all, nil
}

// A Parked reply could not be sent and is tried no more (P10).
type Parked struct {
	Reply  chat.Reply `json:"reply"`
	Reason string     `json:"reason"`
	Time   time.Time  `json:"time"`
}

const (
	maxParked = 1000
	fewer     = 100 // are forgotten, the oldest, when there are more
)

// park keeps r to be looked at. Its ID makes that harmless the second time.
func (h *Hub) park(ctx context.Context, r chat.Reply, reason string) error {
	val, err := json.Marshal(Parked{r, reason, time.Now()})
	if err != nil {
		return fmt.Errorf("park reply: %w", err)
	}
	b := h.store.Bucket("parked")
	if _, err := b.Put(ctx, r.ID, val, 0); errors.Is(err, store.ErrConflict) {
		return nil
	} else if err != nil {
		return fmt.Errorf("park reply: %w", err)
	}
	h.log.Error("reply parked", "chat", r.To.Session(), "id", r.ID, "reason", reason)
	return h.thin(ctx, b)
}

// thin forgets the oldest parked replies when there are too many.
func (h *Hub) thin(ctx context.Context, b store.Bucket) error {
	n := 0
	for _, err := range b.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("count parked replies: %w", err)
		}
		n++
	}
	if n <= maxParked {
		return nil
	}
	all, err := h.Parked(ctx)
	if err != nil {
		return err
	}
	for _, p := range all[:min(fewer, len(all))] {
		if err := b.Delete(ctx, p.Reply.ID); err != nil {
			return fmt.Errorf("forget parked reply: %w", err)
		}
	}
	return nil
}

// Parked returns the parked replies, oldest first. Those damaged on disk are left out.
func (h *Hub) Parked(ctx context.Context) ([]Parked, error) {
	var all []Parked
	b := h.store.Bucket("parked")
	for id, err := range b.Keys(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list parked replies: %w", err)
		}
		var p Parked
		if val, _, err := b.Get(ctx, id); err == nil && json.Unmarshal(val, &p) == nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Parked) int { return a.Time.Compare(b.Time) })
	return all, nil
}
