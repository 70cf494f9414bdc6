package tools

import (
	"fmt"
	"time"

	"parley/chat"
)

// A Subagent is an agent that does one task for another, for the same person and
// with no more rights, in a session of its own.
type Subagent struct {
	ID    string `json:"id"`    // 8 letters and digits; follows from Call
	Call  string `json:"call"`  // identifies the call that began it: the same call finds the same subagent
	Turn  string `json:"turn"`  // of the parent
	Tool  string `json:"door"`  // name of the tool that began it
	Label string `json:"label"` // for people
	Task  string `json:"task"`

	Agent       string        `json:"agent,omitempty"`       // the name of its profile, if it has one
	Instruction string        `json:"instruction,omitempty"` // precedes the task; never untrusted content (R-S14)
	Only        []string      `json:"only"`                  // names of the tools it may use
	Model       string        `json:"model,omitempty"`       // its name in config.json; "" is the default
	Rounds      int           `json:"rounds,omitempty"`      // the last one gets no tools; 0: as many as any turn
	Patience    time.Duration `json:"patience,omitempty"`    // limits each request; 0: as any turn's
	Strict      bool          `json:"strict,omitempty"`      // the first tool that fails ends it (D-041)

	// Most is how many subagents of Tool may be at work for Parent; 0: any number.
	Most int `json:"most,omitempty"`
	// Report says that the parent, which does not wait, is still to be told the result.
	Report bool `json:"report,omitempty"`
	// Hears says that it takes in what is said in its parent's session (C-033).
	Hears bool `json:"hears,omitempty"`

	Parent chat.SessionID `json:"parent"`
	At     chat.Address   `json:"at"`
	From   chat.Sender    `json:"from"`
	Group  bool           `json:"group,omitempty"`
	Depth  int            `json:"depth"` // how many agents up to the person

	// Options are those of the turn that it works for: who pays, and how its report
	// is answered.
	Options *chat.RunOptions `json:"errand,omitempty"`

	// Tainted says that the task holds untrusted content from Sources, and in the
	// end that the result does (R-S12).
	Tainted bool     `json:"tainted,omitempty"`
	Sources []string `json:"sources,omitempty"`

	// What is recorded while it works.
	State  SubagentState `json:"state,omitempty"`
	Said   time.Time     `json:"said"` // when somebody said what it is for
	Began  time.Time     `json:"began"`
	Woken  time.Time     `json:"woken"` // when it began or was resumed last
	Ended  time.Time     `json:"ended,omitzero"`
	Result string        `json:"result,omitempty"` // its answer, up to MaxSubagentText characters, or why it failed
	Pure   bool          `json:"pure,omitempty"`   // it used nothing but read-only tools (E-039)

	// Undelivered is why the network has refused the message that tells the result,
	// "" if it has not (P26).
	Undelivered string `json:"undelivered,omitempty"`
}

// MaxSubagentText is how many characters of a Subagent's result are kept.
const MaxSubagentText = 16_000

// A SubagentState says how far a Subagent is.
type SubagentState string

// The states of a Subagent.
const (
	SubagentActive   SubagentState = "" // it works, or waits for its turn
	SubagentPaused   SubagentState = "paused"
	SubagentAnswered SubagentState = "answered"
	SubagentFailed   SubagentState = "failed"
	SubagentStopped  SubagentState = "stopped"
)

// Over reports whether nothing more comes of a Subagent in that state.
func (s SubagentState) Over() bool { return s != SubagentActive && s != SubagentPaused }

// CanBecome reports whether next may follow s: a subagent at work may be paused,
// a paused one may be resumed, both may end, and what has ended stays as it is.
func (s SubagentState) CanBecome(next SubagentState) bool { return !s.Over() && next != s }

// A BusyError says that as many subagents are at work as there may be.
type BusyError struct{ Running, Most int }

func (e *BusyError) Error() string { return fmt.Sprintf("%d of %d are at work", e.Running, e.Most) }
