// Package tools holds what the agent can do, and the pipeline every call passes.
package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools/untrusted"
	"parley/workspace"
)

// A Tool is one thing the agent can do: what the model is told of it, and how it is done.
type Tool struct {
	llm.ToolSpec
	Hints
	Run     func(context.Context, Call) (Result, error)
	Aliases map[string]string // argument names that models get wrong -> the right one (E-005)

	// Preview says in a few words what a call is about to do, of arguments of
	// which some may be missing and the last may be cut, in the words of say
	// (C-015). It may be nil.
	Preview func(say texts.Steps, partial map[string]any) string
	// Query returns what a call looks up: of the calls of a turn with the same,
	// only the first is made (E-006, D-086). It may be nil, and "" is no lookup.
	Query func(args map[string]any) string
	// Assess reports whether a result is worth having (E-019). It may be nil.
	Assess func(Result) Verdict
	// Risky reports whether a call asks an owner first, in each turn, though the
	// tool is not Dangerous. nil means that none does.
	Risky func(Call) bool
	// Precheck returns the failure of a call that cannot succeed, such as the
	// deletion of a file that does not exist: no person is asked to approve it. It
	// changes nothing. It may be nil.
	Precheck func(Call) (Result, error)
	// Guard reports whether a call reaches out of the turn, such as to another chat
	// or to the agent's standing rules: in an untrusted turn it is asked for first,
	// unless the person's own words ask for just that call, and for who is no
	// owner always (R-S12). nil means that none does.
	Guard func(Call) bool
	// Effect names what a call that Guard holds back would do, as "write SOUL.md":
	// a person can approve all such calls for a while. No other tool's call has the
	// same. nil: it is made of the tool's name and the path it is about.
	Effect func(Call) string

	shape *shape // Schema, parsed
	rule  Rule   // of Permit; "" is Everyone
}

// Hints tell the pipeline how to treat a Tool. The zero value is the careful one.
type Hints struct {
	Display   string // what people are shown; "" means Name (C-014)
	Category  string // "" means "general"
	AliasOf   string // the tool's other name, which is listed: this one can be called and is not
	Hidden    bool   // can be called and is not listed
	ReadOnly  bool   // changes nothing: may run beside other read-only calls (D-002)
	Exclusive bool   // read-only, and yet must run alone (D-002)
	Last      bool   // runs after all other calls of its round (C-030)
	Dangerous bool   // asks an owner first
	JSON      bool   // Text is made of Data: {"success":…,"data":…,"error":…}
	Untrusted bool   // Text is untrusted content (R-S12)
	// read-only: a success answers the same call again for a while. Not for what
	// tools change
	Cacheable bool
	// 0 means DefaultTimeout, less that the tool waits for a person, and sees to the time
	// itself
	Timeout time.Duration

	// Repeatable says that a call which a crash interrupted may be made again:
	// twice is as once. Of other tools' calls the model is told that they may
	// have taken effect (P6).
	Repeatable bool
	MaxText    int // characters of Result.Text; 0 means DefaultMaxText, -1 that the tool itself sees to it
}

// Defaults for the Hints a Tool leaves zero.
const (
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute
	DefaultMaxText = 16_000
)

// Kind returns the category that rules and lists put the tool in.
func (h Hints) Kind() string { return cmp.Or(h.Category, "general") }

// Waits reports whether t waits for a person, for as long as it takes.
func (t Tool) Waits() bool { return t.Timeout < 0 }

// Parallel reports whether calls of t may run beside other such calls (D-002).
func (t Tool) Parallel() bool { return t.ReadOnly && !t.Exclusive }

// A Scope is where, for whom and with what a Call runs.
type Scope struct {
	Session   chat.SessionID
	At        chat.Address // where to speak
	From      chat.Sender  // who asked
	Group     bool         // others read along at At
	Origin    chat.Origin  // what woke the agent
	Only      []string     // the tools there may be; nil: all
	Message   string       // ID of the message that is answered
	Workspace *workspace.Workspace
	Model     string   // name in config.json
	Depth     int      // how many agents up to the person: 0 is the one they talk to
	Agent     string   // its profile; "" is the one they talk to
	Turn      string   // names the turn; with the call's ID it names the call for good
	Round     int      // of the turn: counts the model's answers, from 1
	Tainted   bool     // untrusted content is in what the model is shown (R-S12) …
	Sources   []string // … and came from there
	Typed     []string // what an owner typed in this turn, message by message: no quotes, no choices, nothing passed on

	// Known returns what the model is shown, for tools that reach the web in an
	// untrusted turn. nil: nothing is known, and so all may be a secret.
	Known func() untrusted.Known

	// Granted reports whether an owner has approved calls with the same effect for a
	// while (R-S12). nil: none has.
	Granted func(effect string) bool

	// Of a subagent: the session that it works for in the end, and the turn there
	// that /undo takes back its changes with.
	Root     chat.SessionID
	RootTurn string

	// Tools returns those there are in the turn, also aliases and what is not
	// listed. nil: none.
	Tools func() []Tool

	// Shown reports whether the model still sees the whole result of an earlier
	// call, by its Key (D-056). nil: it sees none.
	Shown func(key string) bool
}

// Whose is the person for whom the call runs: what is known of others is not for it (R-S14).
func (s Scope) Whose() chat.Person { return chat.Whose(s.At, s.From, s.Group) }

// Descriptions returns the descriptions of the turn's tools. They are in every
// prompt, so their words are nobody's secret.
func (s Scope) Descriptions() (all []string) {
	if s.Tools == nil {
		return nil
	}
	for _, t := range s.Tools() {
		all = append(all, t.Description)
	}
	return all
}

// A Call is one use of a Tool.
type Call struct {
	llm.ToolCall
	Scope
	Input map[string]any // Args, parsed, mended and validated by the pipeline
	// Effect is set for who approves the call: all calls with the same effect can be
	// approved for a while. "": only this one can.
	Effect string
	Twin   string // ID of an earlier call of the same round that is the same

	// Begin is called when the call is about to take effect, once a person who
	// had to be asked has agreed. An error means that it must not. It may be nil.
	Begin func(context.Context) error
	// Tip tells the person, in a few words, what the call is at (C-006). It may
	// be nil: use Say.
	Tip func(text string)
}

// Key names the call among all calls there ever are, provided that no two
// calls of a turn share an ID: models may repeat theirs, so the agent sees to it.
func (c Call) Key() string { return c.Turn + "#" + c.ID }

// Say tells the person, in a few words, what the call is at (C-006).
func (c Call) Say(tip string) {
	if c.Tip != nil {
		c.Tip(tip)
	}
}

// A Result is what a Tool gives back. An error of Run becomes a Result with
// Failed set: the model reads it and tries something else.
type Result struct {
	Text string `json:"-"` // for the model
	Data any    `json:"-"` // the same for programs; Text is made of it when that is empty or the tool's Hints say JSON
	Told string `json:"-"` // what it said to the person in the turn's chat: the answer need not say it again (D-091)

	Failed   bool     `json:"failed,omitempty"`
	Code     string   `json:"code,omitempty"`     // of a failure: CodeNotFound …
	Pictures []string `json:"pictures,omitempty"` // files of the workspace that a model with eyes is shown (D-052)
	End      string   `json:"end,omitempty"`      // the turn is over, with these words for the person (C-030, C-041)

	// What the pipeline notes.
	Time    time.Time     `json:"time,omitzero"`     // when the call began
	Took    time.Duration `json:"took,omitempty"`    // 0 if it was not executed
	Skipped bool          `json:"skipped,omitempty"` // not executed: the same as Twin
	Cached  bool          `json:"cached,omitempty"`  // answered from memory
	Twin    string        `json:"twin,omitempty"`    // ID of the call that gave what this one was answered with
	Verdict Verdict       `json:"verdict,omitempty"` // of Assess
	File    string        `json:"file,omitempty"`    // of the workspace: holds all of a long result (D-042)
	Cut     bool          `json:"cut,omitempty"`     // Text is not all of it
	JSON    bool          `json:"json,omitempty"`    // Text is {"success":…,"data":…,"error":…}
	By      string        `json:"by,omitempty"`      // ID of the person who approved the call
	Tainted bool          `json:"tainted,omitempty"` // Text holds untrusted content (R-S12) …
	Sources []string      `json:"sources,omitempty"` // … from there
	// Text was published, such as a page: what stands in it may be passed on
	Public bool `json:"public,omitempty"`
}

// A Verdict reports whether a result is worth having.
type Verdict string

// The verdicts.
const (
	Fine Verdict = ""
	Poor Verdict = "poor" // such as a search that found nothing
)

// Codes of failures.
const (
	CodeNotFound  = "TOOL_NOT_FOUND"
	CodeInvalid   = "TOOL_VALIDATION_ERROR"
	CodeTimeout   = "TOOL_TIMEOUT"
	CodeDenied    = "TOOL_DENIED"
	CodeRefused   = "TOOL_REFUSED" // by the person who was asked
	CodeError     = "TOOL_ERROR"
	CodeCancelled = "TOOL_CANCELLED"
)

// ErrClosing is the cause of a context that ends because Parley is shut
// down: work that can go on after the next start is left as it is.
var ErrClosing = errors.New("the gateway is shutting down")

// Failf returns a failure whose text is for the model: what is wrong, and
// what to do instead. The Kit puts "Error: " before it and a hint behind.
func Failf(code, format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Failed: true, Code: code}
}

// A Source offers tools that come and go, such as those of an MCP server.
// It must not fail because it has none to offer just now: an error of Tools
// means that no Kit can be made.
type Source interface {
	Tools(context.Context, Scope) ([]Tool, error)
}

// Fixed is a Source that never changes.
type Fixed []Tool

// Tools returns f.
func (f Fixed) Tools(context.Context, Scope) ([]Tool, error) { return f, nil }
