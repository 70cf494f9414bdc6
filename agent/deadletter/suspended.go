package deadletter

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// HealthyTime is how long a process must be up before it tries again what former
// processes died over (P8).
const HealthyTime = 5 * time.Minute

// The time between two attempts to reach a model that nobody else asks.
const (
	minModelRetry = time.Minute
	maxModelRetry = 10 * time.Minute
)

// maxWaitingForModels bounds how many messages are suspended until a model is back.
const maxWaitingForModels = 1000

// A Suspension is why a message stays in the inbox and is not answered for now.
// Its turn is suspended in the session's log, and resumes where it was.
type Suspension struct {
	Key   string    `json:"key"` // of the message
	Since time.Time `json:"since"`
	Tried bool      `json:"tried,omitempty"` // of a message that the process died over: its last try has begun
	Model string    `json:"model,omitempty"` // the message waits for that model to come back
}

// Suspended are the messages that are not answered for now.
type Suspended struct {
	table   store.Table[Suspension]
	changed chan struct{} // wakes Run

	mu    sync.Mutex
	byKey map[string]*message
}

// A message is suspended in this process.
type message struct {
	Suspension
	item      *store.Item // nil until it was taken from the inbox
	released  bool        // it is to be answered now …
	dismissed bool        // … or to become a dead letter
	due       time.Time   // of one that waits for a model: when to try again
	wait      time.Duration
}

// A Resumed message was suspended, and is tried again.
type Resumed struct {
	Suspension
	Dismissed bool // it is to become a dead letter instead
}

// NewSuspended returns the suspended messages that are kept in bucket. Load reads
// those of former processes.
func NewSuspended(bucket store.Bucket, log *slog.Logger) *Suspended {
	table := store.NewTable(bucket, store.Forget[Suspension](log, "suspended message"))
	return &Suspended{table: table, changed: make(chan struct{}, 1), byKey: map[string]*message{}}
}

// Load reads what former processes suspended. What another version of Parley
// left behind is removed.
func (s *Suspended) Load(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.table.Retain(ctx, func(key string, is Suspension) bool {
		if key == suspicionKey {
			return true
		}
		if is.Key != key {
			return false
		}
		due := time.Now().Add(minModelRetry)
		s.byKey[key] = &message{Suspension: is, released: is.Tried, due: due, wait: minModelRetry}
		return true
	})
}

// Add suspends the message that item holds.
func (s *Suspended) Add(ctx context.Context, why Suspension, item store.Item) error {
	if err := s.table.Set(ctx, why.Key, why); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := minModelRetry
	if before := s.byKey[why.Key]; before != nil && before.Model != "" {
		wait = min(2*before.wait, maxModelRetry)
	}
	s.byKey[why.Key] = &message{Suspension: why, item: &item, wait: wait, due: time.Now().Add(wait)}
	select {
	case s.changed <- struct{}{}:
	default:
	}
	return nil
}

// NoteLastTry notes that the last try of a message begins over which the process died.
func (s *Suspended) NoteLastTry(ctx context.Context, m *Resumed) error {
	tried := m.Suspension
	tried.Tried = true
	return s.table.Set(ctx, tried.Key, tried)
}

// Remove forgets the message key, which is answered or a dead letter.
func (s *Suspended) Remove(ctx context.Context, key string) error {
	s.mu.Lock()
	known := s.byKey[key] != nil
	delete(s.byKey, key)
	s.mu.Unlock()
	if !known {
		return nil
	}
	return s.table.Delete(ctx, key)
}

// Retain reports whether item, which holds the message key, stays suspended. If
// it does not but was, Retain returns why that was.
func (s *Suspended) Retain(key string, item store.Item) (was *Resumed, stays bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.byKey[key]
	switch {
	case m == nil:
		return nil, false
	case !m.released:
		m.item = &item
		return nil, true
	}
	return &Resumed{Suspension: m.Suspension, Dismissed: m.dismissed}, false
}

// ModelIsBack resumes the messages that wait for the model called name.
func (s *Suspended) ModelIsBack(name string) {
	s.release(false, func(m message) bool { return m.Model == name })
}

// HasRoom reports whether one more message may wait for a model.
func (s *Suspended) HasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byKey) < maxWaitingForModels
}

// release resumes the messages that which selects, and returns how many they are.
func (s *Suspended) release(dismiss bool, which func(message) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.inOrder() {
		if m.released || !which(*m) {
			continue
		}
		n++
		m.released = true
		m.dismissed = dismiss
		m.giveBack()
	}
	return n
}

// giveBack returns the message to the inbox.
func (m *message) giveBack() {
	if m.item != nil {
		m.item.Later(0)
		m.item = nil
	}
}

// all returns the suspended messages, the oldest first.
func (s *Suspended) all() (all []message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.inOrder() {
		all = append(all, *m)
	}
	return all
}

// inOrder returns the suspended messages, the oldest first, which is the order in which they are to be answered.
// s.mu is held.
func (s *Suspended) inOrder() []*message {
	return slices.SortedFunc(maps.Values(s.byKey), func(a, b *message) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Key, b.Key))
	})
}

// Run resumes the messages that are due, in a process that started at started.
// When ctx ends it leaves them to the next process.
func (s *Suspended) Run(ctx context.Context, started time.Time) {
	for {
		select {
		case <-s.changed:
		case <-time.After(s.resumeDue(started.Add(HealthyTime))):
		case <-ctx.Done():
			s.giveBackAll()
			return
		}
	}
}

// resumeDue resumes the messages that are due, and returns when to look again.
// healthy is when those are due that a process died over.
func (s *Suspended) resumeDue(healthy time.Time) (wait time.Duration) {
	now := time.Now()
	due := func(m message) time.Time {
		if m.Model == "" {
			return healthy
		}
		return m.due
	}
	s.release(false, func(m message) bool { return !now.Before(due(m)) })
	wait = time.Hour
	for _, m := range s.all() {
		if !m.released {
			wait = min(wait, due(m).Sub(now))
		}
	}
	return wait
}

func (s *Suspended) giveBackAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.inOrder() {
		m.giveBack()
	}
}
