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
	"parley/tools/arguments"
)

const maxCached = 512 // results in a Cache: those that were used last

// A Cache keeps the results of Cacheable tools, so that the same call is answered
// without running it again. It is safe for concurrent use.
type Cache struct {
	disk *store.WriteBehind // nil: in memory only

	mu      sync.Mutex
	ttl     time.Duration
	variant string // of the settings that results depend on
	entries map[cacheKey]*cacheEntry
	uses    int // number of uses so far
}

// A cacheKey identifies a call by its meaning and by the person it runs for
// "telegram:42 5f3c…".
type cacheKey string

// A cacheEntry is a cached result.
type cacheEntry struct {
	Result Result
	Text   string // Result.Text, which the JSON of Result leaves out
	Time   time.Time

	used int // value of Cache.uses at the last use
}

// NewCache returns a Cache in memory that keeps results for ttl. If ttl is
// 0, it keeps nothing.
func NewCache(ttl time.Duration) *Cache {
	return &Cache{ttl: ttl, entries: map[cacheKey]*cacheEntry{}}
}

// OpenCache returns a Cache that survives restarts in bucket. Entries are written
// while Run runs. It keeps nothing until Configure is called.
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

// Run writes changes to the bucket, and deletes expired entries, until ctx ends.
// It is for a Cache from OpenCache.
func (c *Cache) Run(ctx context.Context) { c.disk.Run(ctx, c.expire) }

// Configure sets how long results are kept. variant stands for the settings that
// results depend on: results of another variant are not used.
func (c *Cache) Configure(ttl time.Duration, variant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ttl = ttl
	c.variant = variant
}

// enabled reports whether results are kept at all.
func (c *Cache) enabled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ttl > 0
}

// keyOf returns the key of a call. Calls that mean the same share it, under any
// name of the tool, if they are made for the same person in the same session and
// workspace.
func (c *Cache) keyOf(t Tool, call Call) cacheKey {
	dir := ""
	if call.Workspace != nil {
		dir = call.Workspace.Dir()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	meaning := []any{t.canonical(), call.Session, call.From.ID, call.From.Role, dir, call.Input, t.Variant, c.variant}
	sum := sha256.Sum256([]byte(arguments.JSON(meaning)))
	return keyPrefix(call.Session) + cacheKey(hex.EncodeToString(sum[:]))
}

func keyPrefix(session chat.SessionID) cacheKey { return cacheKey(session) + " " }

// get returns the cached result of a call.
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

// age returns the age of e. An entry from the future, as after the clock was set
// back, counts as expired.
func (e *cacheEntry) age() time.Duration {
	if age := time.Since(e.Time); age >= 0 {
		return age
	}
	return 1<<63 - 1
}

// put caches the result of a call.
func (c *Cache) put(call cacheKey, r Result) {
	r.Data = nil // Text has the same
	r.Told = ""
	e := &cacheEntry{Result: r, Text: r.Text, Time: time.Now()}
	body, _ := json.Marshal(e) // nil if that fails: then the entry is in memory only
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uses++
	e.used = c.uses
	c.entries[call] = e
	c.disk.Set(string(call), body)
	if len(c.entries) > maxCached {
		older := func(a, b cacheKey) int { return c.entries[a].used - c.entries[b].used }
		c.drop(slices.MinFunc(slices.Collect(maps.Keys(c.entries)), older))
	}
}

// drop removes one entry. The caller holds c.mu.
func (c *Cache) drop(call cacheKey) {
	delete(c.entries, call)
	c.disk.Set(string(call), nil)
}

// expire removes expired entries.
func (c *Cache) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call, e := range c.entries {
		if e.age() >= c.ttl {
			c.drop(call)
		}
	}
}

// Forget removes the results of a session.
func (c *Cache) Forget(session chat.SessionID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.entries {
		if strings.HasPrefix(string(call), string(keyPrefix(session))) {
			c.drop(call)
		}
	}
}
