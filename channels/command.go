package channels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
)

// own returns what does the command in m, if it is one of the Hub's own.
func (h *Hub) own(m chat.Message) (do func(context.Context, chat.Message, []string) error, args []string, ok bool) {
	words := strings.Fields(m.Text)
	if len(words) == 0 {
		return nil, nil, false
	}
	name, _, _ := strings.Cut(words[0], "@") // as in "/pair@parley_bot"
	return h.pair, words[1:], name == "/pair"
}

// pair does the command /pair.
func (h *Hub) pair(ctx context.Context, m chat.Message, args []string) error {
	r := m.Reply()
	var code string
	switch {
	case m.From.Role != chat.Owner:
		r.Text = "Only my owner can let somebody in."
	case len(args) == 0:
		open, err := h.Pairings(ctx)
		if err != nil {
			return err
		}
		r.Text = list(open)
	default:
		req, err := h.grant(ctx, args[0])
		switch {
		case errors.Is(err, ErrNoPairing):
			r.Text = "Nobody has that code, or it is older than an hour. Send /pair to see who is asking."
		case err != nil:
			return err
		default:
			code = req.Code
			r.Text = fmt.Sprintf("%s may talk to me now.", req.who())
		}
	}
	if err := h.Send(ctx, r); err != nil || code == "" {
		return err
	}
	return h.pairing.close(ctx, code)
}

// who names the stranger. The name is the stranger's choice, so the id stands beside it.
func (p Pairing) who() string {
	name := p.Name
	if name == "" {
		name = "Somebody without a name"
	}
	return fmt.Sprintf("%s (`%s:%s`)", name, p.At.Channel, p.Sender)
}

func list(open []Pairing) string {
	if len(open) == 0 {
		return "Nobody is asking to be let in."
	}
	var b strings.Builder
	b.WriteString("These people ask to be let in:\n\n")
	for _, p := range open {
		fmt.Fprintf(&b, "- %s, %v ago: `/pair %s`\n", p.who(), time.Since(p.Time).Truncate(time.Minute), p.Code)
	}
	return b.String()
}
