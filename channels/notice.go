package channels

import (
	"context"
	"errors"
	"sync"

	"parley/chat"
	"parley/store"
)

// notices tell each chat once that its messages cannot be taken because the
// disk is full (P19).
type notices struct {
	mu   sync.Mutex
	told map[chat.Address]bool // until a message of the chat is taken
}

// due takes in what became of a message from at and says whether the chat is to be told.
func (n *notices) due(at chat.Address, err error) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case err == nil:
		delete(n.told, at)
	case errors.Is(err, store.ErrFull) && !n.told[at]:
		if n.told == nil {
			n.told = map[chat.Address]bool{}
		}
		n.told[at] = true
		return true
	}
	return false
}

// notice tells the chat of m that m waits, if err says so. It goes past the
// outbox, which is on the same disk, and is tried once.
func (l *line) notice(m chat.Message, err error) {
	if !l.notices.due(m.At, err) {
		return
	}
	r := chat.Reply{ID: "full:" + m.Key(), To: m.At, Quote: m.ID, Group: m.Group,
		Text: "My disk is full, so your message has to wait. I take it as soon as there is space again."}
	l.errand("tell the chat that the disk is full", func(ctx context.Context) error {
		_, err := l.Send(ctx, r)
		return err
	})
}
