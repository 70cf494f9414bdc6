package channels

import (
	"context"
	"encoding/json"
	"strings"

	"parley/chat"
	"parley/store"
)

// Shelve parks all that waits in the outboxes among queues, as when the store
// is a backup: what waited when it was made has been sent since (P20). The Hub
// must not be at work.
func (h *Hub) Shelve(ctx context.Context, queues []string, reason string) (n int, err error) {
	for _, name := range queues {
		channel, ok := strings.CutPrefix(name, "outbox/")
		if !ok {
			continue
		}
		for item, err := range store.Waiting(ctx, h.cfg.Store.Queue(name)) {
			if err != nil {
				return n, err
			}
			var r chat.Reply
			if json.Unmarshal(item.Body, &r) != nil {
				r = chat.Reply{ID: item.ID, To: chat.Address{Channel: channel}}
			}
			if err := h.park(ctx, r, reason); err != nil {
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
