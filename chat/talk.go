package chat

import "time"

// A Talk is a conversation in a list.
type Talk struct {
	Session SessionID `json:"session"`
	Title   string    `json:"title"` // its first words
	Began   time.Time `json:"began"`
	Last    time.Time `json:"last"` // time of the last message, to within ten minutes
}

// An Approval is an owner's yes to all calls with the same effect for a while.
type Approval struct {
	Chat    SessionID `json:"chat"`    // where it was given and is shown
	Session SessionID `json:"session"` // for which it counts: Chat, or that of a subagent's parent
	Effect  string    `json:"effect"`
	By      string    `json:"by"`             // ID of who gave it
	Until   time.Time `json:"until,omitzero"` // zero: until the conversation ends
}

// An Entry is one item of a conversation's transcript.
type Entry struct {
	Kind EntryKind `json:"kind"`
	Time time.Time `json:"time"` // for Said and Called: when the model was called
	// Who is the sender's name for Heard, the model for Said, and the tool for
	// Called and Gave.
	Who   string `json:"who,omitempty"`
	Text  string `json:"text,omitempty"`  // for Called: the arguments, JSON as the model wrote it
	Call  string `json:"call,omitempty"`  // connects Called and Gave
	Files []File `json:"files,omitempty"` // for Heard
}

// An EntryKind is the kind of an Entry.
type EntryKind string

// The kinds of entries.
const (
	Heard  EntryKind = "heard"  // somebody spoke
	Said   EntryKind = "said"   // the agent spoke
	Called EntryKind = "called" // the agent used a tool
	Gave   EntryKind = "gave"   // a tool returned a result
	Ended  EntryKind = "ended"  // a turn ended without an answer; Text says how
	Lost   EntryKind = "lost"   // a record is damaged on disk; Text says so
	Began  EntryKind = "began"  // a new conversation began in the same place
	// Branched: the person went back, and what follows goes on from an earlier place.
	Branched EntryKind = "branched"
	// Removed comes first if what was said before was removed because it was old; Text says so.
	Removed EntryKind = "removed"
)

// A Find is a place in past conversations where a search found words.
type Find struct {
	Session SessionID `json:"session"`
	Entry   Entry     `json:"entry"` // its Text is the part around the words
}

// A Turn is what was said and done for a message, or for several, as an owner reads it.
type Turn struct {
	Parts []Part `json:"parts"`          // in their order
	Open  bool   `json:"open,omitempty"` // it has not ended

	// What models used for it, summaries included, and what that costs by the prices of today. Work of subagents
	// is in conversations of its own.
	Read     int     `json:"read"`    // tokens
	Written  int     `json:"written"` // tokens
	Cost     float64 `json:"cost,omitempty"`
	Unpriced int     `json:"unpriced,omitempty"` // tokens of unknown price
}

// A Part is an Entry of a Turn, or a call with what came of it.
type Part struct {
	Entry Entry `json:"entry"` // of a call: that of kind Called

	// Of a call:
	Step    *Step  `json:"step,omitempty"`   // nil: it is no call
	Result  string `json:"result,omitempty"` // all that the model read
	By      string `json:"by,omitempty"`     // ID of the person who approved it
	Receipt string `json:"receipt,omitempty"`
	Retried bool   `json:"retried,omitempty"` // it found nothing of use, and the model did not see its result
}
