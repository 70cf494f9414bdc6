package chat

import "time"

// Work is something that is under way, and that an owner can stop.
type Work struct {
	ID      string    `json:"id"`
	Kind    WorkKind  `json:"kind"`
	What    string    `json:"what,omitempty"`    // the task, the command, or the ID of the job; "" for a turn
	Doing   string    `json:"doing,omitempty"`   // what it does at the moment
	Session SessionID `json:"session,omitempty"` // in which it is, or for which
	Since   time.Time `json:"since"`
}

// A WorkKind is the kind of Work.
type WorkKind string

// The kinds of Work.
const (
	WorkTurn    WorkKind = "turn"            // an answer to a message
	WorkJob     WorkKind = "job"             // a run of a scheduled job
	WorkTask    WorkKind = "background task" // a subagent
	WorkCommand WorkKind = "command"         // a command that a tool left running
)
