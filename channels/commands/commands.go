// Package commands carries out the commands of owners about pairing and dead letters, and tells them who asks to be
// let in.
package commands

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"parley/channels/admission"
	"parley/channels/safetext"
	"parley/chat"
	"parley/store"
	"parley/texts"
)

const (
	maxListed       = 10 // dead letters in one list
	maxExcerptRunes = 60 // of the text of each, and of its reason
)

// keepAnswers is how long a message may be delivered again.
const keepAnswers = 48 * time.Hour

// A Config is what a Handler works with.
type Config struct {
	Store   store.Store
	Log     *slog.Logger
	Texts   *texts.Channels
	Access  *admission.Control
	Letters chat.DeadLetters
	Send    chat.Send
	// Audit is called for what owners decide, and for what others are refused.
	Audit func(kind, who, what string)
}

// A Handler answers commands.
type Handler struct {
	cfg   Config
	texts texts.HubCommands
	done  store.Table[doneCommand] // by the ID of the answer
}

// New returns a Handler.
func New(cfg Config) *Handler {
	bucket := cfg.Store.Bucket(store.BucketCommands)
	done := store.NewTable(bucket, store.Forget[doneCommand](cfg.Log, "command carried out"))
	return &Handler{cfg: cfg, texts: cfg.Texts.Commands, done: done}
}

// A command is what one of the commands does.
type command struct {
	run     func(ctx context.Context, arg string) (answer string, err error)
	private bool // it is not answered where others read along
}

// A doneCommand is the answer to a command that was carried out. It is kept for as
// long as the message may be delivered again.
type doneCommand struct {
	Answer string    `json:"answer"`
	Time   time.Time `json:"time"`
}

func (h *Handler) all() map[string]command {
	say := h.texts
	return map[string]command{
		"/pair":   {h.pair, false},
		"/unpair": {h.unpair, false},
		"/parked": {h.listLetters, true},
		"/resend": {h.forLetters(say.Resent, h.cfg.Letters.Retry), true},
		"/drop":   {h.forLetters(say.Gone, h.cfg.Letters.Dismiss), true},
	}
}

// Answer answers m if it is one of the commands. If the message is delivered again,
// the answer is the same, and the outbox drops it: a second "/resend all" must not
// include replies that became dead letters since.
func (h *Handler) Answer(ctx context.Context, m chat.Message) (isCommand bool, err error) {
	name, arg := chat.Word(m.Text)
	name, _, _ = strings.Cut(strings.ToLower(name), "@") // as in "/pair@parley_bot"
	asked, isCommand := h.all()[name]
	if !isCommand {
		return false, nil
	}
	r := m.Reply()
	who := m.At.Channel + ":" + m.From.ID
	switch {
	case m.From.Role != chat.Owner:
		r.Text = h.texts.OnlyOwner
		h.cfg.Audit("refused", who, name)
	case m.Group && asked.private:
		r.Text = h.texts.InPrivate
	default:
		r.Text, err = h.runOnce(ctx, r.ID, func() (string, error) { return asked.run(ctx, arg) })
		if err != nil {
			return true, err
		}
		if arg != "" {
			h.cfg.Audit("access", who, name+" "+arg)
		}
	}
	return true, h.cfg.Send(ctx, r)
}

// runOnce returns what run returns, and did return if it was run before for id.
func (h *Handler) runOnce(ctx context.Context, id string, run func() (string, error)) (string, error) {
	before, _, err := h.done.Get(ctx, id)
	if !errors.Is(err, store.ErrNotFound) {
		return before.Answer, err
	}
	answer, err := run()
	if err != nil {
		return "", err
	}
	if err := h.done.Set(ctx, id, doneCommand{Answer: answer, Time: time.Now()}); err != nil {
		return "", err
	}
	isRecent := func(_ string, d doneCommand) bool { return time.Since(d.Time) < keepAnswers }
	return answer, h.done.Retain(ctx, isRecent)
}

func (h *Handler) pair(ctx context.Context, code string) (string, error) {
	if code == "" {
		return h.listRequests(ctx)
	}
	p, err := h.cfg.Access.Approve(ctx, code)
	if errors.Is(err, admission.ErrNoPairing) {
		return h.texts.NoCode, nil
	}
	return h.texts.Paired.With(h.nameOf(p), p.At.Channel, p.Sender), err
}

func (h *Handler) unpair(ctx context.Context, who string) (string, error) {
	i := strings.LastIndex(who, ":")
	if i < 0 {
		return h.texts.Whom, nil
	}
	found, err := h.cfg.Access.Unpair(ctx, who[:i], who[i+1:])
	if !found {
		return h.texts.NotPaired.With(who), err
	}
	return h.texts.Unpaired.With(who), err
}

// listRequests lists the people who ask to be let in.
func (h *Handler) listRequests(ctx context.Context) (string, error) {
	open, err := h.cfg.Access.Pairings(ctx)
	if err != nil || len(open) == 0 {
		return h.texts.NobodyAsks, err
	}
	var b strings.Builder
	b.WriteString(h.texts.Asking + "\n\n")
	for _, p := range open {
		b.WriteString("- " + h.texts.Asks.With(h.nameOf(p), h.age(p.Time), p.Code) + "\n")
	}
	return b.String(), nil
}

// nameOf names the sender of p. The name is of their own choosing, so the ID stands
// beside it.
func (h *Handler) nameOf(p admission.Pairing) string {
	say := h.texts
	return say.Who.With(cmp.Or(p.Name, say.NoName), p.At.Channel, p.Sender)
}

// age says how long ago t was.
func (h *Handler) age(t time.Time) string { return h.cfg.Texts.Span.Of(time.Since(t)) }

// listLetters lists the dead letters, the latest last.
func (h *Handler) listLetters(ctx context.Context, _ string) (string, error) {
	all, err := h.cfg.Letters.List(ctx)
	say := h.texts
	if err != nil || len(all) == 0 {
		return say.NoDeadLetters, err
	}
	var b strings.Builder
	b.WriteString(say.DeadLetters.With(len(all)) + "\n\n")
	for _, letter := range all[max(0, len(all)-maxListed):] {
		text := safetext.WithoutMarkup(letter.Reply.Text, maxExcerptRunes)
		reason := safetext.WithoutMarkup(letter.Reason, maxExcerptRunes)
		line := say.DeadLetter.With(handleOf(letter), letter.Session(), h.age(letter.Time), text, reason)
		b.WriteString("- " + line + "\n")
	}
	b.WriteString("\n" + say.DeadLetterUsage)
	return b.String(), nil
}

// handleOf returns a short name for a dead letter that a person can type. Unlike a
// position in the list, it means the same letter when the command is repeated.
func handleOf(d chat.DeadLetter) string { return d.Key[max(0, len(d.Key)-8):] }

// forLetters returns a command that does something with the dead letter that its
// argument names, or with all of them.
func (h *Handler) forLetters(
	done texts.Format, do func(ctx context.Context, key string) error,
) func(context.Context, string) (string, error) {
	return func(ctx context.Context, which string) (string, error) {
		if which == "" {
			return h.listLetters(ctx, "")
		}
		all, err := h.cfg.Letters.List(ctx)
		n := 0
		for _, letter := range all {
			if which != "all" && which != handleOf(letter) {
				continue
			}
			if err := do(ctx, letter.Key); err != nil {
				return "", err
			}
			n++
		}
		if n == 0 {
			return h.texts.NoSuchReply, err
		}
		return done.With(n), err
	}
}
