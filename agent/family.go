package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/tools"
)

// A family is the helpers that have not ended. Nobody waits for the store while
// mu is held.
type family struct {
	reading sync.Mutex
	read    bool     // those of former lives are known
	damaged sync.Map // IDs of those whose records were found to be

	mu   sync.Mutex
	live map[string]*kid
	pure map[string]map[string]string // by turn under way and their work: IDs of those that looked and changed nothing (E-039)
}

// A kid is a helper that has not ended.
type kid struct {
	tools.Child
	since  time.Time // of this life
	rev    uint64
	news   chan struct{} // closed when its record changes
	taken  bool          // its task was out of the inbox in this life …
	again  bool          // … and if not, it was given again
	rounds int           // of its turn
}

// know reads the records of former lives, once.
func (p *Pool) know(ctx context.Context) error {
	f := &p.kin
	f.reading.Lock()
	defer f.reading.Unlock()
	if f.read {
		return nil
	}
	all, err := p.Children(ctx, "")
	for _, c := range all {
		if !c.State.Over() {
			f.put(c)
		}
	}
	f.read = err == nil
	return err
}

func (f *family) put(c tools.Child) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live[c.ID] = &kid{Child: c, since: time.Now(), news: make(chan struct{})}
}

// add takes in c, which is about to begin, unless there are too many.
func (f *family) add(c tools.Child) error {
	busy := len(f.all(func(k *kid) bool { return k.Tool == c.Tool && k.Parent == c.Parent }))
	if c.Most > 0 && busy >= c.Most { // the calls of a session come one by one
		return &tools.BusyError{Running: busy, Most: c.Most}
	}
	f.put(c)
	return nil
}

// drop forgets one that was not begun after all.
func (f *family) drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, id)
}

// note takes in the record of c as it is by now.
func (f *family) note(c tools.Child, rev uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.live[c.ID]
	if k == nil || rev <= k.rev {
		return
	}
	close(k.news)
	k.Child, k.rev, k.news = c, rev, make(chan struct{})
	if c.State.Over() {
		delete(f.live, c.ID)
	}
	if c.Pure && !c.Report { // of those that report nobody waits in the turn
		if f.pure[c.Turn] == nil {
			f.pure[c.Turn] = map[string]string{}
		}
		f.pure[c.Turn][work(c)] = c.ID
	}
}

// work says what c is to do, and in which turn.
func work(c tools.Child) string {
	return fmt.Sprintf("%q", []any{c.Turn, c.Tool, c.Agent, c.Instruction, c.Task, c.Only, c.Tainted})
}

// like returns the ID of one that did c's work, or "".
func (f *family) like(c tools.Child) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pure[c.Turn][work(c)]
}

// turnEnded forgets what was found out in a turn.
func (f *family) turnEnded(turn string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pure, turn)
}

// with shows do the helper id, unless it has ended, and says whether it has not.
func (f *family) with(id string, do func(*kid)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.live[id]
	if k != nil {
		do(k)
	}
	return k != nil
}

// all returns those that are wanted.
func (f *family) all(want func(*kid) bool) (all []kid) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.live {
		if want(k) {
			all = append(all, *k)
		}
	}
	return all
}

// of wants those that work for the session id.
func of(id chat.SessionID) func(*kid) bool {
	return func(k *kid) bool { return k.Parent == id }
}

// under counts those that are wanted, and those that work for them.
func (f *family) under(want func(*kid) bool) (n int) {
	for _, k := range f.all(want) {
		n += 1 + f.under(of(helperSession(k.ID)))
	}
	return n
}

// awaits says whether the session id waits for a helper of that kind, or for one
// that waits for one.
func (f *family) awaits(id chat.SessionID, kind func(*kid) bool) bool {
	return slices.ContainsFunc(f.all(of(id)), func(k kid) bool {
		return !k.Report && (kind(&k) || f.awaits(helperSession(k.ID), kind))
	})
}

// hearing returns the session that hears what is said in the session id: that
// of the helper that is waited for there, if it is to hear it (C-033).
func (f *family) hearing(id chat.SessionID) chat.SessionID {
	for {
		kids := f.all(func(k *kid) bool { return k.Hears && k.Parent == id })
		if len(kids) == 0 {
			return id
		}
		id = helperSession(kids[0].ID)
	}
}

// root returns the session that the one called id works for in the end, and if
// that is another, its turn.
func (f *family) root(id chat.SessionID) (root chat.SessionID, turn string) {
	for f.with(helperOf(id), func(k *kid) { id, turn = k.Parent, k.Turn }) {
	}
	return id, turn
}
