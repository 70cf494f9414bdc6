package agent

import (
	"container/list"
	"sync"

	"parley/chat"
)

// cacheSize is how much of idle sessions stays in memory, in estimated tokens of
// four bytes each. The others are read again when somebody speaks (P15).
const cacheSize = 2 << 20

// What sessions take besides their texts, as it was measured.
const sessionSize, entrySize = 512, 128

// A cache keeps the sessions that were at work last.
type cache struct {
	mu   sync.Mutex
	by   map[chat.SessionID]*list.Element
	age  list.List // of *session, latest first
	size int
}

// take removes and returns the session id, or nil.
func (c *cache) take(id chat.SessionID) *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.by[id]
	if e == nil {
		return nil
	}
	return c.remove(e)
}

// put keeps s, and drops the sessions idle for longest if they are too many.
func (c *cache) put(s *session) {
	s.weight = s.history.Size() + sessionSize + len(s.history.entries)*entrySize
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = map[chat.SessionID]*list.Element{}
	}
	c.by[s.id] = c.age.PushFront(s)
	for c.size += s.weight; c.size > cacheSize; {
		c.remove(c.age.Back())
	}
}

func (c *cache) remove(e *list.Element) *session {
	s := c.age.Remove(e).(*session)
	delete(c.by, s.id)
	c.size -= s.weight
	return s
}
