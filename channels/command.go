package channels

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"parley/channels/admission"
	"parley/chat"
	"parley/store"
	"parley/texts"
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
		"/resend": {h.each(h.cfg.Texts.Commands.Resent, h.Resend), true},
		"/drop":   {h.each(h.cfg.Texts.Commands.Gone, h.Drop), true},
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
		r.Text = h.cfg.Texts.Commands.OnlyOwner
		h.cfg.Audit("refused", who, name)
	case m.Group && deed.private:
		r.Text = h.cfg.Texts.Commands.InPrivate
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
	d, _, err = h.kept.commands.Get(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return d, err
	}
	if d.Answer, err = do(); err != nil {
		return d, err
	}
	d.Time = time.Now()
	if err := h.kept.commands.Set(ctx, id, d); err != nil {
		return d, err
	}
	return d, h.kept.commands.Retain(ctx, func(_ string, d done) bool { return time.Since(d.Time) < keepAnswered })
}

func (h *Hub) pair(ctx context.Context, code string) (string, error) {
	if code == "" {
		return h.whoAsks(ctx)
	}
	p, err := h.access.Approve(ctx, code)
	if errors.Is(err, admission.ErrNoPairing) {
		return h.cfg.Texts.Commands.NoCode, nil
	}
	return h.cfg.Texts.Commands.Paired.With(h.who(p), p.At.Channel, p.Sender), err
}

func (h *Hub) unpair(ctx context.Context, who string) (string, error) {
	i := strings.LastIndex(who, ":")
	if i < 0 {
		return h.cfg.Texts.Commands.Whom, nil
	}
	found, err := h.access.Unpair(ctx, who[:i], who[i+1:])
	if !found {
		return h.cfg.Texts.Commands.NotPaired.With(who), err
	}
	return h.cfg.Texts.Commands.Unpaired.With(who), err
}

// whoAsks lists who asks to be let in.
func (h *Hub) whoAsks(ctx context.Context) (string, error) {
	open, err := h.access.Pairings(ctx)
	if err != nil || len(open) == 0 {
		return h.cfg.Texts.Commands.NobodyAsks, err
	}
	var b strings.Builder
	b.WriteString(h.cfg.Texts.Commands.Asking + "\n\n")
	for _, p := range open {
		b.WriteString("- " + h.cfg.Texts.Commands.Asks.With(h.who(p), h.ago(p.Time), p.Code) + "\n")
	}
	return b.String(), nil
}

// who names the sender of p. The name is of their own choosing, so the ID stands
// beside it.
func (h *Hub) who(p admission.Pairing) string {
	say := h.cfg.Texts.Commands
	return say.Who.With(cmp.Or(p.Name, say.NoName), p.At.Channel, p.Sender)
}

// ago says how long t was ago.
func (h *Hub) ago(t time.Time) string { return h.cfg.Texts.Span.Of(time.Since(t)) }

const (
	maxListed = 10 // parked replies in one list
	maxGlance = 60 // runes of each
)

// parked lists the parked replies, the latest last.
func (h *Hub) parked(ctx context.Context, _ string) (string, error) {
	all, err := h.Parked(ctx)
	if err != nil || len(all) == 0 {
		return h.cfg.Texts.Commands.NoneParked, err
	}
	var b strings.Builder
	say := h.cfg.Texts.Commands
	b.WriteString(say.Parked.With(len(all)) + "\n\n")
	for _, p := range all[max(0, len(all)-maxListed):] {
		b.WriteString("- " + say.ParkedReply.With(p.handle(), p.Reply.To.Session(),
			h.ago(p.Time), plainly(p.Reply.Text, maxGlance), plainly(p.Reason, maxGlance)) + "\n")
	}
	b.WriteString("\n" + say.ParkedUsage)
	return b.String(), nil
}

// handle is a name that a person can type. Unlike a place in the list it means
// the same reply when the command comes again.
func (p Parked) handle() string { return p.Key[max(0, len(p.Key)-8):] }

// each returns what does do with the parked replies that are meant by its argument.
func (h *Hub) each(done texts.Format, do func(context.Context, string) error) func(context.Context, string) (string, error) {
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
			return h.cfg.Texts.Commands.NoSuchReply, err
		}
		return done.With(n), err
	}
}
