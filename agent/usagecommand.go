package agent

import (
	"context"
	"maps"
	"slices"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/chat"
)

// showUsage says what the conversation has used, and how far the limits are.
func showUsage(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	say := p.texts.Commands
	who := p.spender(m)
	used := p.budget.Conversation(ctx, who.Session)
	text := say.Usage
	for _, name := range slices.Sorted(maps.Keys(used)) {
		u := used[name].Usage
		text += "\n" + say.UsageOf.With(name, amount(u.In), amount(u.Cached), amount(u.Out))
		if used[name].Priced() {
			text += say.UsageCost.With(used[name].Cost)
		}
	}
	if len(used) == 0 {
		text += " " + say.UsageNone
	}
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

func amount(tokens int) string { return budget.Number(float64(tokens)) }
