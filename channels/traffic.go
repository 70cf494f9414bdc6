package channels

import (
	"sync"
	"time"
)

// A traffic is which chats have replies on their way.
type traffic struct {
	mu      sync.Mutex
	due     map[string]map[string]time.Time // lane, reply id: zero, or when a push that came to nothing is forgotten
	resting map[string]time.Time            // lane: when it tries again
	behind  int                             // replies of before the start not pulled yet
	started time.Time
}

const (
	pushTime = 2 * time.Second // the most that a reply takes from push to pull
	loadTime = 5 * time.Second // and those of before the start together
	soon     = 3 * time.Second // a retry that Drain waits for
)

func (t *traffic) begin(behind int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind, t.started = behind, time.Now()
}

func (t *traffic) pushed(chat, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.due[chat][id]; !known {
		t.set(chat, id, time.Now().Add(pushTime))
	}
}

func (t *traffic) pulled(chat, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.behind--
	t.set(chat, id, time.Time{})
}

func (t *traffic) set(chat, id string, until time.Time) {
	if t.due[chat] == nil {
		t.due[chat] = map[string]time.Time{}
	}
	t.due[chat][id] = until
}

func (t *traffic) gone(chat, id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(chat, id)
}

func (t *traffic) drop(chat, id string) {
	delete(t.due[chat], id)
	if len(t.due[chat]) == 0 {
		delete(t.due, chat)
	}
}

// rest notes that chat tries again after d; 0 is now.
func (t *traffic) rest(chat string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.resting, chat)
	if d > soon {
		t.resting[chat] = time.Now().Add(d)
	}
}

// busy says whether a reply to chat is on its way.
func (t *traffic) busy(chat string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, until := range t.due[chat] {
		if !until.IsZero() && time.Now().After(until) {
			t.drop(chat, id) // it had been sent before
		}
	}
	loading := t.started.IsZero() || t.behind > 0 && time.Since(t.started) < loadTime
	return loading || len(t.due[chat]) > 0
}

// stalled counts the replies that wait for a chat which does not take them.
func (t *traffic) stalled() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for chat, until := range t.resting {
		if time.Until(until) < soon {
			continue
		}
		for _, pushed := range t.due[chat] {
			if pushed.IsZero() {
				n++
			}
		}
	}
	return n
}
