// Package channels connects chat networks to the house: the contract of a
// channel, who may talk, and the Hub, by which everything said leaves.
package channels

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"parley/chat"
)

// A Channel carries messages between one chat network and the house. One that
// keeps people connected after Run has returned, to tell them what is still to
// be said, is an io.Closer, and Close ends that.
type Channel interface {
	// Run receives until ctx ends, and returns only when everything it
	// started has ended. It acknowledges a message to the network only after
	// deliver returned nil. It mends lost connections itself; an error means
	// it cannot go on, as when a token is wrong.
	Run(ctx context.Context, deliver chat.Deliver) error
	// Send says r in one attempt. It may be called by many goroutines, before
	// Run and after. An error that is not an *Error is worth another try.
	Send(ctx context.Context, r chat.Reply) (Receipt, error)
}

// A Receipt is the network's own name for what was sent, opaque to others. It
// is empty if the network did not tell it: what was sent cannot be changed then.
type Receipt string

// An Error is a reply that a network did not take.
type Error struct {
	Permanent bool          // another try cannot help: the chat is gone, the bot is blocked
	After     time.Duration // the network asks to wait this long; 0 when it does not say
	Unsent    bool          // nothing was sent, for certain; so it is with Permanent and After, too
	Err       error
}

// Error implements error.
func (e *Error) Error() string { return e.Err.Error() }

// ForGood is an Error that is Permanent.
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

// MayBeSent reports whether a message may have been sent although sending it
// returned err, as when the connection broke before the answer came.
func MayBeSent(err error) bool {
	var e *Error
	return err != nil && (!errors.As(err, &e) || !e.Permanent && e.After == 0 && !e.Unsent)
}

// The powers below are optional, as http.Flusher is.

// A Splitter is a Channel whose messages have a limit, or a markup of their own.
// It is given what Parts makes by it.
type Splitter interface {
	// Split returns what the messages say that text has to be sent as, in the
	// network's own markup: none if text shows nothing. The same text gives the same.
	Split(text string) []string
	// Group returns the files of each message that files have to be sent as, in order.
	Group(files []chat.File) [][]chat.File
}

// An Editor is a Channel that can change and take back what it sent. Replies stream by it.
type Editor interface {
	// Edit makes the message of rc say r. A message that says so already is no error.
	Edit(ctx context.Context, rc Receipt, r chat.Reply) error
	// EditEvery is the least time between two edits at to.
	EditEvery(to chat.Address) time.Duration
	// Delete removes the message of rc. A message that is gone already is no error.
	Delete(ctx context.Context, at chat.Address, rc Receipt) error
}

// A Position is how far the numbers of the messages of a network have come.
// Messages to one chat have rising numbers. 0 stands for one that is not known.
type Position int64

// A Tracer is a Channel that can find out whether a message was sent when its
// answer was lost, because the connection broke or the process died. Messages to
// one chat of a Tracer are sent one after the other.
type Tracer interface {
	// Position returns the highest number that is known now: a message that is
	// sent to the chat of r from now on has a higher one.
	Position(ctx context.Context, r chat.Reply) (Position, error)
	// Recall tells of a number that was known when the process ran before.
	Recall(ctx context.Context, to chat.Address, p Position) error
	// Trace looks for r, and no other message of ours to that chat is above
	// after. It returns the Receipt of r, or "" if r was not sent, or not found
	// by any reasonable effort. After an error it goes on where it was.
	Trace(ctx context.Context, r chat.Reply, after Position) (Receipt, error)
}

// A Typer is a Channel that can show that the agent is busy.
type Typer interface {
	// Typing shows it for a few seconds.
	Typing(ctx context.Context, at chat.Address) error
}

// A CommandMenu is a Channel that offers commands by a menu of its own.
type CommandMenu interface {
	SetCommands(ctx context.Context, cs []Command) error
}

// A Command is one the house understands, such as {"new", "begin a new conversation"}.
type Command struct{ Name, Help string }

// A Streamer is a Channel that shows a reply in the making by a way of its
// own, such as a terminal; it is used instead of Editor. Its Send is also given
// replies that say nothing: they end what it shows.
type Streamer interface {
	// Stream shows r, the whole text so far. It must not block for long.
	Stream(r chat.Reply)
}

// A Stepper is a Streamer that shows what the agent does besides speaking.
type Stepper interface {
	Streamer
	// Step shows s, which is on the way to r. It must not block for long.
	Step(r chat.Reply, s chat.Step)
}

// A Fetcher is a Channel whose messages come with files that stay at the network.
type Fetcher interface {
	// Fetch returns the bytes of f, which came with m. The caller closes them,
	// maybe while another goroutine reads, whose Read then returns.
	// An *Error that is Permanent says that they cannot be had, and one that is
	// workspace.ErrTooBig, too, says why.
	Fetch(ctx context.Context, m chat.Message, f chat.File) (io.ReadCloser, error)
}

// An Asker is a Channel that shows the choices of a question as buttons. Send
// shows those of r.Ask. The press of one is a Message with an Answer. For other
// channels the Hub numbers the choices in the text, and takes a number for the answer.
type Asker interface {
	// MaxChoices is how many choices can be buttons. Those of a question that has more are numbered.
	MaxChoices() int
	// Edit is as an Editor's. An r that asks nothing takes the buttons away.
	Edit(ctx context.Context, rc Receipt, r chat.Reply) error
}

// A Reactor is a Channel that can mark the messages of people.
type Reactor interface {
	// React marks the message with the ID at at with m, instead of what marked it before.
	React(ctx context.Context, at chat.Address, message string, m Mark) error
}

// A Mark says how far the house is with a message.
type Mark string

// The marks.
const (
	Seen    Mark = "seen"
	Working Mark = "working"
	Done    Mark = "done"
)

// A DirectMessenger is a Channel where a person can be spoken to first.
type DirectMessenger interface {
	// Direct returns the private chat with the person of that ID, or without a
	// Chat if there is none. "" is whoever owns a channel of owners only.
	Direct(id string) chat.Address
}

// A HealthReporter is a Channel that knows what ails it while it runs.
type HealthReporter interface {
	// Health returns why nothing comes in at present, nil when it does.
	Health() error
}

// A RecoveryNotifier is a Channel that tells when its network can be reached
// again.
type RecoveryNotifier interface {
	// OnRecovery has f called whenever messages come in again after none did.
	// f returns at once. It is called once, before Run.
	OnRecovery(f func())
}
