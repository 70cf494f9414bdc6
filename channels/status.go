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

const maxParked = 1000

// park keeps r to be looked at. A crash may keep it twice.
func (h *Hub) park(ctx context.Context, r chat.Reply, reason string) error {
	rec, err := json.Marshal(Parked{r, reason, time.Now()})
	if err != nil {
		return fmt.Errorf("park reply: %w", err)
	}
	seq, err := h.store.Log("parked").Append(ctx, rec)
	if err != nil {
		return fmt.Errorf("park reply: %w", err)
	}
	h.log.Error("reply parked", "chat", r.To.Session(), "id", r.ID, "reason", reason)
	if seq > maxParked && seq%100 == 0 { // not each time: this is a commit, too
		if err := h.store.Log("parked").Trim(ctx, seq-maxParked); err != nil {
			h.log.Error("old parked replies not forgotten", "err", err)
		}
	}
	return nil
}

// Parked returns the parked replies, oldest first. Those damaged on disk are left out.
func (h *Hub) Parked(ctx context.Context) ([]Parked, error) {
	var all []Parked
	for rec, err := range h.store.Log("parked").Since(ctx, 0) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, fmt.Errorf("list parked replies: %w", err)
		}
		var p Parked
		if err == nil && json.Unmarshal(rec.Body, &p) == nil {
			all = append(all, p)
		}
	}
	return all, nil
}
