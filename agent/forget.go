package agent

import (
	"context"
	"fmt"

	"parley/agent/activity"
	"parley/chat"
)

// Resting reports whether nothing is under way in the session id: no turn, and
// nothing of its subagents.
func (p *Pool) Resting(ctx context.Context, id chat.SessionID) (bool, error) {
	if _, busy := p.activities.Get(id); busy {
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
	if err := p.activities.Enter(ctx, id, activity.New(p.texts.Doing.Forgetting), activity.ErrForgotten); err != nil {
		return fmt.Errorf("forget session %s: %w", id, err)
	}
	defer p.activities.Leave(id)
	defer p.conversationEnded(id)
	if err := first(); err != nil {
		return fmt.Errorf("forget session %s: %w", id, err)
	}
	if err := p.sessions.Forget(ctx, id); err != nil {
		return fmt.Errorf("forget session %s: %w", id, err)
	}
	return nil
}
