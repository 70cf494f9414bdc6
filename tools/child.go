package tools

import (
	"fmt"
	"time"

	"parley/chat"
)

// A Child is a subagent: an agent that does one task for another, for the same
// person and with no more rights, in a session of its own.
type Child struct {
	ID    string `json:"id"`    // 8 letters and digits; follows from Call
	Call  string `json:"call"`  // names for good what made it: to make it again is to find it
	Turn  string `json:"turn"`  // of the parent
	Tool  string `json:"door"`  // name of the tool that made it
	Label string `json:"label"` // for people
	Task  string `json:"task"`

	Agent string `json:"agent,omitempty"` // the name of its profile, if it has one
	// what it is told before the task: never untrusted content (R-S14)
	Instruction string        `json:"instruction,omitempty"`
	Only        []string      `json:"only"`               // the tools there may be: none if it is empty
	Model       string        `json:"model,omitempty"`    // its name in config.json; "" is the default
	Rounds      int           `json:"rounds,omitempty"`   // the last one gets no tools; 0: as many as any turn
	Patience    time.Duration `json:"patience,omitempty"` // with each answer of the model; 0: as with any
	Strict      bool          `json:"strict,omitempty"`   // the first tool that fails ends it (D-041)
	// subagents of this Tool that may be at work for one session; 0: any number
	Most int `json:"most,omitempty"`
	// its end is still to be told to the parent: nobody awaits it
	Report bool `json:"report,omitempty"`
	// what is said in the parent's session is said to it (C-033)
	Hears bool `json:"hears,omitempty"`

	Parent chat.SessionID `json:"parent"`
	At     chat.Address   `json:"at"`
	From   chat.Sender    `json:"from"`
	Group  bool           `json:"group,omitempty"`
	// that it works for, if it does for one: who pays, and how its report is answered
	Options *chat.RunOptions `json:"errand,omitempty"`
	Depth   int              `json:"depth"` // how many agents up to the person
	// the task holds untrusted content, and in the end the result does (R-S12) …
	Tainted bool     `json:"tainted,omitempty"`
	Sources []string `json:"sources,omitempty"` // … from there

	// What is noted while it works.
	State ChildState `json:"state,omitempty"`
	Said  time.Time  `json:"said"` // when somebody said what it is for
	Began time.Time  `json:"began"`
	Woken time.Time  `json:"woken"` // when it began or was resumed last
	Ended time.Time  `json:"ended,omitzero"`
	// at most MaxChildText characters; "" if it had no last words; of a failure the reason
	Result string `json:"result,omitempty"`
	Pure   bool   `json:"pure,omitempty"` // it used nothing but read-only tools (E-039)

	// Undelivered is why the network has refused the message that tells what it
	// found out, "" if it has not (P26).
	Undelivered string `json:"undelivered,omitempty"`
}

// MaxChildText is how many characters of a Child's result are kept.
const MaxChildText = 16_000

// A ChildState says how far a Child is.
type ChildState string

// The states of a Child.
const (
	ChildActive   ChildState = "" // it works, or waits for its turn
	ChildPaused   ChildState = "paused"
	ChildAnswered ChildState = "answered"
	ChildFailed   ChildState = "failed"
	ChildStopped  ChildState = "stopped"
)

// Over reports whether nothing more comes of a Child in that state.
func (s ChildState) Over() bool { return s != ChildActive && s != ChildPaused }

// A BusyError says that there are as many children at work as there may be.
type BusyError struct{ Running, Most int }

func (e *BusyError) Error() string { return fmt.Sprintf("%d of %d are at work", e.Running, e.Most) }
