package channels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
)

// command answers m if it is a command of the Hub's own. Its answer has the ID
// of a reply to m, so a message that comes again is answered once.
func (h *Hub) command(ctx context.Context, m chat.Message) (own bool, err error) {
	name, arg, _ := strings.Cut(strings.TrimSpace(m.Text), " ")
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // as in "/pair@parley_bot"
	if name != "/pair" && name != "/unpair" {
		return false, nil
	}
	r, arg := m.Reply(), strings.TrimSpace(arg)
	switch {
	case m.From.Role != chat.Owner:
		r.Text = "Only my owner can say who talks to me."
	case name == "/unpair":
		r.Text, err = h.unpair(ctx, arg)
	case arg == "":
		r.Text, err = h.whoAsks(ctx)
	default:
		r.Text, err = h.pair(ctx, arg)
	}
	if err != nil {
		return true, err
	}
	return true, h.Send(ctx, r)
}

func (h *Hub) pair(ctx context.Context, code string) (string, error) {
	p, err := h.Approve(ctx, code)
	if errors.Is(err, ErrNoPairing) {
		return "Nobody has that code, or it is older than an hour. Send /pair to see who is asking.", nil
	}
	return fmt.Sprintf("%s may talk to me now. To take that back, send `/unpair %s:%s`.", p.who(), p.At.Channel, p.Sender), err
}

func (h *Hub) unpair(ctx context.Context, who string) (string, error) {
	i := strings.LastIndex(who, ":")
	if i < 0 {
		return "Who is it? Write `/unpair channel:id`.", nil
	}
	found, err := h.Unpair(ctx, who[:i], who[i+1:])
	if !found {
		return fmt.Sprintf("`%s` is not among those let in by a code. Allow lists are changed in the config.", who), err
	}
	return fmt.Sprintf("`%s` is let in by no code any more.", who), err
}

// whoAsks lists who asks to be let in.
func (h *Hub) whoAsks(ctx context.Context) (string, error) {
	open, err := h.Pairings(ctx)
	if err != nil || len(open) == 0 {
		return "Nobody is asking to be let in.", err
	}
	var b strings.Builder
	b.WriteString("These people ask to be let in:\n\n")
	for _, p := range open {
		fmt.Fprintf(&b, "- %s, %v ago: `/pair %s`\n", p.who(), time.Since(p.Time).Truncate(time.Minute), p.Code)
	}
	return b.String(), nil
}

// who names the stranger. The name is the stranger's choice, so the id stands beside it.
func (p Pairing) who() string {
	name := p.Name
	if name == "" {
		name = "Somebody without a name"
	}
	return fmt.Sprintf("%s (`%s:%s`)", name, p.At.Channel, p.Sender)
}
