package serve

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxEventBytes is how much of what one caller was sent is kept for connections that break. The last event is
// kept whatever its length.
const maxEventBytes = 4 << 20

// events are what clients were sent. No caller can push out what others may still want to read. They are an
// [mcp.EventStore].
type events struct {
	mu      sync.Mutex
	callers map[string]*callerEvents // by the tag of their sessions
}

// callerEvents are those of the open sessions of one caller.
type callerEvents struct {
	kept     *mcp.MemoryEventStore
	sessions map[string]bool
}

var errClosed = errors.New("the session was closed")

// find returns what is kept for the caller whose session that is, errClosed if it is not open. An answer that comes
// too late would otherwise be kept for ever.
func (e *events) find(session string) (*mcp.MemoryEventStore, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.callers[tagOf(session)]
	if c == nil || !c.sessions[session] {
		return nil, errClosed
	}
	return c.kept, nil
}

func tagOf(session string) string { return session[:min(len(session), tagLength)] }

// Open implements [mcp.EventStore].
func (e *events) Open(ctx context.Context, session, stream string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	tag := tagOf(session)
	c := e.callers[tag]
	if c == nil {
		c = &callerEvents{kept: mcp.NewMemoryEventStore(nil), sessions: map[string]bool{}}
		c.kept.SetMaxBytes(maxEventBytes)
		e.callers[tag] = c
	}
	c.sessions[session] = true
	return c.kept.Open(ctx, session, stream)
}

// Append implements [mcp.EventStore].
func (e *events) Append(ctx context.Context, session, stream string, data []byte) error {
	kept, err := e.find(session)
	if err != nil {
		return err
	}
	return kept.Append(ctx, session, stream, data)
}

// After implements [mcp.EventStore].
func (e *events) After(ctx context.Context, session, stream string, index int) iter.Seq2[[]byte, error] {
	kept, err := e.find(session)
	if err != nil {
		return func(yield func([]byte, error) bool) { yield(nil, err) }
	}
	return kept.After(ctx, session, stream, index)
}

// SessionClosed implements [mcp.EventStore].
func (e *events) SessionClosed(ctx context.Context, session string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	c := e.callers[tagOf(session)]
	if c == nil {
		return nil
	}
	delete(c.sessions, session)
	if len(c.sessions) == 0 {
		delete(e.callers, tagOf(session))
	}
	return c.kept.SessionClosed(ctx, session)
}
