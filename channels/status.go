package channels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// A Status is how one channel does.
type Status struct {
	Channel string
	Err     error         // why it does not receive; nil when it does
	Pending int           // replies in its outbox
	Oldest  time.Duration // age of the first of them; 0 while Work does not run
	Dropped int64         // messages of strangers since the start (R-S10)
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
		all = append(all, Status{Channel: name, Err: l.health(), Pending: n, Oldest: l.traffic.oldest(), Dropped: l.dropped.Load()})
	}
	return all, nil
}

// health returns why nothing comes in, if that is so.
func (l *line) health() error {
	err := l.fault.Health()
	if p, ok := l.Channel.(Patient); ok && err == nil {
		return p.Health()
	}
	return err
}
