package channels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Status is the state of one channel.
type Status struct {
	Channel string
	Err     error         // why it receives nothing; nil if it does
	Pending int           // replies in its outbox
	Oldest  time.Duration // age of the oldest of them; 0 while Work does not run
	Dropped int64         // messages of unknown senders since the start (R-S10)
}

// Status returns the Status of every channel, by name.
func (h *Hub) Status(ctx context.Context) ([]Status, error) {
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(h.channels)) {
		s := h.channels[name]
		pending, err := s.outbox.queue.Len(ctx)
		if err != nil {
			return nil, fmt.Errorf("outbox of %s: %w", name, err)
		}
		all = append(all, Status{
			Channel: name,
			Err:     s.receiver.health(),
			Pending: pending,
			Oldest:  s.outbox.traffic.Oldest(),
			Dropped: s.receiver.dropped.Load(),
		})
	}
	return all, nil
}
