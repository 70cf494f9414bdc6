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
