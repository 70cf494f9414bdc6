package agent

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"time"

	"parley/agent/budget"
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
	System(context.Context, chat.SessionID, chat.Person, llm.Room) (string, error)

	// SubagentSystem returns the instructions of a subagent that works for who, and
	// is to do as instruction says.
	SubagentSystem(ctx context.Context, who chat.Person, instruction string, room llm.Room) (string, error)
}

// Config is what a Pool is made of.
type Config struct {
	Store store.Store
	// Send keeps replies in Store: with a reply, all that was stored before is on disk.
	Send      chat.Send
	Memory    Memory
	Archive   summary.Archive // nil: what does not fit into requests any more is only left out of them
	Workspace *workspace.Workspace
	// Sees returns the part of Workspace that turns for that person see. nil: all of it.
	Sees     func(who chat.Person) *workspace.Workspace
	Log      *slog.Logger
	Texts    *texts.Agent   // what people are told; nil: in English
	Zone     *time.Location // in which the model is told the time; nil: UTC
	Turns    int            // turns under way at once; 0: 1024
	Grace    time.Duration  // how long turns may go on after Run's context ended (P16)
	Commands []Command      // besides those that every Pool has

	// Brief says that the process ends once its messages are answered: none of them
	// waits for a model that is out of reach.
	Brief bool

	// Live opens the view of a reply that is coming in. nil: nothing is shown before
	// a reply is whole.
	Live func(context.Context, chat.Reply) chat.Live

	// Fetch brings a message's files into the workspace. nil: they stay where they are.
	Fetch func(context.Context, chat.Message) chat.Message

	// Report returns what /status tells owners besides. nil: nothing.
	Report func(context.Context) []string

	// ToolStats returns what /toolstats tells owners. nil: nobody counts.
	ToolStats func() string

	// Background are the commands of tools that go on after their calls.
	Background subagents.Background

	// Undo puts back the files that the last turn of a session changed, and says so.
	// nil: nobody can.
	Undo func(context.Context, chat.SessionID) (string, error)

	// Left is told of a conversation that is over, maybe twice: what is kept for it
	// can go. nil: nobody is told.
	Left func(chat.SessionID)

	// Begun is told of each turn as it begins, with the message that it answers,
	// and what it returns is told how the turn ended: "answered", "stopped",
	// "failed", "too old", "over the limit", or "" if it goes on later or had
	// nothing to answer. The turn's models and tools get the context. nil: nobody is
	// told.
	Begun func(context.Context, chat.SessionID, chat.Message) (context.Context, func(outcome string))

	// Ended is told how the answer to a message with RunOptions came out, before its
	// message leaves the inbox, and again if a crash came between. nil: nobody is told.
	Ended func(context.Context, End) error

	// RunUsage is told what a run of a scheduled job has used by now, when subagents
	// have worked for it after its answer. Several may end at once: the calls come in
	// any order, and the greatest is right. nil: nobody is told.
	RunUsage func(ctx context.Context, run string, tokens int, cost float64) error

	// Warn tells owners what runs out for everybody, once for each id. nil: nobody is
	// told.
	Warn func(ctx context.Context, id, text string) error

	// Explain answers /why with words: what is remembered about them, and from where. nil: nothing does.
	Explain func(context.Context, chat.Message) (string, error)

	// Remembered returns what is kept of somebody for good: in untrusted turns tools
	// do not tell it to the web unasked (R-S12). nil: nothing is.
	Remembered func(chat.Person) string

	// Role returns what a person may do by now: what they said is answered, and
	// subagents work, with no more rights than that (R-S24). nil: it is as it was then.
	Role func(context.Context, chat.Address, chat.Sender) (chat.Role, error)

	// HasJob reports whether the scheduled job of that ID still exists. nil: all do.
	HasJob func(ctx context.Context, id string) bool
}

// workspaceOf returns the files that turns for who see.
func (c Config) workspaceOf(who chat.Person) *workspace.Workspace {
	if c.Sees == nil {
		return c.Workspace
	}
	return c.Sees(who)
}

// withDefaults returns c with its zero values replaced.
func (c Config) withDefaults() Config {
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
	return c
}

// Settings are what may change while a Pool runs. A turn keeps those it began with.
type Settings struct {
	Models map[string]Model // by their names in config.json
	Model  string           // the name of the one for sessions that chose none
	Sum    string           // the name of the one that sums up for Digest; "": Model
	Rounds int              // of one turn; the last one gets no tools
	MaxAge time.Duration    // messages that waited longer are read, and not answered
	Limits budget.Limits    // these count at once, also in turns under way

	// Kit returns the tools of a turn.
	Kit func(context.Context, tools.Scope) (*tools.Kit, error)

	// ModelsOff returns the names of the models that the person of a scope may not use
	// there (B-071). nil: they may use all.
	ModelsOff func(context.Context, tools.Scope) ([]string, error)

	// Rollback says that rounds of lookups that found nothing are rolled back, and
	// the model is asked anew (E-019). RolledBack is told of each such lookup; it may
	// be nil.
	Rollback   bool
	RolledBack func(tool string)

	// Price returns what usage of a model costs. nil: nobody knows.
	Price func(model string, u llm.Usage) (cost float64, known bool)
}

// model returns the model called name, or the default one, with its name.
func (s *Settings) model(name string) (string, Model) {
	if m := s.Models[name]; m.Model != nil {
		return name, m
	}
	return s.Model, s.Models[s.Model]
}

// forScope returns s without the models that the person of scope may not use. If
// they may use none, all stay: somebody has to answer.
func (s Settings) forScope(ctx context.Context, scope tools.Scope) (Settings, error) {
	if s.ModelsOff == nil {
		return s, nil
	}
	off, err := s.ModelsOff(ctx, scope)
	if err != nil {
		return s, err
	}
	left := maps.Clone(s.Models)
	maps.DeleteFunc(left, func(name string, _ Model) bool { return slices.Contains(off, name) })
	if len(left) == 0 {
		return s, nil
	}
	if _, may := left[s.Model]; !may {
		s.Model = slices.Min(slices.Collect(maps.Keys(left)))
	}
	s.Models = left
	return s, nil
}

// A Model is an llm.Model and what there is to know of it.
type Model struct {
	llm.Model
	Window    int  // tokens that request and answer may have together
	MaxTokens int  // of an answer
	Vision    bool // it can be shown pictures
	Lean      bool // requests to it begin with as little as can be
}

// room returns how many estimated tokens there are for what was said, beside fixed
// ones for what cannot be shortened. ratio is how many tokens an estimated one is.
func (m Model) room(ratio float64, fixed int) int {
	return int(float64(m.Window-m.MaxTokens)*0.95/ratio) - fixed
}

// An End is how the answer to a message with RunOptions came out.
type End struct {
	Message chat.Message
	Outcome string // "answered", "nothing to say", "stopped", "failed", "parked", "too old" or "over the limit"
	Text    string // what was said in the end, to the person or to nobody
	Sent    bool   // Text is in the outbox; what becomes of it there the network decides
	Tokens  int
	Cost    float64 // as far as prices are known
	Tainted bool    // it may repeat untrusted content (R-S12)
}
