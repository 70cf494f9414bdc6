package chat

import (
	"context"
	"time"
)

// A DeadLetter is a message that could not be answered, or a reply that could not
// be sent. It waits for an owner to retry or dismiss it.
type DeadLetter struct {
	Key     string
	Message Message // the zero Message for a reply, and if it cannot be read
	Reply   Reply   // the zero Reply for a message
	Reason  string
	Time    time.Time // when the message was sent, or the reply became a dead letter
	Retried bool      // it is also retried automatically
}

// Session returns the session that the message or the reply belongs to.
func (d DeadLetter) Session() SessionID {
	if d.Reply.ID != "" {
		return d.Reply.To.Session()
	}
	return d.Message.Session()
}

// Text returns the text of the message or the reply.
func (d DeadLetter) Text() string { return d.Message.Text + d.Reply.Text }

// DeadLetters are the dead letters of one kind. The methods may be called
// concurrently.
type DeadLetters interface {
	// List returns all of them in the order of their keys.
	List(ctx context.Context) ([]DeadLetter, error)
	// Retry has the message answered or the reply sent after all. It returns
	// store.ErrNotFound for an unknown key.
	Retry(ctx context.Context, key string) error
	// Dismiss removes a dead letter, which may be gone already.
	Dismiss(ctx context.Context, key string) error
}
