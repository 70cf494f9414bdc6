package channels

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// A Status is how one channel does.
type Status struct {
	Channel string
	Err     error         // why it does not receive; nil when it does
	Pending int           // replies in its outbox
	Oldest  time.Duration // age of the first of them; 0 while Work does not run
	Dropped int64         // messages of strangers since the start (R-S10)
}

// Status returns the Status of every channel, by name.
func (h *Hub) Status(ctx context.Context) ([]Status, error) {
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(h.lines)) {
		l := h.lines[name]
		n, err := l.queue.Len(ctx)
		if err != nil {
			return nil, fmt.Errorf("outbox of %s: %w", name, err)
		}
		all = append(all, Status{Channel: name, Err: l.health(), Pending: n, Oldest: l.traffic.oldest(), Dropped: l.dropped.Load()})
	}
	return all, nil
}

// A fault is why a channel does not receive: nil when it does.
type fault struct{ err atomic.Pointer[error] }

func (f *fault) set(err error) { f.err.Store(&err) }

func (f *fault) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// health returns why nothing is received at present, or nil.
func (l *line) health() error {
	err := l.fault.get()
	if p, ok := l.Channel.(HealthReporter); ok && err == nil {
		return p.Health()
	}
	return err
}

// A traffic is which lanes have replies on their way. A lane is present while
// it has some.
type traffic struct {
	mu    sync.Mutex
	lanes map[string]*load
}

// A load is the replies of one lane.
type load struct {
	pushed []time.Time // when each of them was handed over
	next   time.Time   // when the network takes the first of them, if that is known
}

const soon = 3 * time.Second // a retry that Drain waits for

func (t *traffic) pulled(lane string, pushed time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lanes[lane] == nil {
		t.lanes[lane] = &load{}
	}
	l := t.lanes[lane]
	l.pushed = append(l.pushed, pushed)
}

func (t *traffic) gone(lane string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l := t.lanes[lane]; len(l.pushed) > 1 {
		l.pushed = l.pushed[1:]
		l.next = time.Time{}
	} else {
		delete(t.lanes, lane)
	}
}

// rest notes that lane, which has replies, tries again after d.
func (t *traffic) rest(lane string, d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lanes[lane].next = time.Now().Add(d)
}

// busy says whether lane has replies on their way. One that is in the outbox
// is, long before a view that was opened after it shows anything (showAfter).
func (t *traffic) busy(lane string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes[lane] != nil
}

// stalled counts the replies that wait for a network which does not take them.
func (t *traffic) stalled() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lanes {
		if time.Until(l.next) >= soon {
			n += len(l.pushed)
		}
	}
	return n
}

// oldest returns how long the first of all replies has been on its way.
func (t *traffic) oldest() (age time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, l := range t.lanes {
		age = max(age, time.Since(l.pushed[0]))
	}
	return age
}
