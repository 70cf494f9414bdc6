package agent

import (
	"encoding/json"

	"parley/chat"
	"parley/llm"
)

// A record is one entry of a session's log. One field of it is set.
type record struct {
	Heard    *chat.Message `json:"heard,omitempty"`    // somebody spoke
	Said     *llm.Message  `json:"said,omitempty"`     // the model answered, or was told to go on
	Started  []string      `json:"started,omitempty"`  // IDs of the calls about to run (P6)
	Finished *llm.Message  `json:"finished,omitempty"` // what a call gave
	Told     string        `json:"told,omitempty"`     // with Finished: what the call said to the person
	Dimmed   bool          `json:"dimmed,omitempty"`   // a provider refused the pictures so far: they are shown no more (P25)
	Retried  *chat.Message `json:"retried,omitempty"`  // the last turn is to be answered anew
	Ended    *ended        `json:"ended,omitempty"`    // the turn is over
}

// ended closes a turn. The answer and the end of the turn are one record (P7).
type ended struct {
	Outcome outcome     `json:"outcome"`
	Reply   *chat.Reply `json:"reply,omitempty"` // nil: there is nothing to say
}

type outcome string

const (
	answered outcome = "answered"
	stopped  outcome = "stopped"
	failed   outcome = "failed"
	parked   outcome = "parked"
	tooOld   outcome = "too old"
)

func (r record) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a record holds only what JSON can
	}
	return b
}
