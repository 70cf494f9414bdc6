package subagents

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/tools"
)

// A Roster is the subagents at work, as far as their records were loaded.
type Roster struct {
	mu       sync.Mutex // never held while the store is read or written
	entries  map[string]*entry
	findings map[assignment]string // IDs of those that did it with read-only tools alone (E-039)
}

// An entry is what this process knows of a subagent at work.
type entry struct {
	record   tools.Subagent
	revision uint64
	changed  chan struct{} // closed when the record changes
	rounds   int           // of its turn so far

	taken      bool      // its session has taken the task from the inbox
	deliveries int       // how often the task was put there; 1 for a subagent of an earlier process
	due        time.Time // when the task is to be put there, again if it was before
}

// with has do see the entry of a subagent, and reports whether there is one.
func (r *Roster) with(id string, do func(*entry)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := r.entries[id]
	if e != nil {
		do(e)
	}
	return e != nil
}

// taskStatus reports whether the task of a subagent is overdue, and how often it
// was delivered.
func (r *Roster) taskStatus(id string) (overdue bool, deliveries int) {
	r.with(id, func(e *entry) {
		overdue = !e.taken && !time.Now().Before(e.due)
		deliveries = e.deliveries
	})
	return overdue, deliveries
}

// add takes in c, which is at work. A task that was never delivered is due at once.
func (r *Roster) add(c tools.Subagent, deliveries int) {
	e := &entry{record: c, changed: make(chan struct{}), deliveries: deliveries, due: time.Now()}
	if deliveries > 0 {
		e.due = e.due.Add(taskTimeout)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.entries[c.ID] = e
}

// Adopt takes a subagent without a record for one at work. Its turn is run again
// and has all that it needs.
func (r *Roster) Adopt(id string) { r.add(tools.Subagent{ID: id}, 1) }

// remove drops a subagent that was not begun after all.
func (r *Roster) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.entries, id)
}

// note takes over the record c at that revision, unless a later one is known.
func (r *Roster) note(c tools.Subagent, revision uint64) {
	r.with(c.ID, func(e *entry) {
		if revision <= e.revision {
			return
		}
		close(e.changed)
		e.changed = make(chan struct{})
		e.record, e.revision = c, revision
		if c.State.Over() {
			delete(r.entries, c.ID)
		}
		if c.Pure && !c.Report { // nobody in the turn waits for one that reports
			r.findings[assignmentOf(c)] = c.ID
		}
	})
}

// An assignment is what a subagent is to do in a turn, and with what.
type assignment struct{ turn, work string }

func assignmentOf(c tools.Subagent) assignment {
	work := []any{c.Tool, c.Agent, c.Instruction, c.Task, c.Only, c.Tainted}
	return assignment{c.Turn, fmt.Sprintf("%q", work)}
}

// finding returns the ID of a subagent that found out what c is to, or "".
func (r *Roster) finding(c tools.Subagent) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.findings[assignmentOf(c)]
}

// EndTurn forgets what subagents found out for a turn that has ended.
func (r *Roster) EndTurn(turn string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.findings, func(a assignment, _ string) bool { return a.turn == turn })
}

// Watch returns the record of a subagent at work, and a channel that is closed
// when the record changes. The channel is nil if the subagent is not at work.
func (r *Roster) Watch(id string) (c tools.Subagent, changed <-chan struct{}) {
	r.with(id, func(e *entry) { c, changed = e.record, e.changed })
	return c, changed
}

// NoteRounds notes how many rounds the turn of a subagent has had.
func (r *Roster) NoteRounds(id string, rounds int) {
	r.with(id, func(e *entry) { e.rounds = rounds })
}

// Rounds returns how many rounds the turn of a subagent at work has had.
func (r *Roster) Rounds(id string) (rounds int) {
	r.with(id, func(e *entry) { rounds = e.rounds })
	return rounds
}

// matching returns those at work that match.
func (r *Roster) matching(match func(tools.Subagent) bool) (all []tools.Subagent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.entries {
		if match(e.record) {
			all = append(all, e.record)
		}
	}
	return all
}

// WorksFor matches the subagents of a session.
func WorksFor(session chat.SessionID) func(tools.Subagent) bool {
	return func(c tools.Subagent) bool { return c.Parent == session }
}

// VisibleTo matches the subagents that the sender of m may know of: those that
// work for the same person, and all if m is an owner's in private.
func VisibleTo(m chat.Message) func(tools.Subagent) bool {
	who := chat.Whose(m.At, m.From, m.Group)
	all := m.From.Role == chat.Owner && !m.Group
	return func(c tools.Subagent) bool { return all || chat.Whose(c.At, c.From, c.Group) == who }
}

// countTree returns how many match, together with those that work for them.
func (r *Roster) countTree(match func(tools.Subagent) bool) (n int) {
	for _, c := range r.matching(match) {
		n += 1 + r.countTree(WorksFor(SessionOf(c.ID)))
	}
	return n
}

// IsCurrent reports whether somebody still counts on c: it is paused, or it
// began or was resumed no longer than maxAge ago.
func IsCurrent(c tools.Subagent, maxAge time.Duration) bool {
	return c.State == tools.SubagentPaused || time.Since(c.Woken) <= maxAge
}

// Awaits reports whether a session waits for a subagent that is current, or for
// one that waits for such a subagent in turn.
func (r *Roster) Awaits(session chat.SessionID, maxAge time.Duration) bool {
	return slices.ContainsFunc(r.matching(WorksFor(session)), func(c tools.Subagent) bool {
		return !c.Report && (IsCurrent(c, maxAge) || r.Awaits(SessionOf(c.ID), maxAge))
	})
}

// Root returns the session that the one called session works for in the end,
// and that session's turn. turn is "" if session works for no other.
func (r *Roster) Root(session chat.SessionID) (root chat.SessionID, turn string) {
	for {
		c, changed := r.Watch(IDOf(session))
		if changed == nil {
			return session, turn
		}
		session, turn = c.Parent, c.Turn
	}
}
