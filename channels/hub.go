package channels

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/channels/admission"
	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/workspace"
)

// A Config is what a Hub works with.
type Config struct {
	Store    store.Store
	Log      *slog.Logger
	Commands []Command            // for the menus of the channels
	Texts    *texts.Channels      // what people are told; nil: in English
	Files    *workspace.Workspace // for answers that are too long for messages; nil: there is no limit

	// Sent is told of each reply that left the outbox of a channel: how long it
	// was there, how often it was tried, and why it was parked, if it was.
	Sent func(channel string, r chat.Reply, waited time.Duration, tries int, err error)
	// Fate is told what became of each reply that no person waits for, before it
	// leaves the outbox, and again if a crash came between: that the network has
	// taken it, or the reason why it was parked, for the first time or after
	// tries more (P26). It may be nil.
	Fate func(ctx context.Context, r chat.Reply, tries int, reason string) error
	// Audit is told of what owners decide, and of what others are refused.
	Audit func(kind, who, what string)
}

// A Hub is all the channels. What people say comes in by Receive, what is said
// to them leaves by Send and Work:
//
//	hub.Add(…)
//	go hub.Receive(intake, deliver)  // ends with intake, at once
//	go hub.Work(work)                // ends with work
//
// To shut down (P16): end intake and wait for Receive, finish the turns, call
// Drain with the time that is left, end work and wait for Work. What was not
// sent by then is sent after the next start.
type Hub struct {
	cfg    Config
	kept   tables
	lines  map[string]*line
	access *admission.Control
	polls  polls
}

// NewHub returns a Hub without channels, which lets nobody in.
func NewHub(c Config) *Hub {
	if c.Sent == nil {
		c.Sent = func(string, chat.Reply, time.Duration, int, error) {}
	}
	if c.Fate == nil {
		c.Fate = func(context.Context, chat.Reply, int, string) error { return nil }
	}
	if c.Audit == nil {
		c.Audit = func(string, string, string) {}
	}
	if c.Texts == nil {
		c.Texts = &texts.English().Channels
	}
	h := &Hub{cfg: c, kept: openTables(c.Store, c.Log), lines: map[string]*line{}}
	h.access = admission.NewControl(admission.Config{Store: c.Store, Log: c.Log, Welcome: h.welcome})
	return h
}

// Add adds c under its name in config.json, before Receive, Send and Work are called.
func (h *Hub) Add(name string, c Channel) {
	editor, _ := c.(Editor)
	h.lines[name] = &line{
		Channel: c, editor: editor, name: name, hub: h, log: h.cfg.Log.With("channel", name),
		queue: h.cfg.Store.Queue(store.QueueOutbox(name)), delivery: h.kept.deliveries,
		traffic: traffic{lanes: map[string]*load{}}, errands: make(chan errand, maxErrands),
	}
	if n, ok := c.(RecoveryNotifier); ok {
		n.OnRecovery(h.lines[name].recovery.announce)
	}
	if t, ok := c.(Tracer); ok {
		h.lines[name].sequence = newSequence(h.lines[name], t)
	}
	if _, ok := c.(Reactor); ok {
		h.lines[name].marks = make(chan marking, maxMarks)
	}
}

// Channel returns the channel of that name, or nil.
func (h *Hub) Channel(name string) Channel {
	l := h.lines[name]
	if l == nil {
		return nil
	}
	return l.Channel
}

// Access returns what decides who may talk. At first that is nobody.
func (h *Hub) Access() *admission.Control { return h.access }

// welcome tells a paired sender that they may talk now.
func (h *Hub) welcome(ctx context.Context, p admission.Pairing) error {
	return h.Send(ctx, chat.Reply{ID: "paired:" + p.Code, To: p.At, Text: h.cfg.Texts.Pairing.Welcome})
}

// Receive runs the channels, or only those named, until ctx ends. A channel
// that fails is logged and shown by Status, and the others go on. Receive
// returns when all have ended: nil when ctx has, and otherwise what stopped them.
func (h *Hub) Receive(ctx context.Context, deliver chat.Deliver, only ...string) error {
	var wg sync.WaitGroup
	for _, l := range h.lines {
		if len(only) > 0 && !slices.Contains(only, l.name) {
			continue
		}
		ctx, ended := context.WithCancel(ctx)
		wg.Go(func() {
			defer ended()
			l.receive(ctx, deliver)
		})
		if c, ok := l.Channel.(CommandMenu); ok {
			wg.Go(func() { l.offer(ctx, c) })
		}
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	var errs []error
	for _, l := range h.lines {
		errs = append(errs, l.fault.get())
	}
	return errors.Join(errs...)
}

// Send puts r into the outbox of its channel. Once it has returned nil, r is
// sent, or parked with a reason, whatever happens. A reply with neither text
// nor files takes away what Live has shown of it. A question in it is one that
// nobody waits for (Say); others are sent by Ask.
func (h *Hub) Send(ctx context.Context, r chat.Reply) error { return h.push(ctx, r, 0) }

// push is Send of a reply that was parked and tried again so many times.
func (h *Hub) push(ctx context.Context, r chat.Reply, tries int) error {
	if r.ID == "" {
		return errors.New("send: reply has no id")
	}
	l, ok := h.lines[r.To.Channel]
	if !ok {
		return h.park(ctx, Parked{Reply: r, Reason: fmt.Sprintf("there is no channel named %q", r.To.Channel), Tries: tries})
	}
	if err := l.offered(ctx, r); err != nil {
		return fmt.Errorf("send to %s: %w", r.To.Session(), err)
	}
	out := letter{Reply: r, Pushed: time.Now(), Tries: tries}
	if l.sequence != nil {
		p, err := l.sequence.tracer.Position(ctx, r)
		if err != nil && !IsPermanent(err) { // else it is parked when it is sent
			return fmt.Errorf("send to %s: %w", r.To.Session(), err)
		}
		out.After = p
	}
	body, err := json.Marshal(out)
	if err != nil {
		return fmt.Errorf("send to %s: %w", r.To.Session(), err)
	}
	if err := l.queue.Push(ctx, r.ID, body); err != nil {
		return fmt.Errorf("send to %s: outbox: %w", r.To.Session(), err)
	}
	l.overtake(r)
	return nil
}

// Work sends what is in the outboxes until ctx ends, or the store fails. What
// is on its way then has a moment to get there. The channels that are io.Closers
// are closed then.
func (h *Hub) Work(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	do := func(f func(context.Context)) {
		g.Go(func() error { f(ctx); return nil })
	}
	do(h.prune)
	do(h.retryParked)
	for _, l := range h.lines {
		g.Go(func() error { return l.work(ctx) })
		do(l.run)
		if c, ok := l.Channel.(Reactor); ok {
			do(func(ctx context.Context) { l.react(ctx, c) })
		}
	}
	err := g.Wait()
	for _, l := range h.lines {
		if c, ok := l.Channel.(io.Closer); ok {
			err = errors.Join(err, c.Close())
		}
	}
	return err
}

// Drain waits until the outboxes are empty but for what a network does not take
// at present, or until ctx ends. Work must be running.
func (h *Hub) Drain(ctx context.Context) {
	for _, l := range h.lines {
		for {
			n, err := l.queue.Len(ctx)
			if err != nil || n <= l.traffic.stalled() || !Sleep(ctx, drainEvery) {
				break
			}
		}
	}
}

const drainEvery = 10 * time.Millisecond

// TellOwners says text once, in private, to every owner who can be spoken to
// first. Another text needs another id.
func (h *Hub) TellOwners(ctx context.Context, id, text string) error {
	var errs []error
	for _, owner := range h.access.Rules().Owners() {
		if to, ok := h.office(owner); ok {
			errs = append(errs, h.Send(ctx, chat.Reply{ID: "tell:" + id + ":" + owner, To: to, Text: text}))
		}
	}
	if errs == nil {
		h.cfg.Log.Warn("no owner can be told", "text", text)
	}
	return errors.Join(errs...)
}

// Office returns the private chat with the first owner who can be spoken to
// first; it is not ok if there is none. A person on a network carries it along:
// the terminal and the page, whose owners have no ID, come after that.
func (h *Hub) Office() (at chat.Address, ok bool) {
	anonymous := func(owner string) int { return 1 - min(1, strings.Count(owner, ":")) }
	owners := h.access.Rules().Owners()
	slices.SortStableFunc(owners, func(a, b string) int { return anonymous(a) - anonymous(b) })
	for _, owner := range owners {
		if at, ok = h.office(owner); ok {
			break
		}
	}
	return at, ok
}

// office returns where owner can be spoken to first.
func (h *Hub) office(owner string) (at chat.Address, ok bool) {
	channel, person := owner, ""
	if i := strings.LastIndex(owner, ":"); i >= 0 {
		channel, person = owner[:i], owner[i+1:]
	}
	if l := h.lines[channel]; l != nil {
		if d, ok := l.Channel.(DirectMessenger); ok {
			at = d.Direct(person)
		}
	}
	at.Channel = channel
	return at, at.Chat != ""
}
