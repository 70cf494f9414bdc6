package channels

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"parley/channels/admission"
	"parley/channels/choices"
	"parley/channels/commands"
	"parley/chat"
	"parley/panics"
	"parley/store"
	"parley/texts"
)

// A receiver runs one channel and handles everything that comes in from it.
type receiver struct {
	name      string
	channel   Channel
	log       *slog.Logger
	texts     *texts.Channels
	access    *admission.Control
	questions *Questions
	commands  *commands.Handler
	outbox    *outbox
	marks     *marker
	tasks     *taskQueue
	send      chat.Send
	announce  func(admission.Pairing)

	dropped  atomic.Int64 // messages of unknown senders
	fault    fault
	toldFull sync.Map // chat.Address -> true: the chat was told that the disk is full
}

// A fault is the reason why a channel receives nothing: nil if it does.
type fault struct{ err atomic.Pointer[error] }

func (f *fault) set(err error) { f.err.Store(&err) }

func (f *fault) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// health returns why nothing is received at present, or nil.
func (rv *receiver) health() error {
	err := rv.fault.get()
	if reporter, ok := rv.channel.(HealthReporter); ok && err == nil {
		return reporter.Health()
	}
	return err
}

// run runs the channel until ctx ends or it cannot go on. A channel that panics is
// run again.
func (rv *receiver) run(ctx context.Context, deliver chat.Deliver) {
	backoff := networkBackoff()
	for {
		err := panics.Try(func() error {
			return rv.channel.Run(ctx, func(ctx context.Context, m chat.Message) error {
				return rv.receive(ctx, m, deliver)
			})
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			err = fmt.Errorf("channel %s: %w", rv.name, err)
			rv.log.Error("channel does not receive", "err", err, panics.Stack(err))
		}
		rv.fault.set(err)
		if _, crashed := errors.AsType[*panics.Error](err); !crashed || !Sleep(ctx, backoff.Next(err)) {
			return
		}
		rv.fault.set(nil)
	}
}

// receive handles m. Everything a channel reports passes through here (R-S8).
func (rv *receiver) receive(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	m.At.Channel = rv.name
	m.Origin = chat.FromPerson
	role, err := rv.access.RoleOf(ctx, m)
	if err != nil {
		return err
	}
	m.From.Role = role
	switch {
	case m.Answer != nil:
		return rv.receivePress(ctx, m, deliver)
	case role == chat.Unknown:
		return rv.answerUnknown(ctx, m)
	}
	err = rv.receiveText(ctx, m, deliver)
	if refusal, refused := errors.AsType[*chat.Refusal](err); refused {
		err = rv.refuse(ctx, m, refusal)
	}
	if err != nil {
		rv.reportFullDisk(m, err)
		return err
	}
	rv.toldFull.Delete(m.At)
	return nil
}

// receiveText handles m as a command of the Hub, as the answer to a question, or
// else by delivering it to the agent.
func (rv *receiver) receiveText(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	if isCommand, err := rv.commands.Answer(ctx, m); isCommand {
		return err
	}
	if m.Edits == "" && len(m.Files) == 0 && m.Text != "" {
		var missed *chat.Question
		understand := func(q *question) bool {
			if m.Again { // it may have led to the question
				return false
			}
			if rv.understand(q, m) {
				return true
			}
			if missed == nil && rv.isWrongChoice(q, m) {
				missed = q.Reply.Ask
			}
			return false
		}
		isAnswer, err := rv.questions.answerInWords(ctx, m, understand)
		switch {
		case err != nil:
			return err
		case isAnswer:
			rv.settle(m)
			return nil
		case missed != nil:
			return rv.explainChoices(ctx, m, missed)
		}
	}
	return rv.deliver(ctx, m, deliver)
}

// settle has the client that sent m, which answered a question, not wait for a reply.
func (rv *receiver) settle(m chat.Message) {
	if s, ok := rv.channel.(Settler); ok {
		s.Settle(m.ID)
	}
}

// isWrongChoice reports whether m, which does not answer asked, was meant to: it is one
// letter, or a number, where the choices are numbered and nobody else reads along.
func (rv *receiver) isWrongChoice(asked *question, m chat.Message) bool {
	q := asked.Reply.Ask
	if q.Say || q.Free || asked.Reply.Group || rv.outbox.render.hasButtons(q) || !asked.mayAnswer(m) {
		return false
	}
	text := choices.Trim(m.Text)
	r, size := utf8.DecodeRuneInString(text)
	_, err := strconv.Atoi(text)
	return size == len(text) && unicode.IsLetter(r) || err == nil
}

// explainChoices tells the sender of m how to answer q. The reply has an ID of its own,
// because m may be answered under the usual one if it was delivered before.
func (rv *receiver) explainChoices(ctx context.Context, m chat.Message, q *chat.Question) error {
	r := m.Reply()
	r.ID = "ask:again/" + m.Key()
	r.Text = rv.outbox.render.howToAnswer(q)
	return rv.send(ctx, r)
}

// answerUnknown counts m, which comes from an unknown sender, and answers with a
// pairing code if one is due. Nobody is answered in a group.
func (rv *receiver) answerUnknown(ctx context.Context, m chat.Message) error {
	rv.dropped.Add(1)
	if m.Group || m.From.ID == "" {
		return nil
	}
	request, isDue, err := rv.access.Request(ctx, m)
	if err != nil {
		return fmt.Errorf("pairing: %w", err)
	}
	if !isDue {
		return nil
	}
	rv.log.Info("unknown sender was told a pairing code", "sender", request.Sender, "name", request.Name)
	rv.announce(request)
	r := m.Reply()
	r.Text = rv.texts.Pairing.Refused.With(request.Code, request.Code)
	return rv.send(ctx, r)
}

// refuse tells the sender of m why it was refused. The reply has an ID of its own,
// because m may be answered under the usual one if it was accepted before.
func (rv *receiver) refuse(ctx context.Context, m chat.Message, why *chat.Refusal) error {
	r := m.Reply()
	r.ID = "refused:" + m.Key()
	r.Text = why.Text
	return rv.send(ctx, r)
}

// deliver delivers m to the agent and marks it.
func (rv *receiver) deliver(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	id := messageID{m.At, m.ID}
	rv.marks.expect(id) // before deliver, because the answer may come before it returns
	if err := deliver(ctx, m); err != nil {
		return err
	}
	rv.marks.mark(id, Seen)
	return nil
}

// receivePress handles m, the press of a button. The choice of a question by which
// people say something is delivered to the agent: once, however often buttons are
// pressed, because it was stored before and the ID of the message follows from it.
func (rv *receiver) receivePress(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	if m.From.Role == chat.Unknown {
		rv.dropped.Add(1)
		return nil
	}
	q, err := rv.questions.press(ctx, m)
	if err != nil || q == nil {
		return err
	}
	m.ID = "press:" + q.Reply.Ask.ID
	m.At = q.Reply.To
	m.From = q.Choice.By
	m.Text = q.Choice.Text
	m.Answer = nil
	m.Chosen = true
	m.Quote = &chat.Quote{ID: q.Reply.ID, From: "you", Text: q.Reply.Text}
	if err := rv.deliver(ctx, m, deliver); err != nil {
		return err
	}
	return rv.questions.end(ctx, q)
}

// understand answers asked with the text of m, and reports whether that is an
// answer. Where buttons are shown, the words of a choice count too, unless others
// read along: then they may be meant for somebody else.
func (rv *receiver) understand(asked *question, m chat.Message) bool {
	q := asked.Reply.Ask
	text := strings.TrimSpace(m.Text)
	if q.Say || !asked.mayAnswer(m) {
		return false
	}
	isNumbered := !rv.outbox.render.hasButtons(q)
	isChoice := func(c string) bool { return strings.EqualFold(choices.Trim(c), choices.Trim(text)) }
	i := slices.IndexFunc(q.Choices, isChoice)
	if i < 0 && isNumbered {
		i = choices.ByInitial(q.Choices, text)
	}
	n, _ := strconv.Atoi(strings.TrimRight(text, ".)")) // 0 for other text
	if isNumbered && n >= 1 && n <= len(q.Choices) {
		i = n - 1
	}
	inOwnWords := q.Free && !strings.HasPrefix(text, "/") && m.From.ID == cmp.Or(q.Whom, m.From.ID)
	switch {
	case q.TakesValues(i):
		return false // words have no values
	case i >= 0 && (isNumbered || inOwnWords || !asked.Reply.Group):
		asked.choose(i, q.Choices[i], m)
	case inOwnWords:
		asked.choose(-1, text, m)
	default:
		return false
	}
	return true
}

// reportFullDisk tells the chat of m that m has to wait, if err says that the disk is
// full (P19): once, until a message of the chat is accepted. The report does not pass
// through the outbox, which is on the same disk, and it is tried once.
func (rv *receiver) reportFullDisk(m chat.Message, err error) {
	if !errors.Is(err, store.ErrFull) {
		return
	}
	if _, told := rv.toldFull.LoadOrStore(m.At, true); told {
		return
	}
	r := chat.Reply{ID: "full:" + m.Key(), To: m.At, Text: rv.texts.DiskFull} // no Quote: m is not answered
	rv.tasks.add("tell the chat that the disk is full", func(ctx context.Context) error {
		if _, waits := rv.toldFull.Load(m.At); !waits {
			return nil
		}
		return rv.outbox.sendUnqueued(ctx, r)
	})
}

// setCommands sets the command menu of a channel, however often that has to be tried.
func setCommands(ctx context.Context, menu CommandMenu, commands []Command, log *slog.Logger) {
	backoff := networkBackoff()
	for {
		err := panics.Try(func() error { return menu.SetCommands(ctx, commands) })
		if IsPermanent(err) {
			log.Warn("command menu not set", "err", err)
		}
		if err == nil || IsPermanent(err) || !Sleep(ctx, backoff.Next(err)) {
			return
		}
	}
}
