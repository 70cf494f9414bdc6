package activity

import (
	"context"
	"sync"
	"time"

	"parley/chat"
)

// Pending counts, for each session, the items of work that were accepted and are not done yet.
type Pending struct {
	mu        sync.Mutex
	bySession map[chat.SessionID]*pending
}

// pending counts the items of one session.
type pending struct {
	n    int
	done chan struct{} // closed when n is 0
}

// NewPending returns a Pending that counts nothing.
func NewPending() *Pending { return &Pending{bySession: map[chat.SessionID]*pending{}} }

// Add counts one more item of the session id.
func (p *Pending) Add(id chat.SessionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.bySession[id]
	if one == nil {
		one = &pending{done: make(chan struct{})}
		p.bySession[id] = one
	}
	one.n++
}

// Done notes that n items of the session id are done.
func (p *Pending) Done(id chat.SessionID, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := p.bySession[id]
	if one == nil {
		return
	}
	if one.n -= n; one.n <= 0 {
		close(one.done)
		delete(p.bySession, id)
	}
}

// Wait returns when nothing is pending in the session id, after the time most, or when ctx ends.
func (p *Pending) Wait(ctx context.Context, id chat.SessionID, most time.Duration) {
	p.mu.Lock()
	one := p.bySession[id]
	p.mu.Unlock()
	if one == nil {
		return
	}
	select {
	case <-one.done:
	case <-time.After(most):
	case <-ctx.Done():
	}
}
