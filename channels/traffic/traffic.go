// Package traffic counts the replies that are on their way.
package traffic

import (
	"sync"
	"time"
)

// shortWait is how long a retry may be away without counting as stalled.
const shortWait = 3 * time.Second

// A Counter counts the replies on their way, by destination: a chat, or a thread of
// one. Only destinations that have some are in it.
type Counter struct {
	mu           sync.Mutex
	destinations map[string]*load
}

// A load is the replies of one destination.
type load struct {
	pushed []time.Time // when each of them entered the outbox
	next   time.Time   // when the first of them is tried again, if that is known
}

// New returns a Counter of nothing.
func New() *Counter { return &Counter{destinations: map[string]*load{}} }

// Add counts a reply to destination that entered the outbox at that time.
func (t *Counter) Add(destination string, pushed time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.destinations[destination] == nil {
		t.destinations[destination] = &load{}
	}
	l := t.destinations[destination]
	l.pushed = append(l.pushed, pushed)
}

// Remove ends the count of the first reply to destination.
func (t *Counter) Remove(destination string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.destinations[destination]; len(l.pushed) > 1 {
		l.pushed = l.pushed[1:]
		l.next = time.Time{}
	} else {
		delete(t.destinations, destination)
	}
}

// RetryIn notes that destination, which has replies, is tried again after d.
func (t *Counter) RetryIn(destination string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.destinations[destination].next = time.Now().Add(d)
}

// IsBusy reports whether destination has replies on their way.
func (t *Counter) IsBusy(destination string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.destinations[destination] != nil
}

// Stalled returns the number of replies that wait for a network which does not
// accept them.
func (t *Counter) Stalled() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.destinations {
		if time.Until(l.next) >= shortWait {
			n += len(l.pushed)
		}
	}
	return n
}

// Oldest returns for how long the first of all replies has been on its way.
func (t *Counter) Oldest() (age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.destinations {
		age = max(age, time.Since(l.pushed[0]))
	}
	return age
}
