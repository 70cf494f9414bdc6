// Package conversation keeps what was said in sessions: the records of their
// logs, the history that the records make, and what a model is shown of it.
//
// A Session is one conversation under way. It appends Records to its log and
// applies them to its History. The History says what a turn wants to know, and
// fits and heals what the next request shows. The records that a crash left
// behind make the same History again. Sessions also tell people what was said:
// transcripts, calls and search read the same records.
package conversation

import (
	"encoding/json"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// A Record is one entry of a session's log. One field of it is set, or Asked
// with Said, Finished with Result and Told, or Branched or Retried with Left.
type Record struct {
	// Heard is a message that somebody sent.
	Heard *chat.Message `json:"heard,omitempty"`
	// Asked is a request to the model. It comes with Said if the model answered.
	Asked *Request `json:"asked,omitempty"`
	// Said is an answer of the model, or what it was told to go on.
	Said *llm.Message `json:"said,omitempty"`
	// Started lists the IDs of the calls that are about to run (P6).
	Started []string `json:"started,omitempty"`
	// Finished is the result of a call.
	Finished *llm.Message `json:"finished,omitempty"`
	// Result comes with Finished and is what is known of it besides its text.
	Result *tools.Result `json:"result,omitempty"`
	// Told comes with Finished and is what the call told the person.
	Told string `json:"told,omitempty"`
	// RolledBack drops the last answer with its results. It is what the model is
	// told of them (E-019).
	RolledBack string `json:"rolledBack,omitempty"`
	// Retried is a message that asks for another answer in the last turn.
	Retried *chat.Message `json:"retried,omitempty"`
	// Branched goes back: the conversation goes on from an earlier record.
	Branched *Branch `json:"branched,omitempty"`
	// Left comes with Branched or Retried, and names the tools that changed something in
	// what the conversation leaves. It stays done, and the model is told so.
	Left []string `json:"left,omitempty"`
	// Summed replaces the oldest turns by a summary.
	Summed *Summary `json:"summed,omitempty"`
	// Suspended puts the open turn aside, for one of its messages or for all (P8).
	Suspended *Suspension `json:"putAside,omitempty"`
	// Resumed continues the turn that was suspended for the message of that key.
	Resumed string `json:"takenUp,omitempty"`
	// Ended closes the turn.
	Ended *End `json:"ended,omitempty"`
	// Unreadable stands for a damaged record. Only recordings have it.
	Unreadable bool `json:"unreadable,omitempty"`
}

// A Request says how a request was made of the records before it. Together they
// tell all that the model was shown.
type Request struct {
	// System is the digest of the instructions, which Prompts keep.
	System string `json:"system"`
	// Tools is the digest of the ToolSet, which Prompts keep.
	Tools string `json:"tools"`
	// Last says that the model was told of no tools.
	Last bool `json:"last,omitempty"`
	// Since is set when the history was read again from the log, from the record
	// after this one on: how it was fitted before has no effect any more.
	Since *uint64 `json:"since,omitempty"`
	// Limits are those that the history was fitted to, one after the other.
	Limits []int `json:"limits"`
	// Note ends this request and no later one.
	Note string `json:"note,omitempty"`
	// Eyes says that the model can be shown pictures.
	Eyes bool `json:"eyes,omitempty"`
	// Untrusted names the origins of the untrusted content that the model was shown (R-S12).
	Untrusted []string `json:"untrusted,omitempty"`
	// Refused says that the provider did not accept the pictures. Once the model
	// answers they are not shown any more (P25).
	Refused bool `json:"refused,omitempty"`
}

// A ToolSet is what is kept of the tools of a turn.
type ToolSet struct {
	Specs []llm.ToolSpec // of the tools that the model is told of
	Known []ToolTraits   // of all tools

	Digest string    `json:"-"` // set once the ToolSet is kept
	noted  time.Time // when its use was noted
}

// ToolTraits are what must be known of a tool to treat its results in the same
// way again.
type ToolTraits struct {
	Name     string
	AliasOf  string `json:",omitempty"`
	ReadOnly bool   `json:",omitempty"`
	Last     bool   `json:",omitempty"`
	JSON     bool   `json:",omitempty"`
}

// A Branch says which record the conversation goes on from, that is the history as it
// was made up to there: From is its number, 0 for the beginning.
type Branch struct {
	From uint64 `json:"from"`
}

// A Suspension says which message a turn is suspended for.
type Suspension struct {
	Key   string `json:"key"`             // of the message
	Whole bool   `json:"whole,omitempty"` // the whole turn is suspended: no single message is at fault
}

// An End closes a turn. The answer and the end of the turn are one record (P7).
type End struct {
	Outcome Outcome     `json:"outcome"`
	Reply   *chat.Reply `json:"reply,omitempty"` // nil: there is nothing to say
	Note    string      `json:"note,omitempty"`  // ends the text of Reply and is not part of the answer
}

// An Outcome is how a turn ended.
type Outcome string

const (
	Answered  Outcome = "answered"
	Stopped   Outcome = "stopped"
	Failed    Outcome = "failed"
	GivenUp   Outcome = "parked" // the process crashed over it again and again
	TooOld    Outcome = "too old"
	OverLimit Outcome = "over the limit"
)

// IsAnswer reports whether r holds an answer of the model.
func (r Record) IsAnswer() bool { return r.Said != nil && r.Said.Role == llm.Assistant }

// Encode returns r as it is stored.
func (r Record) Encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a record holds only what JSON can
	}
	return b
}
