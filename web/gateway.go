package web

import (
	"context"
	"io"
	"iter"
	"time"

	"parley/audit"
	"parley/channels/admission"
	"parley/chat"
	"parley/llm"
	"parley/memory"
	"parley/redact"
	"parley/web/dashboard"
	"parley/web/layout"
	"parley/web/mcppages"
	"parley/web/toolpages"
)

// A Gateway is what the owner sees and does, as functions of the parts that do it.
type Gateway struct {
	Conversations Conversations
	DeadLetters   DeadLetters
	Toolbox       Toolbox
	Scheduler     Scheduler
	Notes         *memory.Notes // long-term memory
	ToolAdmin     toolpages.Admin
	MCP           mcppages.Admin
	Dashboard     *dashboard.Dashboard
	Pages         []layout.Pages // further pages of the owner

	Model     func() string                  // the name of the model that answers
	Reasons   func(context.Context) []string // why the gateway is not ready; empty when it is
	Warnings  func() []string                // what is insecure, or about to fail
	Damaged   func() []string                // what cannot be read in the store; nil: unknown
	Instances func() []Instance              // that share the store; nil: there can be no other
	Disk      func(context.Context) string   // what takes how much of the disk, in words; nil: unknown
	Channels  func(context.Context) ([]Channel, error)
	Pairings  func(context.Context) ([]admission.Pairing, error)
	Approve   func(ctx context.Context, code string) (admission.Pairing, error)

	Usage  func(context.Context) ([]llm.Spent, error)
	Errors func() []redact.Line // of the log, redacted (R-S26), newest first
	Events *audit.Chain         // the audit log (R-S27)

	// Backup calls send with a backup of everything, once it was verified (P20).
	Backup func(ctx context.Context, send func(io.Reader)) error
}

// Conversations reads and deletes past conversations.
type Conversations struct {
	List       func(ctx context.Context, prefix string) ([]chat.Talk, error) // newest first
	Transcript func(context.Context, chat.SessionID) iter.Seq2[chat.Entry, error]
	Search     func(ctx context.Context, in func(chat.SessionID) bool, words string, most int) ([]chat.Find, error)
	Forget     func(context.Context, chat.SessionID) error

	// Recording yields JSON lines. The error is store.ErrNotFound if there is no such session.
	Recording func(context.Context, chat.SessionID) iter.Seq2[[]byte, error]
}

// DeadLetters are replies that no network accepted (P10), and messages whose
// answers ended the process (P8).
type DeadLetters struct {
	Replies  chat.DeadLetters
	Messages chat.DeadLetters
	Redact   func(text string) string // removes secrets from reasons (R-S26)
}

// A Channel is the state of one channel.
type Channel struct {
	Name    string        `json:"name"`
	Trouble string        `json:"trouble,omitempty"` // why it does not receive, redacted; "" when it does
	Pending int           `json:"pending"`           // replies in its outbox
	Oldest  time.Duration `json:"oldest"`            // age of the oldest of them, nanoseconds
	Dropped int64         `json:"dropped"`           // messages of unknown senders since the start (R-S10)
}

// A DeadLetter is a dead letter as the owner sees it.
type DeadLetter struct {
	Key     string         `json:"key"`
	Session chat.SessionID `json:"session"`
	Text    string         `json:"text"`
	Why     string         `json:"why"`
	Time    time.Time      `json:"time"`
}
