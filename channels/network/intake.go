package network

import (
	"context"
	"errors"
	"sync"

	"parley/chat"
)

// An Intake passes on the messages of a channel whose network calls us with
// requests. It is open while Run runs.
type Intake struct {
	mu      sync.RWMutex // held for reading while a message is delivered
	deliver func(chat.Message) error
}

// ErrShut is returned by [Intake.Deliver] before Run and after.
var ErrShut = errors.New("messages are not taken in now")

// Open passes messages on to deliver until ctx ends. It returns when no delivery
// is under way any more.
func (in *Intake) Open(ctx context.Context, deliver chat.Deliver) {
	in.set(func(m chat.Message) error { return deliver(ctx, m) })
	<-ctx.Done()
	in.set(nil)
}

func (in *Intake) set(deliver func(chat.Message) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.deliver = deliver
}

// Deliver passes m on, even if the request that brought it ends meanwhile.
func (in *Intake) Deliver(m chat.Message) error {
	in.mu.RLock()
	defer in.mu.RUnlock()
	if in.deliver == nil {
		return ErrShut
	}
	return in.deliver(m)
}
