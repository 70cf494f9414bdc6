package web

import (
	"context"
	"io"
	"iter"
	"time"

	"parley/audit"
	"parley/channels"
	"parley/chat"
	"parley/llm"
	"parley/memory"
)

// A House is what the owner sees and does, as functions of the parts that do it.
type House struct {
	Talks
	Post
	Toolbox
	Clock
	Notes *memory.Notes // what is known of people

	Model    func() string                  // that answers, by its name
	Reasons  func(context.Context) []string // why the house does not work; empty when it does
	Warnings func() []string                // where a door stands open, or something will soon be wrong
	Damaged  func() []string                // what cannot be read in the store; nil: that is not known
	Channels func(context.Context) ([]Channel, error)
	Pairings func(context.Context) ([]channels.Pairing, error)
	Approve  func(ctx context.Context, code string) (channels.Pairing, error)

	Usage  func(context.Context) ([]llm.Spent, error)
	Price  func(model string, u llm.Usage) (cost float64, known bool) // in whatever money the config has prices
	Errors func() []Line                                              // the latest warnings and errors, redacted (R-S26), newest first
	Events *audit.Chain                                               // the audit log (R-S27)

	// Backup calls send with a copy of all there is, once it was verified (P20).
	Backup func(ctx context.Context, send func(io.Reader)) error
}

// Talks are past conversations. Transcript serves all that needs one.
type Talks struct {
	List       func(ctx context.Context, prefix string) ([]chat.Talk, error) // newest first
	Transcript func(context.Context, chat.SessionID) iter.Seq2[chat.Entry, error]
	Search     func(ctx context.Context, in func(chat.SessionID) bool, words string, most int) ([]chat.Find, error)
	Forget     func(context.Context, chat.SessionID) error
	Recording  func(context.Context, chat.SessionID) iter.Seq2[[]byte, error] // JSON lines; store.ErrNotFound of no such session
}

// Post is what waits for the owner: replies that no network took (P10), and
// messages whose answering ended the process (P8). Of a key that is not there
// the functions return store.ErrNotFound.
type Post struct {
	Parked func(context.Context) ([]Held, error)
	Resend func(ctx context.Context, key string) error
	Drop   func(ctx context.Context, key string) error

	Aside   func(context.Context) ([]Held, error)
	Again   func(ctx context.Context, key string) error
	Dismiss func(ctx context.Context, key string) error
}

// A Channel is how one channel does.
type Channel struct {
	Name    string        `json:"name"`
	Trouble string        `json:"trouble,omitempty"` // why it does not receive, redacted; empty when it does
	Pending int           `json:"pending"`           // replies in its outbox
	Oldest  time.Duration `json:"oldest"`            // how long the first of them has waited, nanoseconds
	Dropped int64         `json:"dropped"`           // messages of strangers since the start (R-S10)
}

// Held is a reply or a message that waits for the owner.
type Held struct {
	Key     string         `json:"key"`
	Session chat.SessionID `json:"session"`
	Text    string         `json:"text"`
	Why     string         `json:"why"`
	Time    time.Time      `json:"time"`
}

// A Line is one line of the log.
type Line struct {
	Time  time.Time `json:"time"`
	Level string    `json:"level"`
	Text  string    `json:"text"`
}
