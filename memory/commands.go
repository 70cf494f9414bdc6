package memory

import (
	"context"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/texts"
)

// whose returns the person whose memory the slash command m is about.
func whose(m chat.Message) chat.Person { return chat.Whose(m.At, m.From, m.Group) }

// argument returns the text of m without the command.
func argument(m chat.Message) string {
	_, rest := chat.Word(m.Text)
	return rest
}

// MemoryCommand answers the slash command /memory.
func (n *Notes) MemoryCommand(ctx context.Context, m chat.Message) (string, error) {
	return n.Show(ctx, whose(m))
}

// RememberCommand answers the slash command /remember.
func (n *Notes) RememberCommand(ctx context.Context, m chat.Message) (string, error) {
	return n.remember(ctx, Change{Who: whose(m), Key: m.Key(), Session: m.Session()}, argument(m))
}

// WhyCommand answers what the agent knows about the words of a question, and where each line of it comes from.
func (n *Notes) WhyCommand(ctx context.Context, m chat.Message) (string, error) {
	return n.Explain(ctx, whose(m), argument(m), m.Session())
}

// ForgetCommand answers the slash command /forget.
func (n *Notes) ForgetCommand(ctx context.Context, m chat.Message) (string, error) {
	return n.Forget(ctx, whose(m), argument(m), m.Key())
}

// DreamCommand answers the slash command /dream. Without an argument it calls start,
// and with one that it does not know it returns usage.
func (n *Notes) DreamCommand(
	ctx context.Context, m chat.Message, usage string, start func(context.Context, chat.Message) (string, error),
) (string, error) {
	word, id := chat.Word(argument(m))
	switch {
	case word == "":
		return start(ctx, m)
	case word == "log":
		return n.Changes(ctx, whose(m), id)
	case word == "restore" && id != "":
		return n.Restore(ctx, whose(m), id, m.Key())
	case word == "accept" && id != "":
		return n.Accept(ctx, whose(m), id, m.Key())
	}
	return usage, nil
}

// DreamNote says what a dream did: how many parts of conversations it summed up and
// read, and how many changes of memory it made.
func DreamNote(say texts.Dream, summed, read, changes int) string {
	note := say.Note.With(say.Parts.Of(read), say.Changes.Of(changes))
	if summed > 0 {
		note = say.Summed.With(summed, note)
	}
	return note
}

// ProposalNotice tells owners which files the change c would change if they agreed.
func ProposalNotice(say texts.Dream, c Change) string {
	names := slices.Sorted(maps.Keys(c.Asks))
	which := names[len(names)-1]
	if first := names[:len(names)-1]; len(first) > 0 {
		which = say.And.With(strings.Join(first, ", "), which)
	}
	return say.Proposed.With(which, c.ID)
}
