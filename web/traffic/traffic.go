// Package traffic counts messages, turns, their durations and requests to models by the
// hour, in memory since the start, for the owner's dashboard.
package traffic

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	kept    = 25  // hours: those of a day, and the one that has begun
	samples = 400 // durations of an hour; of more, as many are drawn by chance
)

// A Counter counts. The methods of a nil one do nothing; those of others may be called
// concurrently.
type Counter struct {
	began time.Time

	mu     sync.Mutex
	hours  map[int64]*hour // by the Unix time of their beginning
	models map[string]*Model
}

type hour struct {
	messages, turns, failed int
	answered                int
	took                    []time.Duration // of answers to people
}

// New returns a Counter that begins now.
func New() *Counter {
	return &Counter{began: time.Now(), hours: map[int64]*hour{}, models: map[string]*Model{}}
}

// Began returns when c began to count.
func (c *Counter) Began() time.Time { return c.began }

// current returns the hour that has begun, and forgets old ones. The caller holds mu.
func (c *Counter) current() *hour {
	now := time.Now()
	key := now.Truncate(time.Hour).Unix()
	h := c.hours[key]
	if h == nil {
		h = &hour{}
		c.hours[key] = h
		oldest := now.Add(-kept * time.Hour).Unix()
		maps.DeleteFunc(c.hours, func(began int64, _ *hour) bool { return began < oldest })
	}
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
	if len(h.took) < samples {
		h.took = append(h.took, took)
	} else if i := rand.IntN(h.answered); i < samples {
		h.took[i] = took
	}
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

// Hours returns the last n hours, at most 25, the latest last: the one that has begun.
func (c *Counter) Hours(n int) []Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now().Truncate(time.Hour)
	all := make([]Count, n)
	for i := range all {
		start := now.Add(time.Duration(i-n+1) * time.Hour)
		all[i] = count(start, c.hours[start.Unix()])
	}
	return all
}

// Since returns what was counted in the hours that began at start or later.
func (c *Counter) Since(start time.Time) Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	var parts []*hour
	for began, h := range c.hours {
		if began >= start.Unix() {
			parts = append(parts, h)
		}
	}
	return count(start, parts...)
}

func count(start time.Time, parts ...*hour) Count {
	all := Count{Start: start}
	var took []time.Duration
	for _, h := range parts {
		if h == nil {
			continue
		}
		all.Messages += h.messages
		all.Turns += h.turns
		all.Failed += h.failed
		all.Answered += h.answered
		took = append(took, h.took...)
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		all.Median = took[(n-1)/2]
		all.Percentile95 = took[(n*95+99)/100-1]
	}
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
