package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
)

const maxCached = 512 // results that a Cache keeps, those used last

// A Cache remembers the results of Cacheable tools, so that a call made again is
// answered without making it. It is safe for use by several goroutines.
type Cache struct {
	disk *store.WriteBehind // nil: in memory only

	mu      sync.Mutex
	ttl     time.Duration
	variant string
	entries map[cacheKey]*cacheEntry
	uses    int // counts up
}

// A cacheKey identifies a call by what it means and for whom:
// "telegram:42 5f3c…".
type cacheKey string

// A cacheEntry is a result and what must be known to give it again.
type cacheEntry struct {
	Result Result
	Text   string // of Result, whose JSON leaves it out
	Time   time.Time

	used int // when, by the Cache's count
}

// NewCache returns a Cache that keeps results for ttl; if that is 0, it
// keeps nothing. It is in memory only.
func NewCache(ttl time.Duration) *Cache {
	return &Cache{ttl: ttl, entries: map[cacheKey]*cacheEntry{}}
}

// OpenCache returns a Cache that survives restarts in bucket. Its entries are
// written while Run runs. Until Configure is called it keeps nothing.
func OpenCache(ctx context.Context, bucket store.Bucket, log *slog.Logger) (*Cache, error) {
	c := NewCache(0)
	c.disk = store.NewWriteBehind(bucket, log, "tool cache")
	err := c.disk.Load(ctx, func(key string, value []byte) error {
		e := &cacheEntry{}
		if err := json.Unmarshal(value, e); err != nil {
			return err
		}
		e.Result.Text = e.Text
		c.entries[cacheKey(key)] = e
		return nil
	})
	return c, err
}

// Run writes what changes to the bucket, and deletes what is too old, until ctx
// ends. It is for a Cache of OpenCache.
func (c *Cache) Run(ctx context.Context) { c.disk.Run(ctx, c.expire) }

// Configure sets for how long results are kept. Results of another variant are
// not given any more: it stands for the settings that results depend on.
func (c *Cache) Configure(ttl time.Duration, variant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ttl, c.variant = ttl, variant
}

// enabled reports whether anything is kept at all.
func (c *Cache) enabled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ttl > 0
}

// keyOf names all calls that mean what call does: of the same person in the
// same session and workspace, whichever of its names the tool is called by.
func (c *Cache) keyOf(t Tool, call Call) cacheKey {
	dir := ""
	if call.Workspace != nil {
		dir = call.Workspace.Dir()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := sha256.Sum256(
		[]byte(text([]any{t.canonical(), call.Session, call.From.ID, call.From.Role, dir, call.Input, c.variant})))
	return keyPrefix(call.Session) + cacheKey(hex.EncodeToString(sum[:]))
}

func keyPrefix(session chat.SessionID) cacheKey { return cacheKey(session) + " " }

// get returns what is known of a call.
func (c *Cache) get(call cacheKey) (r Result, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[call]
	if e == nil || e.age() >= c.ttl {
		return Result{}, false
	}
	c.uses++
	e.used = c.uses
	return e.Result, true
}

// age returns how old e is. What is of the future, as after the clock was put
// back, counts as too old.
func (e *cacheEntry) age() time.Duration {
	if age := time.Since(e.Time); age >= 0 {
		return age
	}
	return 1<<63 - 1
}

// put keeps the result of a call.
func (c *Cache) put(call cacheKey, r Result) {
	r.Data, r.Told = nil, "" // Text says it
	e := &cacheEntry{Result: r, Text: r.Text, Time: time.Now()}
	body, err := json.Marshal(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	e.used = c.uses
	c.entries[call] = e
	if err == nil { // else it is in memory only
		c.disk.Set(string(call), body)
	}
	if len(c.entries) > maxCached {
		older := func(a, b cacheKey) int { return c.entries[a].used - c.entries[b].used }
		c.drop(slices.MinFunc(slices.Collect(maps.Keys(c.entries)), older))
	}
}

// drop forgets one entry. c.mu is held.
func (c *Cache) drop(call cacheKey) {
	delete(c.entries, call)
	c.disk.Set(string(call), nil)
}

// expire forgets what is too old.
func (c *Cache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call, e := range c.entries {
		if e.age() >= c.ttl {
			c.drop(call)
		}
	}
}

// Forget drops the results of a session.
func (c *Cache) Forget(session chat.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.entries {
		if strings.HasPrefix(string(call), string(keyPrefix(session))) {
			c.drop(call)
		}
	}
}
