package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"parley/store"
)

// writeInterval is how often changes are written: what a crash loses.
const writeInterval = 5 * time.Minute

// hourFormat is the key of an hour in the store, in UTC: the order of keys is that of hours.
const hourFormat = "2006-01-02T15"

// A record is an hour in the store.
type record struct {
	Messages int `json:"messages,omitempty"`
	Turns    int `json:"turns,omitempty"`
	Failed   int `json:"failed,omitempty"`
	Answered int `json:"answered,omitempty"`

	Durations histogram `json:"durations,omitempty"` // of answers
	// Took is what earlier programs wrote: durations in milliseconds, at most 60 that stand for all.
	Took []int `json:"took,omitempty"`
}

// Keep reads the hours in b, and writes those that change until ctx ends, and then once more. It writes every five
// minutes and nobody waits for it: a crash loses the last minutes.
func (c *Counter) Keep(ctx context.Context, b store.Bucket, log *slog.Logger) {
	disk := store.NewWriteBehind(b, log, "counts of messages and turns")
	err := disk.Load(ctx, func(key string, value []byte) error { return c.take(disk, key, value) })
	if err != nil && ctx.Err() == nil {
		log.Error("counts of messages and turns cannot be read: those of today are not kept either", "err", err)
		return // what was not read must not be overwritten
	}
	disk.Run(ctx, func() { c.write(disk, ctx.Err() != nil) })
}

// take takes in an hour of the store.
func (c *Counter) take(disk *store.WriteBehind, key string, value []byte) error {
	start, err := time.Parse(hourFormat, key)
	if err != nil {
		return fmt.Errorf("read the name of an hour: %w", err)
	}
	var r record
	if err := json.Unmarshal(value, &r); err != nil {
		return fmt.Errorf("read an hour: %w", err)
	}
	if time.Since(start) > kept {
		disk.Set(key, nil)
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.hours[start.Unix()]
	if h == nil {
		h = &hour{took: histogram{}}
		c.hours[start.Unix()] = h
	}
	h.messages += r.Messages
	h.turns += r.Turns
	h.failed += r.Failed
	h.answered += r.Answered
	h.took.merge(r.Durations)
	for i, ms := range r.Took {
		d := time.Duration(ms) * time.Millisecond
		n := r.Answered*(i+1)/len(r.Took) - r.Answered*i/len(r.Took)
		h.took.merge(histogram{binOf(d): bin{n, int64(n) * int64(ms)}})
	}
	if start.Before(c.began) {
		c.began = start
	}
	return nil
}

// write hands disk what has changed, and forgets what is old, here and there: now and then, or if it is the last time.
func (c *Counter) write(disk *store.WriteBehind, last bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !last && time.Since(c.wrote) < writeInterval {
		return
	}
	c.wrote = time.Now()
	for began, h := range c.hours {
		start := time.Unix(began, 0)
		key := start.UTC().Format(hourFormat)
		if time.Since(start) > kept {
			delete(c.hours, began)
			disk.Set(key, nil)
			continue
		}
		if !h.changed {
			continue
		}
		h.changed = false
		body, _ := json.Marshal(h.record()) // numbers can be encoded
		disk.Set(key, body)
	}
}

// record returns what is kept of h.
func (h *hour) record() record {
	return record{
		Messages: h.messages, Turns: h.turns, Failed: h.failed, Answered: h.answered, Durations: h.took,
	}
}
