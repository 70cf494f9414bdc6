package channels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
)

// own are the commands of the Hub that a menu shows.
func own() []Command {
	return []Command{
		{"pair", "let somebody talk to me"},
		{"unpair", "let them no more"},
		{"parked", "replies that could not be sent"},
	}
}

// command answers m if it is a command of the Hub's own. Its answer has the ID
// of a reply to m, so a message that comes again is answered once.
func (h *Hub) command(ctx context.Context, m chat.Message) (own bool, err error) {
	name, arg, _ := strings.Cut(strings.TrimSpace(m.Text), " ")
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // as in "/pair@parley_bot"
	do := map[string]func(context.Context, string) (string, error){
		"/pair": h.pair, "/unpair": h.unpair, "/parked": h.parked, "/resend": h.resend, "/drop": h.drop,
	}[name]
	if do == nil {
		return false, nil
	}
	r, who := m.Reply(), m.At.Channel+":"+m.From.ID
	switch {
	case m.From.Role != chat.Owner:
		r.Text = "Only my owner can ask me that."
		h.audit("refused", who, name)
	case m.Group && name != "/pair" && name != "/unpair":
		r.Text = "Please ask me that in a private chat."
	default:
		arg = strings.TrimSpace(arg)
		if r.Text, err = do(ctx, arg); err == nil && arg != "" {
			h.audit("access", who, name+" "+arg)
		}
	}
	if err != nil {
		return true, err
	}
	return true, h.Send(ctx, r)
}

func (h *Hub) pair(ctx context.Context, code string) (string, error) {
	if code == "" {
		return h.whoAsks(ctx)
	}
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

const (
	maxListed = 10 // parked replies in one list
	maxGlance = 60 // runes of each
)

// parked lists the parked replies, the latest last.
func (h *Hub) parked(ctx context.Context, _ string) (string, error) {
	all, err := h.Parked(ctx)
	if err != nil || len(all) == 0 {
		return "There are no replies that could not be sent.", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Replies that could not be sent: %d.\n\n", len(all))
	for _, p := range all[max(0, len(all)-maxListed):] {
		fmt.Fprintf(&b, "- `%s` to `%s`, %v ago: “%s” (%s)\n", p.handle(), p.Reply.To.Session(),
			time.Since(p.Time).Truncate(time.Minute), plainly(p.Reply.Text, maxGlance), plainly(p.Reason, maxGlance))
	}
	b.WriteString("\n`/resend` or `/drop` takes one of these names, or `all`.")
	return b.String(), nil
}

// handle is a name that a person can type. Unlike a place in the list it means
// the same reply when the command comes again.
func (p Parked) handle() string { return p.Key[max(0, len(p.Key)-8):] }

func (h *Hub) resend(ctx context.Context, which string) (string, error) {
	return h.each(ctx, which, "Sent again", h.Resend)
}

func (h *Hub) drop(ctx context.Context, which string) (string, error) {
	return h.each(ctx, which, "Dropped", h.Drop)
}

// each does do with the parked replies that are meant by which.
func (h *Hub) each(ctx context.Context, which, done string, do func(context.Context, string) error) (string, error) {
	if which == "" {
		return h.parked(ctx, "")
	}
	all, err := h.Parked(ctx)
	if err != nil {
		return "", err
	}
	n := 0
	for _, p := range all {
		if which != "all" && which != p.handle() {
			continue
		}
		if err := do(ctx, p.Key); err != nil {
			return "", err
		}
		n++
	}
	if n == 0 {
		return "No parked reply has that name. Send /parked to see them.", nil
	}
	return fmt.Sprintf("%s: %d.", done, n), nil
}
