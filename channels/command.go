package channels

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

// A deed is what an owner asks of the Hub by a command.
type deed struct {
	do      func(ctx context.Context, arg string) (answer string, err error)
	private bool // not to be answered where others read along
}

// deeds are the Hub's own commands.
func (h *Hub) deeds() map[string]deed {
	return map[string]deed{
		"/pair":   {h.pair, false},
		"/unpair": {h.unpair, false},
		"/parked": {h.parked, true},
		"/resend": {h.each("Sent again", h.Resend), true},
		"/drop":   {h.each("Dropped", h.Drop), true},
	}
}

// A done deed is remembered for as long as its message may come again.
type done struct {
	Answer string    `json:"answer"`
	Time   time.Time `json:"time"`
}

// command answers m if it is a command of the Hub's own. A message that comes
// again is answered with the same words, which the outbox drops: "/resend all"
// must not resend what was parked since.
func (h *Hub) command(ctx context.Context, m chat.Message) (own bool, err error) {
	name, arg := chat.Word(m.Text)
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // as in "/pair@parley_bot"
	deed, own := h.deeds()[name]
	if !own {
		return false, nil
	}
	r, who := m.Reply(), m.At.Channel+":"+m.From.ID
	switch {
	case m.From.Role != chat.Owner:
		r.Text = "Only my owner can ask me that."
		h.cfg.Audit("refused", who, name)
	case m.Group && deed.private:
		r.Text = "Please ask me that in a private chat."
	default:
		before, err := h.once(ctx, r.ID, func() (string, error) { return deed.do(ctx, arg) })
		if err != nil {
			return true, err
		}
		r.Text = before.Answer
		if arg != "" {
			h.cfg.Audit("access", who, name+" "+arg)
		}
	}
	return true, h.Send(ctx, r)
}

// once does what id names, unless it is done already.
func (h *Hub) once(ctx context.Context, id string, do func() (string, error)) (d done, err error) {
	b := h.bucket("commands done")
	if d, _, err = store.Load[done](ctx, b, id); err == nil || !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
		return d, err
	}
	if d.Answer, err = do(); err != nil {
		return d, err
	}
	d.Time = time.Now()
	if err := write(ctx, b, id, d); err != nil {
		return d, err
	}
	return d, Sift(ctx, b, h.cfg.Log, func(_ string, d done) bool { return time.Since(d.Time) < keepAnswered })
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

// each returns what does do with the parked replies that are meant by its argument.
func (h *Hub) each(done string, do func(context.Context, string) error) func(context.Context, string) (string, error) {
	return func(ctx context.Context, which string) (string, error) {
		if which == "" {
			return h.parked(ctx, "")
		}
		all, err := h.Parked(ctx)
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
			return "No parked reply has that name. Send /parked to see them.", err
		}
		return fmt.Sprintf("%s: %d.", done, n), err
	}
}
