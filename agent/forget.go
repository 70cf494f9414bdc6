package agent

import (
	"cmp"
	"fmt"
	"parley/chat"
	"parley/tools"
	"slices"
	"time"

	"context"
)

// Resting says whether nothing is under way in the session id: no turn, and no
// helper, nor the report of one that ended a moment ago.
func (p *Pool) Resting(ctx context.Context, id chat.SessionID) (bool, error) {
	p.mu.Lock()
	working := p.running[id] != nil
	p.mu.Unlock()
	all, err := p.Children(ctx, id)
	return !working && err == nil && !slices.ContainsFunc(all, func(c tools.Child) bool {
		return !c.State.Over() || c.Report || time.Since(c.Ended) < lostAfter
	}), err
}

// Forget removes the session id and all that was ever said in it. A turn under
// way is broken off without an answer; a message that comes later begins anew.
func (p *Pool) Forget(ctx context.Context, id chat.SessionID) error {
	return p.forget(ctx, id, func() error { return p.forgetChildren(ctx, id) })
}

// forget is Forget of a session whose helpers kids ends and forgets.
func (p *Pool) forget(ctx context.Context, id chat.SessionID, kids func() error) error {
	r := &running{since: time.Now(), doing: p.texts.Doing.Forgetting, stop: func(error) {}}
	if err := p.enter(ctx, id, r, errForgotten); err != nil {
		return fmt.Errorf("forget session %s: %w", id, err)
	}
	defer p.leave(id)
	err := kids()
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
