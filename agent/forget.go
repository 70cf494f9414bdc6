package agent

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"parley/chat"
)

// Resting reports whether nothing is under way in the session id: no turn, and
// nothing of its subagents.
func (p *Pool) Resting(ctx context.Context, id chat.SessionID) (bool, error) {
	p.mu.Lock()
	working := p.running[id] != nil
	p.mu.Unlock()
	if working {
		return false, nil
	}
	return p.subagents.Resting(ctx, id)
}

// Forget removes the session id and all that was ever said in it. A turn under
// way is broken off without an answer; a message that comes later begins anew.
func (p *Pool) Forget(ctx context.Context, id chat.SessionID) error {
	return p.forget(ctx, id, func() error { return p.subagents.ForgetSession(ctx, id) })
}

// forget is Forget of a session whose subagents first removes.
func (p *Pool) forget(ctx context.Context, id chat.SessionID, first func() error) error {
	r := &running{since: time.Now(), doing: p.texts.Doing.Forgetting, stop: func(error) {}}
	if err := p.enter(ctx, id, r, errForgotten); err != nil {
		return fmt.Errorf("forget session %s: %w", id, err)
	}
	defer p.leave(id)
	err := first()
	st, _, bad := p.sessions.Lookup(ctx, id)
	err = cmp.Or(err, bad)
	p.sessions.Evict(id)
	for _, epoch := range st.Epochs() {
		if err == nil {
			err = p.sessions.RemoveLog(ctx, id, epoch)
		}
	}
	if err == nil { // the last: it tells which logs there are
		err = p.sessions.DeleteState(ctx, id)
	}
	p.conversationEnded(id)
	if err != nil {
		return fmt.Errorf("forget session %s: %w", id, err)
	}
	return nil
}
