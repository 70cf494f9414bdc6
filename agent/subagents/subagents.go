// Package subagents supervises the agents that work for another agent: which of
// them there are, for whom they work, and what is to be done next for each.
//
// A subagent is a record in the store and a session of its own. Its task is a
// message in the inbox, and its turn is a turn like any other; this package
// knows neither. It decides by the record what comes next (see reconcile): to
// deliver the task, to report the result to the parent, to end what was lost in
// a crash, or to forget what ended long ago. That decision is taken when a record
// changes, at the start, and from time to time. Each step may be repeated without
// harm, so it does not matter where a crash interrupted one.
package subagents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// Config is what a [Supervisor] is made of, and what it needs of the agent.
type Config struct {
	Bucket store.Bucket // of the records
	Log    *slog.Logger

	// Admit fills in what c inherits from the turn that begins it, and counts it
	// against the limits (R-S15). An error says that it may not begin.
	Admit func(ctx context.Context, c *tools.Subagent) error
	// Deliver puts m into the inbox, unless its key was delivered before.
	Deliver func(ctx context.Context, m chat.Message) error
	// Stop ends the turn under way in session, if there is one. If parent was
	// stopped by a person, that holds for this turn, too.
	Stop func(session, parent chat.SessionID)
	// Forget calls first and then removes session, while no turn is at work in it.
	Forget func(ctx context.Context, session chat.SessionID, first func() error) error
	// Retry does what must be done until it is done or ctx ends.
	Retry func(ctx context.Context, what string, do func(context.Context) error) error
}

// A Supervisor keeps the records of all subagents.
type Supervisor struct {
	cfg    Config
	table  store.Table[tools.Subagent]
	roster Roster

	loading sync.Mutex
	loaded  bool // the roster includes the subagents of earlier processes

	damaged sync.Map // IDs of records that were logged as damaged
}

// New returns a Supervisor of the subagents recorded in c.Bucket.
func New(c Config) *Supervisor {
	s := &Supervisor{cfg: c, roster: Roster{entries: map[string]*entry{}, findings: map[assignment]string{}}}
	s.table = store.NewTable(c.Bucket, s.restore)
	return s
}

// Roster returns the subagents at work.
func (s *Supervisor) Roster() *Roster { return &s.roster }

// sessionPrefix begins the names of the sessions of subagents.
const sessionPrefix = "agent:"

// SessionOf returns the session of the subagent id.
func SessionOf(id string) chat.SessionID { return chat.SessionID(sessionPrefix + id) }

// IDOf returns the ID of the subagent whose session it is, or "".
func IDOf(session chat.SessionID) string {
	id, ok := strings.CutPrefix(string(session), sessionPrefix)
	if !ok {
		return ""
	}
	return id
}

// Load reads the records of earlier processes, once. Until then the roster
// does not include their subagents.
func (s *Supervisor) Load(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.loaded {
		return nil
	}
	all, err := s.List(ctx, "")
	if err != nil {
		return err
	}
	for _, c := range all {
		if !c.State.Over() {
			s.roster.add(c, 1)
		}
	}
	s.loaded = true
	return nil
}

// Spawn begins the subagent c. The same Call finds the same subagent again,
// whether it has ended or not; and so does the same assignment in one turn, if
// the subagent that had it used read-only tools alone (E-039). If none was begun
// the error is a *[tools.BusyError] or that of a limit.
func (s *Supervisor) Spawn(ctx context.Context, c tools.Subagent) (tools.Subagent, error) {
	known, err := s.existing(ctx, c)
	if err != nil || known.ID != "" {
		return known, err
	}
	c.Began = time.Now()
	c.Woken, c.Said = c.Began, c.Began
	c.Only = append([]string{}, c.Only...) // nil would permit all tools
	if err := s.checkBusy(c); err != nil {
		return c, err
	}
	if err := s.cfg.Admit(ctx, &c); err != nil {
		return c, err
	}
	if err := s.begin(ctx, c); err != nil {
		s.roster.remove(c.ID)
		_ = s.table.Delete(context.WithoutCancel(ctx), c.ID) // a record that is left has no task, and ends as lost
		return c, err
	}
	return c, nil
}

// begin records c and delivers its task, unless ctx has ended meanwhile: whoever
// stopped the turn before c was in the roster has not stopped c.
func (s *Supervisor) begin(ctx context.Context, c tools.Subagent) error {
	whole := context.WithoutCancel(ctx) // no write is cut off in the middle
	record := func(context.Context) error { return s.table.Set(whole, c.ID, c) }
	if err := s.cfg.Retry(ctx, "record subagent "+c.ID, record); err != nil {
		return err
	}
	s.roster.add(c, 0)
	if err := ctx.Err(); err != nil {
		return err
	}
	deliver := func(context.Context) error { return s.reconcile(whole, c) }
	return s.cfg.Retry(ctx, "deliver the task of subagent "+c.ID, deliver)
}

// existing returns the subagent that has c's assignment already, or the zero Subagent.
func (s *Supervisor) existing(ctx context.Context, c tools.Subagent) (known tools.Subagent, err error) {
	if err := s.Load(ctx); err != nil {
		return known, err
	}
	known, _, err = s.table.Get(ctx, c.ID)
	if err == nil && known.Call != c.Call {
		return known, fmt.Errorf("begin subagent: its ID %s belongs to another call", c.ID)
	}
	if earlier := s.roster.finding(c); errors.Is(err, store.ErrNotFound) && earlier != "" && !c.Report {
		known, _, err = s.table.Get(ctx, earlier)
	}
	return known, ignoreNotFound(err)
}

// checkBusy returns a BusyError if c's parent has as many subagents of that tool
// as it may. The calls of one session are made one after the other, so none is
// added between this check and that to the roster.
func (s *Supervisor) checkBusy(c tools.Subagent) error {
	peers := s.roster.matching(func(other tools.Subagent) bool {
		return other.Tool == c.Tool && other.Parent == c.Parent
	})
	if c.Most > 0 && len(peers) >= c.Most {
		return &tools.BusyError{Running: len(peers), Most: c.Most}
	}
	return nil
}

// Await returns the subagent id once it has ended. The error is store.ErrNotFound
// if there is no such subagent.
func (s *Supervisor) Await(ctx context.Context, id string) (tools.Subagent, error) {
	if err := s.Load(ctx); err != nil {
		return tools.Subagent{}, err
	}
	for {
		_, changed := s.roster.Watch(id)
		if changed == nil {
			c, _, err := s.table.Get(ctx, id)
			return c, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return tools.Subagent{}, context.Cause(ctx)
		}
	}
}

// List returns the subagents of a session, or all for "", including those that
// ended within the last week.
func (s *Supervisor) List(ctx context.Context, parent chat.SessionID) (all []tools.Subagent, err error) {
	for e, err := range s.table.Each(ctx, "") {
		switch {
		case errors.Is(err, store.ErrDamaged):
			if _, known := s.damaged.LoadOrStore(e.Key, true); !known { // P21
				s.cfg.Log.Error("the record of a subagent is damaged", "subagent", e.Key, "err", err)
			}
		case err != nil:
			return nil, fmt.Errorf("list subagents: %w", err)
		case parent == "" || e.Value.Parent == parent:
			all = append(all, e.Value)
		}
	}
	return all, nil
}

// Has reports whether the session is that of a subagent with a record, with which it is
// removed. If that is not known, it may be.
func (s *Supervisor) Has(ctx context.Context, session chat.SessionID) bool {
	id := IDOf(session)
	if id == "" {
		return false
	}
	_, _, err := s.table.Get(ctx, id)
	return !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged)
}

// Working returns those at work that match, the oldest first.
func (s *Supervisor) Working(ctx context.Context, match func(tools.Subagent) bool) ([]tools.Subagent, error) {
	if err := s.Load(ctx); err != nil {
		return nil, err
	}
	all := s.roster.matching(match)
	slices.SortFunc(all, func(a, b tools.Subagent) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Count returns how many at work match, together with those that work for them.
func (s *Supervisor) Count(ctx context.Context, match func(tools.Subagent) bool) (int, error) {
	err := s.Load(ctx)
	return s.roster.countTree(match), err
}

// Listener returns the session that takes in what a person says in the one
// called session: a subagent's that is waited for there and that listens, or
// session itself (C-033).
func (s *Supervisor) Listener(ctx context.Context, session chat.SessionID) (chat.SessionID, error) {
	err := s.Load(ctx)
	for {
		listeners := s.roster.matching(func(c tools.Subagent) bool { return c.Hears && c.Parent == session })
		if len(listeners) == 0 {
			return session, err
		}
		session = SessionOf(listeners[0].ID)
	}
}

// Resting reports whether nobody works for session, and no report of one that
// ended a moment ago is on its way.
func (s *Supervisor) Resting(ctx context.Context, session chat.SessionID) (bool, error) {
	all, err := s.List(ctx, session)
	busy := slices.ContainsFunc(all, func(c tools.Subagent) bool {
		return !c.State.Over() || c.Report || time.Since(c.Ended) < taskTimeout
	})
	return !busy && err == nil, err
}

// restore replaces the damaged record of a subagent at work by what is known of
// it in memory (P21).
func (s *Supervisor) restore(id string, err error) (tools.Subagent, error) {
	if c, changed := s.roster.Watch(id); changed != nil {
		return c, nil
	}
	return tools.Subagent{}, err
}

// update has change alter the record of a subagent, and returns it. change
// reports whether there is anything to write. An unknown subagent is no error.
func (s *Supervisor) update(ctx context.Context, id string, change func(*tools.Subagent) bool) (tools.Subagent, error) {
	c, revision, err := s.table.Update(ctx, id, func(c *tools.Subagent) error {
		if !change(c) {
			return store.ErrUnchanged
		}
		return nil
	})
	if err != nil {
		return c, ignoreNotFound(err)
	}
	s.roster.note(c, revision)
	return c, nil
}

func ignoreNotFound(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
