package tools

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"
)

const cacheSize = 512 // results that a Cache keeps, those used last

// A Cache knows what Cacheable tools came to, so that a call made again is
// answered from memory. It is safe for use by several goroutines.
type Cache struct {
	ttl time.Duration

	mu    sync.Mutex
	known map[meant]*memory
	uses  int // counts up
}

// meant identifies a call by what it means and for whom.
type meant [sha256.Size]byte

// A memory is a result and what must be known to give it again.
type memory struct {
	result Result
	until  time.Time
	used   int // when, by the Cache's count
}

// NewCache returns a Cache that keeps results for ttl; if that is 0, it
// keeps nothing.
func NewCache(ttl time.Duration) *Cache {
	return &Cache{ttl: ttl, known: map[meant]*memory{}}
}

// keyOf names all calls that mean what call does: of the same person in the
// same session and workspace, whichever of its names the tool is called by.
func keyOf(t Tool, call Call) meant {
	dir := ""
	if call.Workspace != nil {
		dir = call.Workspace.Dir()
	}
	return sha256.Sum256([]byte(text([]any{t.canonical(), call.Session, call.From.ID, call.From.Role, dir, call.Input})))
}

// get returns what is known of a call.
func (c *Cache) get(call meant) (r Result, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.known[call]
	if m == nil || !time.Now().Before(m.until) {
		return Result{}, false
	}
	c.uses++
	m.used = c.uses
	return m.result, true
}

// put keeps the result of a call.
func (c *Cache) put(call meant, r Result) {
	r.Data = nil // Text says it
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	c.known[call] = &memory{r, time.Now().Add(c.ttl), c.uses}
	if len(c.known) > cacheSize {
		older := func(a, b meant) int { return c.known[a].used - c.known[b].used }
		delete(c.known, slices.MinFunc(slices.Collect(maps.Keys(c.known)), older))
	}
}
