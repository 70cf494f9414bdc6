package chat

import "time"

// A Talk is a conversation as a list shows it.
type Talk struct {
	Session SessionID `json:"session"`
	Title   string    `json:"title"` // its first words
	Began   time.Time `json:"began"`
	Last    time.Time `json:"last"` // when somebody spoke last, to within ten minutes
}

// An Entry is one line of a conversation, as people read it afterwards.
type Entry struct {
	Kind EntryKind `json:"kind"`
	Time time.Time `json:"time"` // of what a model or a tool gave: when it was asked for
	// of Heard: the sender's name; of Said: the model; of Called and Gave: the tool
	Who   string `json:"who,omitempty"`
	Text  string `json:"text,omitempty"`  // of Called: the arguments, JSON as the model wrote it
	Call  string `json:"call,omitempty"`  // of Called and Gave: ties them together
	Files []File `json:"files,omitempty"` // of Heard
}

// An EntryKind says what an Entry is.
type EntryKind string

// The kinds of entries.
const (
	Heard  EntryKind = "heard"  // somebody spoke
	Said   EntryKind = "said"   // the agent spoke
	Called EntryKind = "called" // the agent used a tool
	Gave   EntryKind = "gave"   // what the tool gave back
	Ended  EntryKind = "ended"  // a turn ended otherwise than by an answer; Text says how
	Lost   EntryKind = "lost"   // something was said that is damaged on disk; Text says so
	Began  EntryKind = "began"  // a new conversation began at the same place
)

// A Find is a place in past conversations where words were found.
type Find struct {
	Session SessionID `json:"session"`
	Entry   Entry     `json:"entry"` // its Text is clipped around the words
}
