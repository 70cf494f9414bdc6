// Package tools defines what the agent can do, and the pipeline that every tool call passes
// through.
package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools/arguments"
	"parley/tools/untrusted"
	"parley/workspace"
)

// Completion is the name of the tool by which some models give their answer, and end the turn (C-030).
const Completion = "attempt_completion"

// A Tool is one thing the agent can do: its description for the model, and the function that
// does it.
type Tool struct {
	llm.ToolSpec
	Hints
	Run     func(context.Context, Call) (Result, error)
	Aliases map[string]string // wrong argument names that models use -> the right one (E-005)

	// Preview says in a few words what a call is about to do, in the wording of say (C-015).
	// Some arguments may still be missing, and the last may be incomplete. It may be nil.
	Preview func(say texts.Steps, partial map[string]any) string
	// Speaks reports whether a call with these arguments, which may be incomplete as well, says something in
	// the turn's own chat and does nothing else: people see what was said, and no step. nil means no call.
	Speaks func(partial map[string]any) bool
	// Ask says what a call is about to do, to the person who is asked whether it may. All arguments are
	// there and valid. If it is nil, the sentence names the tool.
	Ask func(say texts.Asks, c Call) Sentence
	// Query returns what a call looks up: of several calls in a turn with the same query, only
	// the first is made (E-006, D-086). A call with query "" is not a lookup. It may be nil.
	Query func(args map[string]any) string
	// Assess returns a verdict on a result (E-019). It may be nil.
	Assess func(Result) Verdict
	// Risky reports whether an owner must approve a call although the tool is not Dangerous, in
	// every turn. nil means no call.
	Risky func(Call) bool
	// Precheck returns the failure of a call that cannot succeed, such as deleting a file that
	// does not exist, so that nobody is asked to approve it. It changes nothing. It may be nil.
	Precheck func(Call) (Result, error)
	// Invalid says in words of its own what is wrong with arguments that the schema refuses; "" is
	// the usual words. It may be nil.
	Invalid func(args map[string]any) string
	// Guard reports whether a call has effects outside the turn, such as on another chat or on
	// the agent's standing rules. Such a call needs approval: in an untrusted turn, unless the
	// person's own words ask for exactly this call, and always if the person is not an owner
	// (R-S12). nil means no call.
	Guard func(Call) bool
	// Effect names the effect of a call that Guard holds back, such as "write SOUL.md": a
	// person can approve all calls with the same effect for a while. Effects of different tools
	// must differ. If it is nil, the effect is the tool's name and its path argument.
	Effect func(Call) string
	// Consequence tells the person who is asked to approve a call what its arguments do not show,
	// such as what the network is that it asks for. It may be nil, and it may return "".
	Consequence func(texts.Approval, Call) string
	// Grantable reports whether an owner may approve all calls with the Effect of this one for a
	// while, also if it is Risky that holds it back. nil means those that Guard holds back.
	Grantable func(Call) bool
	// Withheld reports whether its source keeps it from somebody who joined the turn. It may be nil.
	Withheld func(joined chat.Sender) bool
	// Denied reports whether the policy keeps t, which is this tool, from somebody who joined the turn. It
	// may be nil.
	Denied func(t *Tool, joined chat.Sender) bool
	// Resumes reports whether an earlier run of the call ended with CodeWaiting, and what it waits for is
	// kept: the next run asks the person, without a time limit, and goes on where the call was. nil means
	// no call.
	Resumes func(Call) bool

	// Inner returns the call that one with these arguments, in JSON, stands for: its tool and arguments.
	// It takes the place of the call before anything else looks at it. If ok is false, they do not say.
	// nil means that calls stand for themselves.
	Inner func(args string) (name, inner string, ok bool)

	args  *arguments.Schema      // the parsed Schema
	shown func() json.RawMessage // the part of Schema that models are shown; nil: all of it
	rule  Rule                   // set by Permit; "" is Who
}

// Hints tell the pipeline how to treat a Tool. The zero value is the most careful treatment.
type Hints struct {
	Display   string // the name that people see; "" is Name (C-014)
	Category  string // "" means "general"
	Who       Rule   // who may use it if no rule names its category; "" is Everyone
	AliasOf   string // this is another name for that tool: it can be called, but is not listed
	Hidden    bool   // the tool can be called, but is not listed
	Use       Use    // how often models need the tool
	Through   string // models are not given the tool, but find it, and call it through the tool of this name
	ReadOnly  bool   // changes nothing, so that it may run in parallel with other read-only calls (D-002)
	Exclusive bool   // read-only, but must still run alone (D-002)
	Last      bool   // runs after all other calls of its round (C-030)
	Dangerous bool   // an owner must approve each call
	JSON      bool   // Text is made from Data: {"success":…,"data":…,"error":…}
	Untrusted bool   // Text is untrusted content (R-S12)
	Private   bool   // although it is untrusted, nobody published it: it must not be passed on
	// Cacheable means that a successful result answers identical calls for a while. It
	// is for read-only tools whose results do not depend on anything that other tools change.
	Cacheable bool
	Variant   string // of the tool: results of another variant are not reused
	// Timeout limits a call; 0 is DefaultTimeout. A negative value means that the tool waits
	// for a person and limits the time itself.
	Timeout time.Duration

	// Repeatable means that a call interrupted by a crash may be made again, because making it
	// twice has the same effect as once. For other tools, the model is told that the
	// interrupted call may have taken effect (P6).
	Repeatable bool
	MaxText    int // characters of Result.Text; 0 is DefaultMaxText, -1 means that the tool limits it itself
}

// Use is how often models need a tool. Every request has the list of tools, so that it only has those whose use
// is worth their bytes: the others are found (see package tools/catalog).
type Use int

// The uses.
const (
	Usual Use = iota // listed, but with a lean prompt
	Basic            // always listed
	Rare             // found
)

// Defaults for Hints that a Tool leaves zero.
const (
	DefaultTimeout = time.Minute
	MaxTimeout     = 10 * time.Minute
	DefaultMaxText = 16_000
)

// Kind returns the tool's category, which rules and lists use.
func (h Hints) Kind() string { return cmp.Or(h.Category, "general") }

// Waits reports whether t waits for a person, without a time limit, while c runs.
func (t Tool) Waits(c Call) bool { return t.Timeout < 0 || t.Resumes != nil && t.Resumes(c) }

// CanRun reports whether c may run although it was interrupted by a crash, or waits for a person.
func (t Tool) CanRun(c Call) bool { return t.Repeatable || t.Resumes != nil && t.Resumes(c) }

// Parallel reports whether calls of t may run in parallel with other such calls (D-002).
func (t Tool) Parallel() bool { return t.ReadOnly && !t.Exclusive }

// A Scope says where, for whom and with what a Call runs.
type Scope struct {
	Session   chat.SessionID
	At        chat.Address // the chat
	From      chat.Sender  // the person who asked
	Group     bool         // other people read the chat
	Origin    chat.Origin  // what started the turn
	Only      []string     // names of the allowed tools; nil: all
	Message   string       // ID of the message that the turn answers
	Job       string       // name or ID of the scheduled job that the turn works for
	Task      string       // of a subagent: a few words on what it is to do
	Workspace *workspace.Workspace
	Model     string   // its name in config.json
	Window    int      // tokens that a request to it and its answer may have together; 0: not known
	Short     bool     // earlier requests of the session had a short list of tools, and so has this one
	Lean      bool     // the standing prompt is lean: the list has the basic tools only
	Depth     int      // number of agents between this one and the person; 0 is the agent that people talk to
	Agent     string   // its profile; "" is the agent that people talk to
	Turn      string   // unique name of the turn; with the ID of a call, it identifies the call
	Round     int      // number of the model's answer in the turn, from 1
	Tainted   bool     // the model is shown untrusted content (R-S12)
	Sources   []string // where that content comes from
	Typed     []string // the messages that an owner typed in this turn, without quotes, choices and forwarded text

	// Known returns what the model is shown, for tools that reach the web in an untrusted turn.
	// If it is nil, everything counts as a possible secret.
	Known func() untrusted.Known

	// Granted reports whether an owner has approved all calls with this effect for a while
	// (R-S12). If it is nil, nobody has.
	Granted func(effect string) bool

	// Root is, for a subagent, the session that it works for in the end, and RootTurn the turn
	// of that session under which /undo finds its changes.
	Root     chat.SessionID
	RootTurn string

	// Tools returns the tools of the turn, including aliases and hidden tools. nil: none.
	Tools func() []Tool

	// Lend returns the model of that name in config.json, or the model of the turn if the person may use none
	// of that name. What it takes counts as what the turn takes, and its requests fail once a limit is
	// reached. nil: there is none to be lent.
	Lend func(model string) LentModel

	// Shown reports whether the model still sees the whole result of the earlier call with this
	// Key (D-056). nil: it sees none.
	Shown func(key string) bool
}

// Asker names what asks for a call if not the agent that people talk to: a background task or a scheduled job.
func (s Scope) Asker() string { return chat.Inline(cmp.Or(s.Task, s.Job), 60) }

// A LentModel is a model that a tool may ask, at the expense of the person for whom its call runs.
type LentModel struct {
	llm.Model
	Name      string // in config.json
	MaxTokens int    // of an answer
	Vision    bool   // it can be shown pictures
}

// Whose returns the person for whom the call runs. It must not see what is known about other
// people (R-S14).
func (s Scope) Whose() chat.Person { return chat.Whose(s.At, s.From, s.Group) }

// Descriptions returns the descriptions of the turn's tools. Every prompt contains them, so
// their words are not secret.
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
	Input map[string]any // Args, parsed, repaired and validated by the pipeline
	// Consequence is what a person who is asked to approve the call is told of it besides.
	Consequence string
	// Effect is set while a person is asked to approve the call: they can approve all calls
	// with the same effect for a while. "" means that only this call can be approved.
	Effect string
	Twin   string // ID of an identical earlier call in the same round

	// Begin is called right before the call takes effect, after any approval. If it returns an
	// error, the call must not be made. It may be nil.
	Begin func(context.Context) error
	// Tip shows the person, in a few words, what the call is doing (C-006). It may be nil: use
	// Say.
	Tip func(text string)
}

// Key identifies the call among all calls ever made, if no two calls of a turn share an ID. The
// agent ensures that, because models may repeat IDs.
func (c Call) Key() string { return c.Turn + "#" + c.ID }

// Say shows the person, in a few words, what the call is doing (C-006).
func (c Call) Say(tip string) {
	if c.Tip != nil {
		c.Tip(tip)
	}
}

// A Result is what a Tool returns. An error of Run becomes a Result with Failed set: the model
// reads it and tries something else.
type Result struct {
	Text string `json:"-"` // for the model
	Data any    `json:"-"` // the same for programs; Text is made from it if Text is empty or the Hints have JSON
	Told string `json:"-"` // text already sent to the turn's chat, which the answer need not repeat (D-091)
	// Shown is what people see of the result while the agent works; "" is the beginning of Text (B-059).
	Shown string `json:"shown,omitempty"`

	Failed   bool     `json:"failed,omitempty"`
	Code     string   `json:"code,omitempty"`     // of a failure: CodeNotFound and so on
	Pictures []string `json:"pictures,omitempty"` // files of the workspace to show to models with vision (D-052)
	Attached []string `json:"attached,omitempty"` // files of the workspace that come with the turn's answer
	End      string   `json:"end,omitempty"`      // ends the turn, with this text for the person (C-030, C-041)
	NewTools bool     `json:"-"`                  // the call has changed which tools there are: the turn gets a new Kit

	// The pipeline sets these.
	Time    time.Time     `json:"time,omitzero"`     // when the call began, after any approval
	Took    time.Duration `json:"took,omitempty"`    // 0 if the call was not executed
	Skipped bool          `json:"skipped,omitempty"` // not executed, because it is identical to Twin
	Cached  bool          `json:"cached,omitempty"`  // answered from the cache
	Twin    string        `json:"twin,omitempty"`    // ID of the call whose result this is
	Verdict Verdict       `json:"verdict,omitempty"` // set by Assess
	File    string        `json:"file,omitempty"`    // file of the workspace with the whole of a long result (D-042)
	Cut     bool          `json:"cut,omitempty"`     // Text is not the whole result
	JSON    bool          `json:"json,omitempty"`    // Text is {"success":…,"data":…,"error":…}
	By      string        `json:"by,omitempty"`      // ID of the person who approved the call
	Receipt string        `json:"receipt,omitempty"` // what the audit log knows the call and its result by
	Tainted bool          `json:"tainted,omitempty"` // Text holds untrusted content (R-S12)
	Sources []string      `json:"sources,omitempty"` // where that content comes from
	// Public means that Text was published, such as a web page, so that its content may be
	// passed on.
	Public bool `json:"public,omitempty"`
}

// State returns how the call ended, as people see it: that somebody did not allow it is no failure.
func (r Result) State() chat.StepState {
	switch {
	case !r.Failed:
		return chat.Done
	case r.Code == CodeDenied, r.Code == CodeRefused:
		return chat.Refused
	case r.Code == CodeCancelled, r.Code == CodeInterrupted:
		return chat.Interrupted
	}
	return chat.Failed
}

// A Verdict says whether a result is useful.
type Verdict string

// The verdicts.
const (
	Fine Verdict = ""
	Poor Verdict = "poor" // such as a search without results
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
	// CodeInterrupted is that of a call that the end of the process cut off: it may have taken effect.
	CodeInterrupted = "TOOL_INTERRUPTED"

	// CodeWaiting is not a failure: the call has to ask a person before it can go on. It is to be run
	// again, alone, and has no result before that (see Tool.Resumes).
	CodeWaiting = "TOOL_WAITING"
)

// ErrClosing is the cause of a context that ends because Parley shuts down. Work that can
// continue after the next start is left as it is.
var ErrClosing = errors.New("the gateway is shutting down")

// Failf returns a failure whose text tells the model what is wrong and what to do instead. The
// Kit adds "Error: " before it and a hint after it.
func Failf(code, format string, args ...any) Result {
	return Result{Text: fmt.Sprintf(format, args...), Failed: true, Code: code}
}

// A Source offers tools that may change over time, such as those of an MCP server. It must not
// fail just because it has no tools at the moment: after an error of Tools, no Kit can be made.
type Source interface {
	Tools(context.Context, Scope) ([]Tool, error)
}

// An Appender is a Source that makes no list of its own, because the tools of a turn would be copied from
// each list to the next: it appends the tools to all, and returns that.
type Appender interface {
	Source
	AppendTools(ctx context.Context, s Scope, all []Tool) ([]Tool, error)
}

// AppendTools appends the tools of source to all.
func AppendTools(ctx context.Context, source Source, s Scope, all []Tool) ([]Tool, error) {
	if a, ok := source.(Appender); ok {
		return a.AppendTools(ctx, s, all)
	}
	offered, err := source.Tools(ctx, s)
	return append(all, offered...), err
}

// Fixed is a Source that never changes.
type Fixed []Tool

// Tools returns f.
func (f Fixed) Tools(context.Context, Scope) ([]Tool, error) { return f, nil }
