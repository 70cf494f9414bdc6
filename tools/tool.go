// Package tools holds what the agent can do, and the pipeline every call passes.
package tools

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/workspace"
)

// A Tool is one thing the agent can do: what the model is told of it, and how it is done.
type Tool struct {
	llm.ToolSpec
	Hints
	Run     func(context.Context, Call) (Result, error)
	Aliases map[string]string // argument names that models get wrong -> the right one

	shape *shape // Schema, parsed
}

// Hints tell the pipeline how to treat a Tool. The zero value is the careful one.
type Hints struct {
	Category  string        // "" means "general"
	ReadOnly  bool          // changes nothing: may run beside other read-only calls (D-002)
	Exclusive bool          // read-only, and yet must run alone (D-002)
	Dangerous bool          // asks an owner first
	Timeout   time.Duration // 0 means DefaultTimeout, less that the tool waits for a person, and sees to the time itself

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

// Waits says whether t waits for a person, for as long as it takes.
func (t Tool) Waits() bool { return t.Timeout < 0 }

// Parallel says whether calls of t may run beside other such calls (D-002).
func (t Tool) Parallel() bool { return t.ReadOnly && !t.Exclusive }

// A Scope is where, for whom and with what a Call runs.
type Scope struct {
	Session   chat.SessionID
	At        chat.Address // where to speak
	From      chat.Sender  // who asked
	Group     bool         // others read along at At
	Workspace *workspace.Workspace
	Model     string // name in config.json
	Depth     int    // how many agents up to the person: 0 is the one they talk to
	Turn      string // names the turn; with the call's ID it names the call for good
}

// A Call is one use of a Tool.
type Call struct {
	llm.ToolCall
	Scope
	Input map[string]any // Args, parsed, mended and validated by the pipeline
}

// Key names the call among all calls there ever are, provided that no two
// calls of a turn share an ID: models may repeat theirs, so the agent sees to it.
func (c Call) Key() string { return c.Turn + "#" + c.ID }

// A Result is what a Tool gives back. An error of Run becomes a Result with
// Failed set: the model reads it and tries something else.
type Result struct {
	Text   string // for the model
	Failed bool
	Code   string // of a failure: CodeNotFound …
	Told   string // what it said to the person in the turn's chat: the answer need not say it again (D-091)
}

// Codes of failures.
const (
	CodeNotFound  = "TOOL_NOT_FOUND"
	CodeInvalid   = "TOOL_VALIDATION_ERROR"
	CodeTimeout   = "TOOL_TIMEOUT"
	CodeDenied    = "TOOL_DENIED"
	CodeError     = "TOOL_ERROR"
	CodeCancelled = "TOOL_CANCELLED"
)

// ErrClosing is the cause of a context that ends because the house is shut
// down: work that can go on after the next start is left as it is.
var ErrClosing = errors.New("the house is shut down")

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
