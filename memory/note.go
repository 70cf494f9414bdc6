package memory

import (
	"context"
	"time"

	"parley/chat"
)

// Notes is what people can do themselves to what is known of them. What is
// returned is Markdown for their chat. A key names the message that asks, so
// that one that comes again after a crash does nothing more.
type Notes struct {
	Versions *Versions
	Past     interface {
		Past
		Forget(ctx context.Context, who chat.Person, keep func(Entry) bool) (int, error)
	}
	Zone *time.Location
}

// Remember writes text down in the memory of who.
func (n *Notes) Remember(ctx context.Context, who chat.Person, text, key string) (string, error) {
	return "", nil
}

// Forget removes the lines of the memory, and the entries of the history, of
// who that hold what.
func (n *Notes) Forget(ctx context.Context, who chat.Person, what, key string) (string, error) {
	return "", nil
}

// Show tells what is known of who.
func (n *Notes) Show(ctx context.Context, who chat.Person) (string, error) { return "", nil }

// Changes tells of the last changes of the memory of who, or what the one
// called id did.
func (n *Notes) Changes(ctx context.Context, who chat.Person, id string) (string, error) {
	return "", nil
}

// Restore undoes the change id.
func (n *Notes) Restore(ctx context.Context, who chat.Person, id, key string) (string, error) {
	return "", nil
}
