// Package channels connects chat networks with the agent: the contract of a Channel,
// and the Hub, through which all messages come in and all replies leave.
package channels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"parley/chat"
)

// A Channel carries messages between one chat network and the gateway. If it keeps
// people connected after Run has returned, so that they get the last replies, it is
// an io.Closer, and Close disconnects them.
type Channel interface {
	// Run receives until ctx ends, and returns only when everything it started
	// has ended. It acknowledges a message to the network only after deliver
	// returned nil. A message has the Time when it was sent: an old one may not be
	// answered. Run restores lost connections itself; an error means that it cannot
	// go on, as with an invalid token.
	Run(ctx context.Context, deliver chat.Deliver) error
	// Send sends r in one attempt. It may be called concurrently, also before Run
	// and after it. An error that is not an *Error is worth another attempt.
	Send(ctx context.Context, r chat.Reply) (Receipt, error)
}

// A Receipt is the network's own name for a message that was sent, opaque to others.
// It is empty if the network did not return one; then the message cannot be changed.
type Receipt string

// An Error means that a network did not accept a reply.
type Error struct {
	Permanent bool          // another attempt cannot help: the chat is gone, the bot is blocked
	After     time.Duration // the network asks to wait this long; 0 if it does not say
	Unsent    bool          // certainly nothing was sent; Permanent and After imply this
	Err       error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// ForGood returns an Error that is Permanent.
func ForGood(format string, args ...any) error {
	return &Error{Permanent: true, Err: fmt.Errorf(format, args...)}
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsPermanent reports whether err is an [*Error] that another try cannot help.
func IsPermanent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Permanent
}

// MayBeSent reports whether a message may have been sent although sending it returned
// err, as after a connection that broke before the answer came.
func MayBeSent(err error) bool {
	var e *Error
	return err != nil && (!errors.As(err, &e) || !e.Permanent && e.After == 0 && !e.Unsent)
}

// The interfaces below are optional, as http.Flusher is.

// A Splitter is a Channel whose messages have a size limit, or a markup of their own.
// Its Send and Edit are given the messages that Parts makes with it.
type Splitter interface {
	// Split returns the texts of the messages that text has to be sent as, in the
	// network's markup: none if nothing of text can be seen. The same text always
	// gives the same result.
	Split(text string) []string
	// Group returns, for each message that files have to be sent as, its files.
	Group(files []chat.File) [][]chat.File
}

// An Editor is a Channel that can change and delete what it sent. Live views edit
// messages.
type Editor interface {
	// Edit makes the message rc show r. It is no error if it already does.
	Edit(ctx context.Context, rc Receipt, r chat.Reply) error
	// EditEvery returns the least time between two edits in the chat to.
	EditEvery(to chat.Address) time.Duration
	// Delete deletes the message rc. It is no error if it is gone already.
	Delete(ctx context.Context, at chat.Address, rc Receipt) error
}

// A Position is a number of a message of a network. Messages to one chat have rising
// numbers. 0 stands for an unknown number.
type Position int64

// A Tracer is a Channel that can find out whether a message was sent although the
// network's answer was lost, because the connection broke or the process died. Messages
// to one chat of a Tracer are sent one after the other.
type Tracer interface {
	// Position returns the highest number that is known now: messages that are sent
	// to the chat of r from now on have higher ones.
	Position(ctx context.Context, r chat.Reply) (Position, error)
	// Recall passes on a number that was known before the start.
	Recall(ctx context.Context, to chat.Address, p Position) error
	// Trace looks for r. No other message of ours in that chat has a number above
	// after. It returns the Receipt of r, or "" if r was not sent, or not found with
	// reasonable effort. When it is called again after an error, it continues.
	Trace(ctx context.Context, r chat.Reply, after Position) (Receipt, error)
}

// A Typer is a Channel that can show that the agent is busy.
type Typer interface {
	// Typing shows for a few seconds that the agent is busy.
	Typing(ctx context.Context, at chat.Address) error
}

// A CommandMenu is a Channel that offers commands in a menu.
type CommandMenu interface {
	SetCommands(ctx context.Context, cs []Command) error
}

// A Command is a slash command, such as {"new", "begin a new conversation"}.
type Command struct{ Name, Help string }

// A Streamer is a Channel that shows unfinished replies in a way of its own, such as a
// terminal; this is used instead of Editor. Its Send is also given empty replies, which
// end what it shows.
type Streamer interface {
	// Stream shows r with the text so far. It must not block for long.
	Stream(r chat.Reply)
}

// A Stepper is a Streamer that shows the tools at work.
type Stepper interface {
	Streamer
	// Step shows s, a step towards r. It must not block for long.
	Step(r chat.Reply, s chat.Step)
}

// A Fetcher is a Channel whose messages may have files that stay on the network until
// they are fetched.
type Fetcher interface {
	// Fetch returns the bytes of f, a file of m. The caller closes the reader,
	// maybe while another goroutine reads; its Read then returns. A permanent
	// *Error means that the file is not available; it wraps workspace.ErrTooBig if
	// that is the reason.
	Fetch(ctx context.Context, m chat.Message, f chat.File) (io.ReadCloser, error)
}

// An Asker is a Channel that shows the choices of a question as buttons: Send shows
// those of r.Ask, and a pressed button is a Message with an Answer. For other channels
// the Hub numbers the choices in the text, and accepts a number as the answer.
type Asker interface {
	// MaxChoices returns how many buttons a question can have. The choices of a
	// question with more are numbered.
	MaxChoices() int
	// Edit is that of Editor. If r has no question, the buttons disappear. A channel that shows r.Outcome in its
	// own way shows the text that the message had, without the words for it.
	Edit(ctx context.Context, rc Receipt, r chat.Reply) error
}

// A FormShower is an Asker that shows the Fields of a question as a form: the press of the choice that they go
// with is a Message whose Answer has their Values.
type FormShower interface {
	Asker
	// MaxFields returns how many fields a form can have.
	MaxFields() int
}

// A Settler is a Channel whose clients wait until each of their messages is answered.
type Settler interface {
	// Settle tells the client that sent the message with that ID not to wait for a reply
	// to it, because it answered a question. It must not block for long.
	Settle(message string)
}

// An Attacher is a Channel that people connect to when they like, as at a terminal. It
// shows a question that is still open to those who connect after it was sent.
type Attacher interface {
	// SetOpenQuestions gives the channel open, which returns the messages that ask the
	// open questions of a chat, as Send is given them. It is called once, before Run.
	SetOpenQuestions(open func(ctx context.Context, at chat.Address) ([]chat.Reply, error))
}

// A Reactor is a Channel that can mark the messages of people.
type Reactor interface {
	// React marks the message with that ID in the chat at with m, in place of its
	// earlier mark.
	React(ctx context.Context, at chat.Address, message string, m Mark) error
}

// A Mark shows the progress of the answer to a message.
type Mark string

// The marks.
const (
	Seen    Mark = "seen"
	Working Mark = "working"
	Done    Mark = "done"
)

// A DirectMessenger is a Channel that can start a conversation.
type DirectMessenger interface {
	// Direct returns the private chat with the person of that ID; its Chat is empty
	// if there is none. The ID "" stands for the owner of a channel that only owners
	// can reach.
	Direct(id string) chat.Address
}

// A HealthReporter is a Channel that knows whether it works while it runs.
type HealthReporter interface {
	// Health returns why nothing is received at present, or nil.
	Health() error
}

// A RecoveryNotifier is a Channel that reports when its network can be reached again.
type RecoveryNotifier interface {
	// OnRecovery has f called whenever messages come in again after an outage. f
	// returns at once. OnRecovery is called once, before Run.
	OnRecovery(f func())
}
