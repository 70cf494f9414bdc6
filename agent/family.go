package agent

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/tools"
)

// A family is the helpers that have not ended. Nobody waits for the store while
// it is held.
type family struct {
	mu   sync.Mutex
	read bool // what there was at the start is
	live map[string]*kid
	pure map[string]map[string]string // by the parent's turn, and what they were to do: the IDs of those that only looked (E-039)
}

// A kid is a helper that has not ended.
type kid struct {
	tools.Child
	rev    uint64
	news   chan struct{} // closed when its record changes
	taken  bool          // its task is out of the inbox, or was in this life
	rounds int           // of its turn
}

// know reads the records of former lives, once.
func (p *Pool) know(ctx context.Context) error {
	f := &p.kin
	f.mu.Lock()
	read := f.read
	f.mu.Unlock()
	if read {
		return nil
	}
	all, err := p.Children(ctx, "")
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range all {
		if !f.read && !c.State.Over() {
			f.live[c.ID] = &kid{Child: c, news: make(chan struct{})}
		}
	}
	f.read = true
	return nil
}

// add takes in c, which is about to begin, unless there are too many.
func (f *family) add(c tools.Child) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, k := range f.live {
		if k.Door == c.Door && k.Parent == c.Parent {
			n++
		}
	}
	if c.Most > 0 && n >= c.Most {
		return &tools.BusyError{Running: n, Most: c.Most}
	}
	f.live[c.ID] = &kid{Child: c, news: make(chan struct{})}
	return nil
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
	if c.Pure && c.State == tools.ChildAnswered {
		if f.pure[c.Turn] == nil {
			f.pure[c.Turn] = map[string]string{}
		}
		f.pure[c.Turn][work(c)] = c.ID
	}
}

// work says what c is to do.
func work(c tools.Child) string {
	return fmt.Sprintf("%q", []any{c.Door, c.Agent, c.Instruction, c.Task, c.Only, c.Tainted})
}

// like returns the ID of a helper that did c's work in the same turn, or "".
func (f *family) like(c tools.Child) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.pure[c.Turn][work(c)]
}

// drop forgets a helper that was not begun after all.
func (f *family) drop(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.live, id)
}

// get returns what is known of the helper id, if it has not ended.
func (f *family) get(id string) (kid, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k := f.live[id]; k != nil {
		return *k, true
	}
	return kid{}, false
}

// with has do change what is known of the helper id, if it has not ended, and says whether it has not.
func (f *family) with(id string, do func(*kid)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	k := f.live[id]
	if k != nil {
		do(k)
	}
	return k != nil
}

// under returns those that work for the session id, as far as they are wanted,
// and those that work for them.
func (f *family) under(id chat.SessionID, want func(tools.Child) bool) (all []kid) {
	f.mu.Lock()
	defer f.mu.Unlock()
	parents := map[chat.SessionID]bool{}
	for found := true; found; { // there are few, and they are not deep
		found = false
		for _, k := range f.live {
			self := helperSession(k.ID)
			if !parents[self] && (parents[k.Parent] || k.Parent == id && want(k.Child)) {
				parents[self], found, all = true, true, append(all, *k)
			}
		}
	}
	return all
}

// all returns those that are wanted.
func (f *family) all(want func(tools.Child) bool) (all []kid) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.live {
		if want(k.Child) {
			all = append(all, *k)
		}
	}
	return all
}

// hearing returns the session that hears what is said in the session id: that
// of the helper which the one there waits for, if it is to hear it (C-033).
func (f *family) hearing(id chat.SessionID) chat.SessionID {
	for {
		kids := f.all(func(c tools.Child) bool { return c.Hears && c.Parent == id })
		if len(kids) == 0 {
			return id
		}
		id = helperSession(kids[0].ID)
	}
}

// root returns the session that the one called id works for in the end.
func (f *family) root(id chat.SessionID) chat.SessionID {
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		self, helps := strings.CutPrefix(string(id), helperPrefix)
		if !helps || f.live[self] == nil {
			return id
		}
		id = f.live[self].Parent
	}
}

// forget forgets what was looked at for a turn that is over.
func (f *family) forget(turn string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.pure, turn)
}

const (
	lostAfter = time.Minute        // a task that nobody has seen by then is lost
	keepFor   = 7 * 24 * time.Hour // what is known of helpers that have ended
)
