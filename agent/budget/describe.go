package budget

import (
	"context"
	"maps"
	"slices"

	"parley/chat"
	"parley/texts"
)

// Describe says in the words of say what the conversation under way in the session id
// has used.
func (b *Book) Describe(ctx context.Context, say texts.Commands, id chat.SessionID) string {
	used := b.Conversation(ctx, id)
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
	return text
}

func amount(tokens int) string { return Number(float64(tokens)) }
