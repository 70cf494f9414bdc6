package conversation

import (
	"container/list"
	"context"
	"sync"

	"parley/chat"
)

// cacheSize is how much of idle sessions stays in memory, in estimated tokens of
// four bytes each. The others are read again when somebody writes there (P15).
const cacheSize = 2 << 20

// A cache keeps the idle sessions that were used last.
type cache struct {
	mu    sync.Mutex
	byID  map[chat.SessionID]*list.Element
	byAge list.List // of cached, latest first
	size  int       // estimated tokens
}

// cached is a session with its weight in estimated tokens.
type cached struct {
	session *Session
	weight  int
}

// take removes and returns the session id, nil if it is not there.
func (c *cache) take(id chat.SessionID) *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.byID[id]
	if e == nil {
		return nil
	}
	return c.remove(e)
}

// put keeps s, and drops the sessions that are idle for longest if they are too large.
func (c *cache) put(s *Session) {
	weight := s.MemorySize()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byID == nil {
		c.byID = map[chat.SessionID]*list.Element{}
	}
	c.byID[s.ID] = c.byAge.PushFront(cached{s, weight})
	for c.size += weight; c.size > cacheSize; {
		c.remove(c.byAge.Back())
	}
}

func (c *cache) remove(e *list.Element) *Session {
	s := c.byAge.Remove(e).(cached)
	delete(c.byID, s.session.ID)
	c.size -= s.weight
	return s.session
}

// Open returns the session id, from memory if it is there. Nobody else may use it
// before it is given back with Cache.
func (ss *Sessions) Open(ctx context.Context, id chat.SessionID) (*Session, error) {
	st, _, err := ss.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := ss.idle.take(id); s != nil && s.State.Epoch == st.Epoch {
		s.State = st
		return s, nil
	}
	return ss.read(ctx, id, st)
}

// Cache keeps s, which nobody uses any more, in memory.
func (ss *Sessions) Cache(s *Session) { ss.idle.put(s) }
