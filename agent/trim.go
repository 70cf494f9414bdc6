package agent

import (
	"context"
	"time"

	"parley/agent/activity"
	"parley/agent/trimming"
	"parley/chat"
	"parley/store"
)

// trimPatience is how long TrimConversations waits for what is under way in a session.
const trimPatience = time.Second

// TrimConversations removes what was said before t.Before. What subagents said goes with
// their records, if they have one.
func (p *Pool) TrimConversations(ctx context.Context, t store.Trimming) error {
	trimmer := trimming.Trimmer{
		Sessions: p.sessions,
		Prompts:  p.prompts,
		Enter: func(ctx context.Context, id chat.SessionID) (leave func(), err error) {
			ctx, cancel := context.WithTimeout(ctx, trimPatience)
			defer cancel()
			if err := p.activities.Enter(ctx, id, activity.New(p.texts.Doing.Forgetting), nil); err != nil {
				return nil, err
			}
			return func() { p.activities.Leave(id) }, nil
		},
		Skip:  func(id chat.SessionID) bool { return p.subagents.Has(ctx, id) },
		Ended: p.conversationEnded,
	}
	return trimmer.TrimAll(ctx, t)
}
