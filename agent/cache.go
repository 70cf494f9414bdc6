package agent

import (
	"container/list"
	"context"
	"sync"

	"parley/agent/conversation"
	"parley/chat"
)

// cacheSize is how much of idle sessions stays in memory, in estimated tokens of
// four bytes each. The others are read again when somebody speaks (P15).
const cacheSize = 2 << 20

// A cache keeps the sessions that were at work last.
type cache struct {
	mu   sync.Mutex
	by   map[chat.SessionID]*list.Element
	age  list.List // of cached, latest first
	size int
}

// cached is a session with its weight in estimated tokens.
type cached struct {
	session *conversation.Session
	weight  int
}

// take removes and returns the session id, or nil.
func (c *cache) take(id chat.SessionID) *conversation.Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[id]
	if e == nil {
		return nil
	}
	return c.remove(e)
}

// put keeps s, and drops the sessions idle for longest if they are too many.
func (c *cache) put(s *conversation.Session) {
	weight := s.MemorySize()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[chat.SessionID]*list.Element{}
	}
	c.by[s.ID] = c.age.PushFront(cached{s, weight})
	for c.size += weight; c.size > cacheSize; {
		c.remove(c.age.Back())
	}
}

func (c *cache) remove(e *list.Element) *conversation.Session {
	s := c.age.Remove(e).(cached)
	delete(c.by, s.session.ID)
	c.size -= s.weight
	return s.session
}

// open returns the session id, from memory if it was at work lately.
func (p *Pool) open(ctx context.Context, id chat.SessionID) (*conversation.Session, error) {
	st, _, err := p.sessions.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := p.idle.take(id); s != nil && s.State.Epoch == st.Epoch {
		s.State = st
		return s, nil
	}
	return p.sessions.Open(ctx, id, st)
}
