package channels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/channels/admission"
	"parley/channels/commands"
	"parley/channels/deadletter"
	"parley/channels/traffic"
	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/workspace"
)

const drainInterval = 10 * time.Millisecond

// A Config is what a Hub works with. Only Store and Log are required.
type Config struct {
	Store    store.Store
	Log      *slog.Logger
	Commands []Command            // for the menus of the channels
	Texts    *texts.Channels      // what people are told; nil: in English
	Files    *workspace.Workspace // keeps answers that are too long for messages; nil: there is no limit

	// Sent is called for each reply that left the outbox of a channel: how long it
	// was there, how often it was tried, and why it became a dead letter, if it did.
	Sent func(channel string, r chat.Reply, waited time.Duration, tries int, err error)
	// Fate is called for each reply that no person waits for, before it leaves the
	// outbox, and again after a crash in between (P26): reason is "" if the network
	// has accepted it. Otherwise it is a dead letter, after so many retries.
	Fate func(ctx context.Context, r chat.Reply, tries int, reason string) error
	// Audit is called for what owners decide, and for what others are refused.
	Audit func(kind, who, what string)
}

// withDefaults returns c with functions that do nothing in place of nil.
func (c Config) withDefaults() Config {
	if c.Texts == nil {
		c.Texts = &texts.English().Channels
	}
	if c.Sent == nil {
		c.Sent = func(string, chat.Reply, time.Duration, int, error) {}
	}
	if c.Fate == nil {
		c.Fate = func(context.Context, chat.Reply, int, string) error { return nil }
	}
	if c.Audit == nil {
		c.Audit = func(string, string, string) {}
	}
	return c
}

// A Hub connects the channels with the agent. Receive brings what people write;
// replies leave by Send and Work:
//
//	hub.Add(…)
//	go hub.Receive(intake, deliver)  // returns soon after intake has ended
//	go hub.Work(work)                // returns after work has ended
//
// To shut down (P16): end intake and wait for Receive, finish the turns, call
// Drain with the time that is left, end work and wait for Work. Replies that are
// still in an outbox are sent after the next start.
type Hub struct {
	cfg       Config
	tables    tables
	channels  map[string]*channelState
	access    *admission.Control
	questions *Questions
	letters   *deadletter.Letters
	commands  *commands.Handler
	answers   answerFiles
	knocks    commands.Knocks
}

// A channelState is one channel of a Hub, with the parts that work for it.
type channelState struct {
	name     string
	channel  Channel
	receiver *receiver
	outbox   *outbox
	marks    *marker
	tasks    *taskQueue
}

// NewHub returns a Hub without channels, which admits nobody.
func NewHub(c Config) *Hub {
	c = c.withDefaults()
	h := &Hub{
		cfg:      c,
		tables:   openTables(c.Store, c.Log),
		channels: map[string]*channelState{},
		answers:  answerFiles{c.Files},
	}
	h.access = admission.NewControl(admission.Config{Store: c.Store, Log: c.Log, Welcome: h.welcome})
	h.questions = &Questions{
		table:         h.tables.questions,
		send:          h.Send,
		audit:         c.Audit,
		removeButtons: h.removeButtons,
		maxFields:     h.maxFields,
		texts:         &c.Texts.Form,
	}
	h.letters = deadletter.New(deadletter.Config{
		Store:    c.Store,
		Log:      c.Log,
		Fate:     c.Fate,
		Withdraw: h.questions.Withdraw,
		Send:     h.enqueue,
	})
	h.commands = commands.New(commands.Config{
		Store:   c.Store,
		Log:     c.Log,
		Texts:   c.Texts,
		Access:  h.access,
		Letters: h.letters,
		Send:    h.Send,
		Audit:   c.Audit,
	})
	return h
}

// Add adds c under its name in config.json, before Receive, Send and Work are called.
func (h *Hub) Add(name string, c Channel) {
	log := h.cfg.Log.With("channel", name)
	s := &channelState{name: name, channel: c, tasks: newTaskQueue(log), marks: newMarker(c, log)}
	editor, _ := c.(Editor)
	render := &renderer{
		channel:     c,
		texts:       h.cfg.Texts,
		showsSteps:  editor != nil,
		cutsAnswers: h.cfg.Files != nil,
	}
	s.outbox = &outbox{
		name:      name,
		channel:   c,
		editor:    editor,
		log:       log,
		render:    render,
		queue:     h.cfg.Store.Queue(store.QueueOutbox(name)),
		journal:   h.tables.deliveries,
		traffic:   traffic.New(),
		questions: h.questions,
		letters:   h.letters,
		answers:   h.answers,
		marks:     s.marks,
		sent:      h.cfg.Sent,
		fate:      h.cfg.Fate,
	}
	if t, ok := c.(Tracer); ok {
		s.outbox.sequence = newSequence(name, t, h.tables, h.questions.receiptOf)
	}
	if n, ok := c.(RecoveryNotifier); ok {
		n.OnRecovery(s.outbox.recovery.announce)
	}
	if a, ok := c.(Attacher); ok {
		a.SetOpenQuestions(s.openQuestions)
	}
	s.receiver = &receiver{
		name:      name,
		channel:   c,
		log:       log,
		texts:     h.cfg.Texts,
		access:    h.access,
		questions: h.questions,
		commands:  h.commands,
		outbox:    s.outbox,
		marks:     s.marks,
		tasks:     s.tasks,
		send:      h.Send,
		announce:  h.announceRequest,
	}
	h.channels[name] = s
}

// openQuestions returns the messages that ask the open questions of the chat at.
func (s *channelState) openQuestions(ctx context.Context, at chat.Address) (messages []chat.Reply, err error) {
	open, err := s.outbox.questions.openAt(ctx, at)
	if err != nil {
		return nil, err
	}
	for _, r := range open {
		parts, err := s.outbox.render.parts(r)
		if err != nil {
			return nil, err
		}
		messages = append(messages, parts...)
	}
	return messages, nil
}

// Channel returns the channel of that name, or nil.
func (h *Hub) Channel(name string) Channel {
	s := h.channels[name]
	if s == nil {
		return nil
	}
	return s.channel
}

// maxFields returns how many fields a form can have on that channel; 0 if it shows none.
func (h *Hub) maxFields(channel string) int {
	if shower, ok := h.Channel(channel).(FormShower); ok {
		return shower.MaxFields()
	}
	return 0
}

// Access returns the control of who may talk.
func (h *Hub) Access() *admission.Control { return h.access }

// Questions returns what asks people questions.
func (h *Hub) Questions() *Questions { return h.questions }

// DeadLetters returns the replies that could not be sent.
func (h *Hub) DeadLetters() *deadletter.Letters { return h.letters }

// welcome tells a paired sender that they may talk now.
func (h *Hub) welcome(ctx context.Context, p admission.Pairing) error {
	return h.Send(ctx, chat.Reply{ID: "paired:" + p.Code, To: p.At, Text: h.cfg.Texts.Pairing.Welcome})
}

// Receive runs the channels, or only those named, until ctx ends. A channel that
// fails is logged and shown by Status, and the others go on. Receive returns when
// all have ended: nil if ctx has, and otherwise the errors that stopped them.
func (h *Hub) Receive(ctx context.Context, deliver chat.Deliver, only ...string) error {
	var wg sync.WaitGroup
	for _, s := range h.channels {
		if len(only) > 0 && !slices.Contains(only, s.name) {
			continue
		}
		ctx, ended := context.WithCancel(ctx)
		wg.Go(func() {
			defer ended()
			s.receiver.run(ctx, deliver)
		})
		if menu, ok := s.channel.(CommandMenu); ok {
			wg.Go(func() { setCommands(ctx, menu, h.cfg.Commands, s.receiver.log) })
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	var errs []error
	for _, s := range h.channels {
		errs = append(errs, s.receiver.fault.get())
	}
	return errors.Join(errs...)
}

// Send puts r into the outbox of its channel. Once it has returned nil, r will be
// sent or become a dead letter, whatever happens. A reply with neither text nor
// files removes what Live has shown of it. A question in r must be one that nobody
// waits for (Question.Say); [Questions.Ask] sends the others.
func (h *Hub) Send(ctx context.Context, r chat.Reply) error { return h.enqueue(ctx, r, 0) }

// enqueue is Send for a reply that was a dead letter so many times.
func (h *Hub) enqueue(ctx context.Context, r chat.Reply, tries int) error {
	if r.ID == "" {
		return errors.New("send: reply has no id")
	}
	s := h.channels[r.To.Channel]
	if s == nil {
		reason := fmt.Sprintf("there is no channel named %q", r.To.Channel)
		return h.letters.Add(ctx, deadletter.Letter{Reply: r, Reason: reason, Tries: tries})
	}
	if err := s.outbox.push(ctx, r, tries); err != nil {
		return fmt.Errorf("send to %s: %w", r.To.Session(), err)
	}
	return nil
}

// Work sends what is in the outboxes until ctx ends or the store fails. Sends that
// are under way then have a moment to finish. At last it closes the channels that
// are io.Closers.
func (h *Hub) Work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	start := func(f func(context.Context)) {
		g.Go(func() error { f(ctx); return nil })
	}
	start(h.pruneDaily)
	start(h.letters.RetryRegularly)
	for _, s := range h.channels {
		g.Go(func() error { return s.outbox.work(ctx) })
		start(s.tasks.run)
		if s.marks.reactor != nil {
			start(s.marks.run)
		}
	}
	err := g.Wait()
	for _, s := range h.channels {
		if c, ok := s.channel.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// Drain waits until the outboxes are empty, except for replies that a network does
// not accept at present, or until ctx ends. Work must be running.
func (h *Hub) Drain(ctx context.Context) {
	for _, s := range h.channels {
		for {
			n, err := s.outbox.queue.Len(ctx)
			if err != nil || n <= s.outbox.traffic.Stalled() || !Sleep(ctx, drainInterval) {
				break
			}
		}
	}
}

// pruneDaily deletes, at once and then daily until ctx ends, the records of
// deliveries that were begun and never finished, and old files of long answers.
func (h *Hub) pruneDaily(ctx context.Context) {
	for more := true; more; more = Sleep(ctx, pruneInterval) {
		isRecent := func(_ string, r record) bool { return time.Since(r.Time) < keepRecords }
		if err := h.tables.deliveries.Retain(ctx, isRecent); err != nil && ctx.Err() == nil {
			h.cfg.Log.Warn("old delivery records not pruned", "err", err)
		}
		if err := h.answers.prune(); err != nil {
			h.cfg.Log.Warn("old answers not removed", "err", err)
		}
	}
}

// removeButtons shows the outcome of q in place of its buttons, if the channel has
// any. It is tried once, in the background.
func (h *Hub) removeButtons(q question) {
	s := h.channels[q.Reply.To.Channel]
	if s == nil || q.Receipt == "" || !s.outbox.render.hasButtons(q.Reply.Ask) {
		return
	}
	s.tasks.add("remove the buttons of a question", func(ctx context.Context) error {
		r, err := s.outbox.render.closingPart(q)
		if err != nil {
			return err
		}
		return s.channel.(Asker).Edit(ctx, q.Receipt, r)
	})
}
