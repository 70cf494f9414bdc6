// Package agent answers messages. A Pool holds the sessions at work; each is
// a loop of model and tools, told in a log that is the only truth about it.
//
// A message goes a straight line: Deliver puts it into the inbox, a queue on
// disk. The session's goroutine takes it, and a turn hears it, asks the model,
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

	"golang.org/x/sync/semaphore"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/agent/deadletter"
	"parley/agent/subagents"
	"parley/agent/summary"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// Memory is what the agent asks of the memory package.
type Memory interface {
	// System returns the instructions that every request of a session begins
	// with. Of what is known of people it holds only what is known of one (R-S14).
	System(context.Context, chat.SessionID, chat.Person) (string, error)
	// SubagentSystem returns those of a subagent with that instruction of its own.
	SubagentSystem(ctx context.Context, who chat.Person, instruction string) (string, error)
}

// Config is what a Pool is made of.
type Config struct {
	Store     store.Store
	Send      chat.Send
	Texts     *texts.Agent                                     // what people are told; nil: in English
	Live      func(context.Context, chat.Reply) chat.Live      // nil: nothing is shown before a reply is whole
	Fetch     func(context.Context, chat.Message) chat.Message // brings a message's files into the workspace; nil: they stay where they are
	Memory    Memory
	Archive   summary.Archive // nil: what does not fit into requests any more is only left out of them
	Log       *slog.Logger
	Workspace *workspace.Workspace                                  // where tools work
	Zone      *time.Location                                        // in which the model is told the time; nil means UTC
	Turns     int                                                   // at work at once; 0 means 1024
	Grace     time.Duration                                         // how long turns may go on after Run's context ended (P16)
	Report    func(context.Context) []string                        // what owners are told by /status besides; nil: nothing
	ToolStats func() string                                         // what owners are told by /toolstats; nil: that nobody counts
	Left      func(chat.SessionID)                                  // told of a conversation that is over, maybe twice: what is kept for it can go; may be nil
	Undo      func(context.Context, chat.SessionID) (string, error) // puts back the files that the last turn of a session changed, and says so; nil: nobody can

	// Begun is told of each turn as it begins, with the message that it answers,
	// and what it returns is told how the turn ended: "answered", "stopped",
	// "failed", "too old", "over the limit", or "" if it goes on later or had nothing to answer.
	// The turn's models and tools get the context. nil: nobody is told.
	Begun func(context.Context, chat.SessionID, chat.Message) (context.Context, func(outcome string))

	// Ended is told how the answer to a message with RunOptions came out, before its message
	// leaves the inbox, and again if a crash came between. nil: nobody is told.
	Ended func(context.Context, End) error
	// RunUsage is told what a run of a scheduled job has used by now, when subagents
	// have worked for it after its answer. nil: nobody is told.
	RunUsage func(ctx context.Context, run string, tokens int, cost float64) error
	Warn     func(ctx context.Context, id, text string) error // tells owners what runs out for everybody, once for each id; nil: nobody is told
	Commands []Command                                        // besides those that the Pool has itself

	// Remembered returns what is kept of somebody for good: in untrusted turns tools
	// do not tell it to the web unasked (R-S12). nil: nothing is.
	Remembered func(chat.Person) string

	// Role says what a person may do by now: what they said is answered, and subagents
	// work, with no more rights than that (R-S24). nil: it is as it was then.
	Role func(context.Context, chat.Address, chat.Sender) (chat.Role, error)
	// Brief says that the process ends once its messages are answered: none of them
	// waits for a model that is out of reach.
	Brief bool
	// HasJob says whether the scheduled job of that ID still exists. nil: all do.
	HasJob func(ctx context.Context, id string) bool
}

// Settings are what may change while a Pool runs. A turn keeps those it began with.
type Settings struct {
	Models     map[string]Model                                           // by their names in config.json
	Sum        string                                                     // the name of the one that sums up for Digest; "" is Model
	Model      string                                                     // the name of the one for sessions that chose none
	Kit        func(context.Context, tools.Scope) (*tools.Kit, error)     // called once a turn
	Rounds     int                                                        // of one turn; the last one gets no tools
	MaxAge     time.Duration                                              // messages that waited longer are read, and not answered
	Rollback   bool                                                       // rounds of lookups that found nothing are taken back, and asked anew (E-019)
	RolledBack func(tool string)                                          // told of each such lookup; may be nil
	Price      func(model string, u llm.Usage) (cost float64, known bool) // nil: nobody knows
	Limits     budget.Limits                                              // count at once, also in turns under way
}

// An End is how the answer to a message with RunOptions came out.
type End struct {
	Message chat.Message
	Outcome string // "answered", "nothing to say", "stopped", "failed", "parked", "too old" or "over the limit"
	Text    string // what was said in the end, to the person or to nobody
	Sent    bool   // Text is in the outbox; what becomes of it there the network decides
	Tokens  int
	Cost    float64 // as far as prices are known
	Tainted bool    // strangers had a word in it (R-S12)
}

// A Model is an llm.Model and what there is to know of it.
type Model struct {
	llm.Model
	Window    int  // tokens that request and answer may have together
	MaxTokens int  // of an answer
	Vision    bool // it can be shown pictures
}

// A Pool is the sessions at work.
type Pool struct {
	config    Config
	log       *slog.Logger // that of config …
	texts     *texts.Agent // … and its texts
	settings  atomic.Pointer[Settings]
	inbox     store.Queue
	sessions  *conversation.Sessions
	guard     *deadletter.Guard
	suspended *deadletter.Suspended
	letters   *deadletter.Letters
	prompts   *conversation.Prompts
	turns     *semaphore.Weighted
	album     *conversation.Album
	ratios    conversation.TokenRatios
	subagents *subagents.Supervisor
	budget    *budget.Book
	began     time.Time

	mu      sync.Mutex
	running map[chat.SessionID]*running
}

// running is what others may know of a turn under way.
type running struct {
	since     time.Time
	said      time.Time               // when the first of its messages was; zero if nobody can stop it
	at        chat.Address            // where its answer goes
	options   *chat.RunOptions        // that it does, if it does one
	doing     string                  // for /status
	stop      context.CancelCauseFunc // ends the turn
	asked     time.Time               // when the person wrote /stop
	subagents int                     // that were stopped with it
	left      chan struct{}           // closed when it is over
}

// Why a turn was ended before its time.
var (
	errStopped   = errors.New("stopped by the person")
	errForgotten = errors.New("the conversation is to be forgotten")
)

// New returns a Pool that takes messages at once and answers them once Run is called.
func New(c Config, s Settings) *Pool {
	if c.Turns == 0 {
		c.Turns = 1024
	}
	if c.Left == nil {
		c.Left = func(chat.SessionID) {}
	}
	if c.Zone == nil {
		c.Zone = time.UTC
	}
	if c.Texts == nil {
		c.Texts = &texts.English().Agent
	}
	p := &Pool{
		config: c, log: c.Log, texts: c.Texts, inbox: c.Store.Queue(store.QueueInbox), sessions: conversation.NewSessions(c.Store, c.Log, c.Zone, c.Texts.Speakers),
		prompts: conversation.NewPrompts(c.Store, c.Log),
		turns:   semaphore.NewWeighted(int64(c.Turns)), album: conversation.NewAlbum(c.Workspace), began: time.Now(), running: map[chat.SessionID]*running{},
	}
	p.budget = budget.New(budget.Config{
		Bucket: c.Store.Bucket(store.BucketLedger), Texts: &c.Texts.Limits, Log: c.Log, Zone: c.Zone, Warn: c.Warn, Retry: p.insist,
		Limits: func() budget.Limits { return p.settings.Load().Limits },
		Price:  func(model string, u llm.Usage) (float64, bool) { return p.settings.Load().Price(model, u) },
	})
	p.subagents = newSupervisor(p, c.Store.Bucket(store.BucketSubagents))
	p.guard = deadletter.NewGuard(c.Store.Bucket(store.BucketSuspended), c.Log)
	p.suspended = deadletter.NewSuspended(c.Store.Bucket(store.BucketSuspended), c.Log)
	p.letters = deadletter.NewLetters(c.Store, p.suspended, p.Deliver)
	p.Set(s)
	return p
}

// Sessions returns the conversations.
func (p *Pool) Sessions() *conversation.Sessions { return p.sessions }

// DeadLetters returns the messages that could not be answered.
func (p *Pool) DeadLetters() *deadletter.Letters { return p.letters }

// Set changes the Settings, from the next turn of every session on.
func (p *Pool) Set(s Settings) {
	if s.Price == nil {
		s.Price = func(string, llm.Usage) (float64, bool) { return 0, false }
	}
	p.settings.Store(&s)
}

// Model returns the model of that name, or the one for sessions that chose none.
func (p *Pool) Model(name string) Model {
	s := p.settings.Load()
	if m := s.Models[name]; m.Model != nil {
		return m
	}
	return s.Models[s.Model]
}

// Calls returns what became of each call that was ever made in the session id,
// oldest first and those of a round in the order asked, those that were rolled
// back too (A-014, E-023). Of a session that nobody knows the error is
// store.ErrNotFound.
func (p *Pool) Calls(ctx context.Context, id chat.SessionID) ([]tools.Record, error) {
	kit, err := p.settings.Load().Kit(ctx, tools.Scope{Session: id, From: chat.Sender{Role: chat.Owner}})
	if err != nil { // what was done can be told all the same
		kit = &tools.Kit{}
	}
	return p.sessions.Calls(ctx, id, kit)
}

// Deliver takes m. It returns nil once m is in the inbox, or was there
// before (P2), or was a command that is carried out at once.
func (p *Pool) Deliver(ctx context.Context, m chat.Message) error {
	name := p.command(m)
	if text, done := p.runNow(ctx, name, m); done {
		return p.answer(ctx, m, text)
	}
	if err := p.push(ctx, p.route(ctx, m, name)); err != nil {
		return err
	}
	if name == "new" {
		p.interrupt(m, 0, func(id chat.SessionID, _ *running) bool { return id == m.Session() })
	}
	return nil
}

// push puts m into the inbox.
func (p *Pool) push(ctx context.Context, m chat.Message) error {
	body, err := json.Marshal(m)
	if err == nil {
		err = p.inbox.Push(ctx, m.Key(), body)
	}
	if err != nil {
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
// finish; what they leave is taken up again by the next Run.
func (p *Pool) Run(ctx context.Context) error {
	hard, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	end := func() { cancel(tools.ErrClosing) }
	defer p.budget.Keep(ctx)()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(p.config.Grace, end) })()
	tending, over := context.WithCancel(ctx)
	var beside sync.WaitGroup
	defer beside.Wait()
	defer over()
	for _, load := range []func(context.Context) error{p.guard.Load, p.suspended.Load} {
		if err := p.insist(ctx, "read what was suspended", load); err != nil {
			return ignore(err, context.Canceled)
		}
	}
	if err := p.insist(ctx, "read what was used so far", p.importUsage); err != nil {
		return ignore(err, context.Canceled)
	}
	beside.Go(func() { p.subagents.Run(tending) })
	beside.Go(func() { p.guard.Run(tending) })
	beside.Go(func() { p.suspended.Run(tending, p.began) })
	return store.Work(ctx, p.inbox, sessionOf, func(ctx context.Context, id string, take func() []store.Item) {
		w := worker{pool: p, id: chat.SessionID(id), soft: ctx, hard: hard, pull: take}
		w.serve()
	})
}

// sessionOf names the session an item of the inbox belongs to.
func sessionOf(item store.Item) string {
	var m chat.Message
	if json.Unmarshal(item.Body, &m) != nil {
		return ""
	}
	return string(m.Session())
}

// stop ends the turn under way in m's session, if there is one, and the runs
// that jobs have in sessions of their own and whose answers come here; it notes
// how many subagents end with them.
func (p *Pool) stop(m chat.Message, alongside int) bool {
	return p.interrupt(m, alongside, func(id chat.SessionID, r *running) bool {
		return id == m.Session() || r.at == m.At && strings.HasPrefix(string(id), runPrefix)
	})
}

// interrupt ends those turns under way that which says. A turn about what was
// said after m goes on: m was delivered again.
func (p *Pool) interrupt(m chat.Message, alongside int, which func(chat.SessionID, *running) bool) (done bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, r := range p.running {
		if which(id, r) && !r.said.IsZero() && !r.said.After(m.Time) {
			r.asked, r.subagents = m.Time, alongside
			done = true
			r.stop(errStopped)
		}
	}
	return done
}

// insist does what must be done until it is done, as when the disk is full
// (P19). It gives up when ctx ends or the store is closed.
func (p *Pool) insist(ctx context.Context, what string, do func(context.Context) error) error {
	for wait := time.Second; ; wait = min(2*wait, 20*time.Second) {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, store.ErrClosed):
			return fmt.Errorf("%s: %w", what, err)
		}
		p.log.Error("not done yet, trying again", "what", what, "err", err, "in", wait)
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// ignore returns err, or nil if it is such an error.
func ignore(err, such error) error {
	if errors.Is(err, such) {
		return nil
	}
	return err
}
