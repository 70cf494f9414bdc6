package agent

import (
	"context"

	"parley/agent/conversation"
	"parley/chat"
)

// showUsage says what the conversation has used, and how far the limits are.
func showUsage(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	who := p.spender(m)
	text := p.budget.Describe(ctx, p.texts.Commands, who.Session)
	return conversation.Join(text, p.budget.Standings(ctx, who, m.From.Role == chat.Owner)), nil
}

// raiseLimit raises the limit that is named, or those that run out here.
func raiseLimit(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	if m.From.Role != chat.Owner {
		return p.texts.Limits.NoRaise, nil
	}
	_, name := chat.Word(m.Text)
	return p.budget.Raise(ctx, p.spender(m), name, m.Key()), nil
}
