// Package traffic counts messages, turns and their durations by the hour, and keeps them for 30 days, for the owner's
// dashboard. What became of requests to models it knows since the start.
package traffic

import (
	"slices"
	"strings"
	"sync"
	"time"
)

const kept = 31 * 24 * time.Hour // for how long hours are: for 30 days, and the one that has begun

// A Counter counts. The methods of a nil one do nothing; those of others may be called
// concurrently.
type Counter struct {
	mu     sync.Mutex
	began  time.Time       // when counting began, with the hours that were read
	wrote  time.Time       // when changes were last handed to the store
	hours  map[int64]*hour // by the Unix time of their beginning
	models map[string]*Model
}

type hour struct {
	messages, turns, failed int
	answered                int
	took                    histogram // of answers to people
	changed                 bool      // since it was written
}

// New returns a Counter that begins now.
func New() *Counter {
	return &Counter{began: time.Now(), hours: map[int64]*hour{}, models: map[string]*Model{}}
}

// Began returns when c began to count, or the earliest hour that it knows.
func (c *Counter) Began() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.began
}

// current returns the hour that has begun, which is about to change. The caller holds mu.
func (c *Counter) current() *hour {
	key := time.Now().Truncate(time.Hour).Unix()
	h := c.hours[key]
	if h == nil {
		h = &hour{took: histogram{}}
		c.hours[key] = h
	}
	h.changed = true
	return h
}

// Message counts a message that came in.
func (c *Counter) Message() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.current().messages++
}

// Turn counts a turn that has ended. Took is how long it took, 0 unless it answered a
// person.
func (c *Counter) Turn(took time.Duration, failed bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.current()
	h.turns++
	if failed {
		h.failed++
	}
	if took <= 0 {
		return
	}
	h.answered++
	h.took.add(took)
}

// Count is what was counted in some time.
type Count struct {
	Start        time.Time     `json:"start"`
	Messages     int           `json:"messages"`
	Turns        int           `json:"turns"`
	Failed       int           `json:"failed"`
	Answered     int           `json:"answered"`         // turns of which the durations are known
	Median       time.Duration `json:"median,omitempty"` // nanoseconds; 0 if Answered is
	Percentile95 time.Duration `json:"p95,omitempty"`
}

// Hours returns the last n hours, the latest last: the one that has begun.
func (c *Counter) Hours(n int) []Count {
	now := time.Now().Truncate(time.Hour)
	all := make([]Count, n)
	for i := range all {
		start := now.Add(time.Duration(i-n+1) * time.Hour)
		all[i] = c.between(start, start.Add(time.Hour))
	}
	return all
}

// Days returns the last n days of the zone of now, the latest last: that of now.
func (c *Counter) Days(now time.Time, n int) []Count {
	all := make([]Count, n)
	for i := range all {
		day := func(more int) time.Time {
			return time.Date(now.Year(), now.Month(), now.Day()-n+1+i+more, 0, 0, 0, 0, now.Location())
		}
		all[i] = c.between(day(0), day(1))
	}
	return all
}

// Since returns what was counted in the hours that began at start or later.
func (c *Counter) Since(start time.Time) Count { return c.between(start, time.Now().Add(time.Hour)) }

// between returns what was counted in the hours that began at start or later, and before end.
func (c *Counter) between(start, end time.Time) Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []*hour
	for began, h := range c.hours {
		if began >= start.Unix() && began < end.Unix() {
			parts = append(parts, h)
		}
	}
	return count(start, parts)
}

func count(start time.Time, parts []*hour) Count {
	all := Count{Start: start}
	took := histogram{}
	for _, h := range parts {
		all.Messages += h.messages
		all.Turns += h.turns
		all.Failed += h.failed
		all.Answered += h.answered
		took.merge(h.took)
	}
	all.Median = took.quantile(.5)
	all.Percentile95 = took.quantile(.95)
	return all
}

// A Model is what became of the requests to a model since the start.
type Model struct {
	Name     string    `json:"name"`
	Requests int       `json:"requests"`
	Failed   int       `json:"failed"`
	Answered time.Time `json:"answered,omitzero"` // when it last answered
	Refused  time.Time `json:"refused,omitzero"`  // when a request last failed for good
	Why      string    `json:"why,omitempty"`     // the kind of that failure: "overloaded"
}

// Works reports whether the last request was answered.
func (m Model) Works() bool { return m.Answered.After(m.Refused) }

// Request counts a request to a model. Why is the kind of failure, "" if it was
// answered.
func (c *Counter) Request(model, why string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.models[model]
	if m == nil {
		m = &Model{Name: model}
		c.models[model] = m
	}
	m.Requests++
	if why == "" {
		m.Answered = time.Now()
		return
	}
	m.Failed++
	m.Refused, m.Why = time.Now(), why
}

// Models returns the models that were asked, by name.
func (c *Counter) Models() []Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Model, 0, len(c.models))
	for _, m := range c.models {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b Model) int { return strings.Compare(a.Name, b.Name) })
	return all
}
