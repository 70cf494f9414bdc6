package channels

import (
	"context"
	"errors"
	"sync"

	"parley/chat"
)

// A Gate is the way into the house for a channel whose messages come by
// requests. It is open while Run runs.
type Gate struct {
	mu      sync.RWMutex // held while a message is delivered
	deliver func(chat.Message) error
}

// ErrShut is returned by [Gate.Deliver] before Run and after.
var ErrShut = errors.New("the house is not open")

// Open lets messages in by deliver until ctx ends, and returns when none is on
// its way any more.
func (g *Gate) Open(ctx context.Context, deliver chat.Deliver) {
	g.set(func(m chat.Message) error { return deliver(ctx, m) })
	<-ctx.Done()
	g.set(nil)
}

func (g *Gate) set(deliver func(chat.Message) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.deliver = deliver
}

// Deliver hands m to the house, even if the request that brought it ends.
func (g *Gate) Deliver(m chat.Message) error {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if g.deliver == nil {
		return ErrShut
	}
	return g.deliver(m)
}
