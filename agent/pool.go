// Package agent answers messages. A Pool holds the sessions at work; each is
// a loop of model and tools, told in a log that is the only truth about it.
//
// A message goes a straight line: Deliver puts it into the inbox, a queue on
// disk. The session's worker takes it, and a turn records it, asks the model,
// uses the tools the model calls for, and ends with one Append that holds both
// the answer and the end of the turn. Then the reply goes to the outbox and
// the message out of the inbox. Whatever instant the process dies at, the
// message comes back and the log says what was done already (P6, P7).
package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/agent/activity"
	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/agent/deadletter"
	"parley/agent/subagents"
	"parley/agent/underway"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/texts"
	"parley/tools"
)

// A Pool is the sessions at work.
type Pool struct {
	config     Config
	log        *slog.Logger // that of config
	texts      *texts.Agent // those of config
	settings   atomic.Pointer[Settings]
	commands   []Command // its own, and those of config
	inbox      store.Queue
	sessions   *conversation.Sessions
	prompts    *conversation.Prompts
	album      *conversation.Album
	ratios     llm.TokenRatios
	activities *activity.Set
	turns      *activity.Places // of turns under way
	besides    *activity.Places // of commands that are answered beside turns
	guard      *deadletter.Guard
	suspended  *deadletter.Suspended
	letters    *deadletter.Letters
	subagents  *subagents.Supervisor
	budget     *budget.Book
	began      time.Time // when the Pool was made
}

// New returns a Pool that takes messages at once and answers them once Run is called.
func New(c Config, s Settings) *Pool {
	c = c.withDefaults()
	p := &Pool{
		config:     c,
		log:        c.Log,
		texts:      c.Texts,
		inbox:      c.Store.Queue(store.QueueInbox),
		sessions:   conversation.NewSessions(c.Store, c.Log, c.Zone, c.Texts.Speakers),
		prompts:    conversation.NewPrompts(c.Store, c.Log),
		album:      conversation.NewAlbum(c.Workspace),
		activities: activity.NewSet(),
		turns:      activity.NewPlaces(c.Turns),
		besides:    activity.NewPlaces(maxCommands),
		guard:      deadletter.NewGuard(c.Store.Bucket(store.BucketSuspended), c.Log),
		suspended:  deadletter.NewSuspended(c.Store.Bucket(store.BucketSuspended), c.Log),
		began:      time.Now(),
	}
	p.commands = append(ownCommands(p, c.Texts.Help), c.Commands...)
	p.letters = deadletter.NewLetters(c.Store, p.suspended, p.Deliver)
	p.subagents = newSupervisor(p, c.Store.Bucket(store.BucketSubagents))
	p.budget = budget.New(budget.Config{
		Bucket: c.Store.Bucket(store.BucketLedger),
		Texts:  &c.Texts.Limits,
		Log:    c.Log,
		Zone:   c.Zone,
		Warn:   c.Warn,
		Retry:  p.insist,
		Limits: func() budget.Limits { return p.settings.Load().Limits },
		Price:  func(model string, u llm.Usage) (float64, bool) { return p.settings.Load().Price(model, u) },
	})
	p.Set(s)
	return p
}

// Sessions returns the conversations.
func (p *Pool) Sessions() *conversation.Sessions { return p.sessions }

// DeadLetters returns the messages that could not be answered.
func (p *Pool) DeadLetters() *deadletter.Letters { return p.letters }

// Underway returns what the agent has under way.
func (p *Pool) Underway() underway.List {
	return underway.New(p.activities, p.subagents, p.config.Background)
}

// Budget returns the book of what was spent.
func (p *Pool) Budget() *budget.Book { return p.budget }

// Set changes the Settings, from the next turn of every session on.
func (p *Pool) Set(s Settings) {
	if s.Price == nil {
		s.Price = func(string, llm.Usage) (float64, bool) { return 0, false }
	}
	p.settings.Store(&s)
}

// Model returns the model of that name, or the one for sessions that chose none.
func (p *Pool) Model(name string) Model {
	_, m := p.settings.Load().model(name)
	return m
}

// Tools returns the tools that an owner may use in the session id. What was done can
// be shown without them: if they cannot be listed, there are none.
func (p *Pool) Tools(ctx context.Context, id chat.SessionID) *tools.Kit {
	kit, err := p.settings.Load().Kit(ctx, tools.Scope{Session: id, From: chat.Sender{Role: chat.Owner}})
	if err != nil {
		return &tools.Kit{}
	}
	return kit
}

// Deliver takes m. It returns nil once m is in the inbox, or was there before (P2),
// or was a command that is answered at once.
func (p *Pool) Deliver(ctx context.Context, m chat.Message) error {
	name := p.command(m)
	if options := conversation.ToolOptions(name, m); options != nil {
		m.Options = options
		return p.push(ctx, m)
	}
	if c := p.findCommand(name); c != nil && c.When == AtOnce {
		text, _ := p.carryOut(ctx, c, m)
		return p.answer(ctx, m, text)
	}
	return p.push(ctx, p.route(ctx, m, name))
}

// push puts m into the inbox.
func (p *Pool) push(ctx context.Context, m chat.Message) error {
	body, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("deliver %s: %w", m.Key(), err)
	}
	if err := p.inbox.Push(ctx, m.Key(), body); err != nil {
		return fmt.Errorf("deliver %s: %w", m.Key(), err)
	}
	return nil
}

// answer sends text, unless it is empty, as the reply to m.
func (p *Pool) answer(ctx context.Context, m chat.Message, text string) error {
	if text == "" {
		return nil
	}
	r := m.Reply()
	r.Text = text
	return p.config.Send(ctx, r)
}

// Run answers messages until ctx ends. Turns under way then have Grace to
// finish; what they leave is resumed by the next Run.
func (p *Pool) Run(ctx context.Context) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	endTurns := func() { cancel(tools.ErrClosing) }
	defer p.budget.Keep(ctx)()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(p.config.Grace, endTurns) })()
	background, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	for _, load := range []func(context.Context) error{p.guard.Load, p.suspended.Load} {
		if err := p.insist(ctx, "read what was suspended", load); err != nil {
			return ignore(err, context.Canceled)
		}
	}
	if err := p.insist(ctx, "read what was used so far", p.importUsage); err != nil {
		return ignore(err, context.Canceled)
	}
	running.Go(func() { p.subagents.Run(background) })
	running.Go(func() { p.guard.Run(background) })
	running.Go(func() { p.suspended.Run(background, p.began) })
	commands := activity.NewPending()
	key := func(item store.Item) string {
		key := p.receive(item)
		if id, isCommand := strings.CutSuffix(key, commandsKey); isCommand {
			commands.Add(chat.SessionID(id))
		}
		return key
	}
	return store.Work(ctx, p.inbox, key, func(ctx context.Context, key string, take func() []store.Item) {
		id, beside := strings.CutSuffix(key, commandsKey)
		w := worker{
			pool: p, id: chat.SessionID(id), soft: ctx, hard: hard, pull: take, beside: beside, commands: commands,
		}
		if beside {
			w.serveCommands()
			return
		}
		w.serve()
	})
}

// insist calls do, which does what, until it succeeds, as when the disk is full (P19). It
// gives up when ctx ends, the store is closed, or somebody else has changed what do knows.
func (p *Pool) insist(ctx context.Context, what string, do func(context.Context) error) error {
	for wait := time.Second; ; wait = min(2*wait, 20*time.Second) {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrConflict):
			return fmt.Errorf("%s: %w", what, err)
		}
		p.log.Error("not done yet, trying again", "what", what, "err", err, "in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// ignore returns err, or nil if err is such.
func ignore(err, such error) error {
	if errors.Is(err, such) {
		return nil
	}
	return err
}
