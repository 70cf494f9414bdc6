// Package activity tells what is under way in sessions, and keeps it to one
// activity at a time in each.
package activity

import (
	"context"
	"errors"
	"sync"
	"time"

	"parley/chat"
)

// Why an activity was ended before its time.
var (
	ErrStopped   = errors.New("stopped by the person")
	ErrForgotten = errors.New("the conversation is to be forgotten")
	ErrBusy      = errors.New("somebody speaks")
)

// An Activity is what is under way in a session: a turn, a command, a digest. What
// others may know of it is guarded by the mutex of its Set.
type Activity struct {
	Since     time.Time
	Doing     string                  // for /status
	Stop      context.CancelCauseFunc // ends it
	Said      time.Time               // when the first message was said that it answers; zero if nobody can stop it
	At        chat.Address            // where its answer goes
	From      chat.Sender             // whom it answers
	Options   *chat.RunOptions        // those of its first message
	asked     time.Time               // when the person wrote /stop
	askedBy   string                  // ID of that message; "" for a subagent
	subagents int                     // that were stopped with it
	left      chan struct{}           // closed when it is over
}

// New returns an activity that nobody can end.
func New(doing string) *Activity {
	return &Activity{Since: time.Now(), Doing: doing, Stop: func(error) {}}
}

// A Set is what is under way in all sessions, at most one activity in each.
type Set struct {
	mu        sync.Mutex
	bySession map[chat.SessionID]*Activity
}

// NewSet returns a Set of no activities.
func NewSet() *Set { return &Set{bySession: map[chat.SessionID]*Activity{}} }

// Enter makes a what is under way in the session id, once nothing else is. Unless
// why is nil, whatever is under way there is ended for that reason.
func (s *Set) Enter(ctx context.Context, id chat.SessionID, a *Activity, why error) error {
	a.left = make(chan struct{})
	for {
		other := s.replace(id, a, why)
		if other == nil {
			return nil
		}
		select {
		case <-other.left:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// replace makes a what is under way in the session id if nothing is, and returns
// what is.
func (s *Set) replace(id chat.SessionID, a *Activity, why error) (other *Activity) {
	s.mu.Lock()
	defer s.mu.Unlock()
	other = s.bySession[id]
	if other == nil {
		s.bySession[id] = a
	} else if why != nil {
		other.Stop(why)
	}
	return other
}

// Leave ends what is under way in the session id.
func (s *Set) Leave(id chat.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.bySession[id].left)
	delete(s.bySession, id)
}

// Get returns what is known of the activity in the session id.
func (s *Set) Get(id chat.SessionID) (a Activity, found bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bySession[id] == nil {
		return Activity{}, false
	}
	return *s.bySession[id], true
}

// All returns what is known of all activities.
func (s *Set) All() map[chat.SessionID]Activity {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make(map[chat.SessionID]Activity, len(s.bySession))
	for id, a := range s.bySession {
		all[id] = *a
	}
	return all
}

// SetDoing notes what a is doing now.
func (s *Set) SetDoing(a *Activity, what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Doing = what
}

// Close makes the activity in the session id one that nobody can stop any more.
func (s *Set) Close(id chat.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.bySession[id]; a != nil {
		a.Said = time.Time{}
	}
}

// Interrupt ends the turns that which selects, as m asks, which stops so many
// subagents, too. A turn about what was said after m goes on: m was delivered again.
func (s *Set) Interrupt(
	m chat.Message, subagents int, which func(chat.SessionID, *Activity) bool,
) (interrupted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, a := range s.bySession {
		if which(id, a) && !a.Said.IsZero() && !a.Said.After(m.Time) {
			a.asked = m.Time
			a.askedBy = m.ID
			a.subagents = subagents
			interrupted = true
			a.Stop(ErrStopped)
		}
	}
	return interrupted
}

// InterruptSubagent ends the turn of a subagent in session. If that of its parent
// was stopped by a person, what was said before then is not answered here either.
func (s *Set) InterruptSubagent(session, parent chat.SessionID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.bySession[session]
	if a == nil {
		return
	}
	if above := s.bySession[parent]; above != nil {
		a.asked = above.asked
	}
	a.Stop(ErrStopped)
}

// Interruption returns when a person asked to stop a, by the message of which ID, and
// how many subagents were stopped with it.
func (s *Set) Interruption(a *Activity) (asked time.Time, by string, subagents int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.asked, a.askedBy, a.subagents
}

// Count returns how many Set there are, and for how long the oldest of the
// messages waits that they answer; 0 if they answer none.
func (s *Set) Count() (n int, oldest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.bySession {
		if !a.Said.IsZero() {
			oldest = max(oldest, time.Since(a.Said))
		}
	}
	return len(s.bySession), oldest
}
