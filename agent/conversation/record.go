package conversation

import (
	"encoding/json"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// A record is one entry of a session's log. One field of it is set, or one of
// Said and Finished and what belongs to it.
type Record struct {
	Heard      *chat.Message `json:"heard,omitempty"`      // somebody spoke
	Asked      *Request      `json:"asked,omitempty"`      // the model was asked: with Said, if it answered
	Said       *llm.Message  `json:"said,omitempty"`       // the model answered, or was told to go on
	Started    []string      `json:"started,omitempty"`    // IDs of the calls about to run (P6)
	Finished   *llm.Message  `json:"finished,omitempty"`   // what a call gave
	Result     *tools.Result `json:"result,omitempty"`     // with Finished: what is to be known of it besides its text
	Told       string        `json:"told,omitempty"`       // with Finished: what the call said to the person
	RolledBack string        `json:"rolledBack,omitempty"` // the last answer is forgotten, with its results; what the model is told of it (E-019)
	Retried    *chat.Message `json:"retried,omitempty"`    // the last turn is to be answered anew
	Summed     *Summary      `json:"summed,omitempty"`     // the oldest of what was said is told in fewer words from now on
	Suspended  *Suspension   `json:"putAside,omitempty"`   // the turn under way stops for now, for one of its messages or for all (P8)
	Resumed    string        `json:"takenUp,omitempty"`    // it goes on: the key of a message that was put aside
	Ended      *End          `json:"ended,omitempty"`      // the turn is over
	Unreadable bool          `json:"unreadable,omitempty"` // what stood here is damaged on disk; only recordings say so
}

// asked says how a request was made of what the records before it tell. With
// them it tells all that the model was shown.
type Request struct {
	System    string   `json:"system"`              // a digest: the bucket "prompts" has the text
	Tools     string   `json:"tools"`               // the same, of a toolText
	Last      bool     `json:"last,omitempty"`      // the model was told of no tools
	Since     *uint64  `json:"since,omitempty"`     // the history was read anew, from the record after this one on: what it was fitted to before is forgotten
	Limits    []int    `json:"limits"`              // that the history was fitted to, one after the other
	Note      string   `json:"note,omitempty"`      // what the request ends with, and no later one has
	Eyes      bool     `json:"eyes,omitempty"`      // the model can be shown pictures …
	Untrusted []string `json:"untrusted,omitempty"` // where the untrusted content came from that the model was shown (R-S12)
	Refused   bool     `json:"refused,omitempty"`   // … and its provider did not take them: once it answers they are shown no more (P25)
}

// A toolText is what is kept of the tools of a turn.
type ToolSet struct {
	Specs []llm.ToolSpec // that the model is told of
	Known []ToolTraits   // of all

	Digest string `json:"-"` // of the whole as JSON, once it is kept
}

// A stub is what is to be known of a tool to do again what was done with its results.
type ToolTraits struct {
	Name     string
	AliasOf  string `json:",omitempty"`
	ReadOnly bool   `json:",omitempty"`
	Last     bool   `json:",omitempty"`
	JSON     bool   `json:",omitempty"`
}

// aside says what is put aside.
type Suspension struct {
	Key   string `json:"key"`             // of a message
	Whole bool   `json:"whole,omitempty"` // and all that was heard with it: the turn is not the fault of one
}

// ended closes a turn. The answer and the end of the turn are one record (P7).
type End struct {
	Outcome Outcome     `json:"outcome"`
	Reply   *chat.Reply `json:"reply,omitempty"` // nil: there is nothing to say
	Note    string      `json:"note,omitempty"`  // what the text of Reply ends with, and is not part of the answer
}

type Outcome string

const (
	Answered Outcome = "answered"
	Stopped  Outcome = "stopped"
	Failed   Outcome = "failed"
	Parked   Outcome = "parked"
	TooOld   Outcome = "too old"

	OverLimit Outcome = "over the limit"
)

// answer says whether r holds one of the model's.
func (r Record) IsAnswer() bool { return r.Said != nil && r.Said.Role == llm.Assistant }

func (r Record) Encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a record holds only what JSON can
	}
	return b
}
