package tools

import (
	"crypto/sha256"
	"maps"
	"slices"
	"sync"
	"time"
)

// CacheFor is the usual Hints.CacheFor: as long as the Cache keeps.
const CacheFor = 5 * time.Minute

const cacheSize = 512 // results that a Cache keeps, those used last

// A Cache knows what lookups and calculations came to, so that a call made
// again is answered from memory. It is safe for use by several goroutines.
type Cache struct {
	ttl time.Duration

	mu    sync.Mutex
	known map[meant]*memory
	uses  int // counts up
	era   int // counts how often the files may have changed
}

// meant identifies a call by what it means and for whom.
type meant [sha256.Size]byte

// A memory is a result and what must be known to give it again.
type memory struct {
	result Result
	files  bool // of a tool of category "files"
	until  time.Time
	used   int // when, by the Cache's count
}

// NewCache returns a Cache that keeps results for ttl, or for the CacheFor of
// their tool where that is shorter; the usual CacheFor is as long as ttl.
// One whose ttl is 0 keeps nothing.
func NewCache(ttl time.Duration) *Cache {
	return &Cache{ttl: ttl, known: map[meant]*memory{}}
}

// lasts returns how long results of t are kept; 0 means not at all.
func (c *Cache) lasts(t Tool) time.Duration {
	if t.CacheFor == CacheFor {
		return c.ttl
	}
	return min(t.CacheFor, c.ttl)
}

// keyOf names all calls that mean what call does: of the same person in the
// same session and workspace. It takes t's own name: a tool's alias
// says the same in another form.
func keyOf(t Tool, call Call) meant {
	dir := ""
	if call.Workspace != nil {
		dir = call.Workspace.Dir()
	}
	return sha256.Sum256([]byte(text([]any{t.Name, call.Session, call.From.ID, call.From.Role, dir, call.Input})))
}

// get returns what is known of a call, and the era for put.
func (c *Cache) get(call meant) (r Result, era int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.known[call]
	if m == nil || !time.Now().Before(m.until) {
		return Result{}, c.era, false
	}
	c.uses++
	m.used = c.uses
	return m.result, c.era, true
}

// put keeps a result of t that was worked out since era, unless it may be of
// files as they were before a change.
func (c *Cache) put(t Tool, call meant, r Result, era int) {
	r.Data = nil // Text says it
	m := &memory{result: r, files: t.Category == "files", until: time.Now().Add(c.lasts(t))}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.files && era != c.era {
		return
	}
	c.uses++
	m.used, c.known[call] = c.uses, m
	if len(c.known) > cacheSize {
		older := func(a, b meant) int { return c.known[a].used - c.known[b].used }
		delete(c.known, slices.MinFunc(slices.Collect(maps.Keys(c.known)), older))
	}
}

// changed forgets what depends on files: any of them may have changed.
func (c *Cache) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.era++
	maps.DeleteFunc(c.known, func(_ meant, m *memory) bool { return m.files })
}
