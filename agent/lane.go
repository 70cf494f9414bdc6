package agent

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"parley/agent/conversation"
	"parley/chat"
	"parley/store"
)

// A job is a message and the work item that brought it.
type job struct {
	chat.Message
	item    store.Item
	command string // that it is, or ""
	held    *held  // it was put aside, and is tried again; nil: it was not
	begun   bool   // a turn of this process has broken off over it
}

// apart says whether j has a turn of its own: nothing joins what no person
// wrote, or what was put aside, and that joins nothing.
func (j job) apart() bool { return j.command != "" || j.Origin != chat.FromPerson || j.held != nil }

// last says whether j was put aside because the process died over it, and is
// tried for the last time.
func (j job) last() bool { return j.held != nil && j.held.Model == "" }

// A lane is the goroutine of one session, which exists only while there is
// something to answer (P5).
type lane struct {
	*Pool
	id   chat.SessionID
	soft context.Context // when it ends no turn begins
	hard context.Context // when it ends turns end
	pull func() []store.Item

	waiting []job  // in the order they came
	joined  []job  // what joined the turn under way
	solo    bool   // nothing joins it
	begun   func() // ends the time in which the process may be dying over the turn
	places  []*semaphore.Weighted
}

// serve answers what has come in. What it cannot do yet it tries again, so that
// the order is kept; at the end of the house it leaves that in the inbox.
func (l *lane) serve() {
	for l.gather(); len(l.waiting) > 0; l.gather() {
		if err := l.next(); err != nil && !l.patient(err) {
			for _, j := range l.waiting {
				j.item.Later(0)
			}
			return
		}
	}
}

// patient waits before what failed with err is tried again. It returns false at
// the end of the house.
func (l *lane) patient(err error) bool {
	if l.soft.Err() == nil {
		l.Log.Error("turn broken off, trying again later", "session", l.id, "err", err, "in", again)
	}
	select {
	case <-l.soft.Done():
		return false
	case <-time.After(again):
		return true
	}
}

// next takes care of the first of those that wait, and of what can be answered
// with it: of nothing else, if the process may have crashed over it.
func (l *lane) next() error {
	jobs := l.batch()
	if over, err := l.late(jobs); over || err != nil {
		if err != nil {
			l.waiting = append(jobs, l.waiting...)
		}
		return err
	}
	deaths, _ := l.guard.blame(jobs[0].Key())
	if l.solo = deaths > 0 || jobs[0].last() || jobs[0].item.Again && l.guard.isCareful(); l.solo {
		l.waiting = append(jobs[1:], l.waiting...)
		jobs = jobs[:1:1]
	}
	l.joined = nil
	err := l.safely(jobs)
	if err != nil {
		broken := append(jobs, l.joined...)
		for i := range broken {
			broken[i].begun = true
		}
		l.waiting = append(broken, l.waiting...)
	}
	return err
}

// hold waits for a place of s, which is the lane's until it rests.
func (l *lane) hold(ctx context.Context, s *semaphore.Weighted) error {
	err := s.Acquire(ctx, 1)
	if err == nil {
		l.places = append(l.places, s)
	}
	return err
}

// rest leaves the lane's places to others, and ends the suspicion against it.
func (l *lane) rest() {
	for _, s := range l.places {
		s.Release(1)
	}
	l.places = nil
	if l.begun != nil {
		l.begun()
		l.begun = nil
	}
}

// batch removes from those that wait what one turn can answer: messages up to
// the next that has a turn of its own.
func (l *lane) batch() []job {
	n := 0
	for n < len(l.waiting) && !l.waiting[n].apart() {
		n++
	}
	return l.shift(max(n, 1))
}

func (l *lane) shift(n int) []job {
	jobs := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return jobs
}

// joining returns what was said while a turn was under way and can be answered with it.
func (l *lane) joining() []job {
	l.gather()
	if l.solo || len(l.waiting) == 0 || l.waiting[0].apart() {
		return nil
	}
	jobs := l.batch()
	l.joined = append(l.joined, jobs...)
	return jobs
}

// take returns the messages that came in since the last take. One that cannot
// be read is put aside (P4).
func (l *lane) take() (jobs []job) {
	for _, item := range l.pull() {
		j := job{item: item}
		if err := json.Unmarshal(item.Body, &j.Message); err != nil {
			l.Log.Error("a message cannot be read and is put aside", "id", item.ID, "err", err)
			l.insist(l.hard, "park message", func(ctx context.Context) error { //nolint:errcheck // ctx ended: it comes back
				if _, err := l.parked.Put(ctx, item.ID, item.Body, store.Any); err != nil {
					return err
				}
				return item.Done(ctx)
			})
			continue
		}
		var stays bool
		if j.held, stays = l.holds.takes(j.Key(), item); stays {
			continue
		}
		j.command = l.Pool.command(j.Message)
		jobs = append(jobs, j)
	}
	return jobs
}

const (
	again  = 5 * time.Second        // until what failed is tried again
	fresh  = 10 * time.Second       // a message older than this has waited for us
	settle = 500 * time.Millisecond // and is seldom the only one
)

// gather adds what has come in to what waits. When that is likely not all, it
// waits for the rest, so that all of it gets one answer: after messages that
// waited while nobody listened, and after a file, since those of an album come
// one by one; but nobody speaks in an album.
func (l *lane) gather() {
	for {
		more := l.take()
		l.waiting = append(l.waiting, more...)
		if len(more) == 0 || time.Since(l.waiting[0].Time) <= fresh && !slices.ContainsFunc(more[len(more)-1].Files, inAlbum) {
			return
		}
		select {
		case <-l.soft.Done():
			return
		case <-time.After(settle):
		}
	}
}

// inAlbum says whether f may be one of several: it is still at the network.
func inAlbum(f chat.File) bool { return f.Ref != "" && !f.Voice }

// handle answers jobs, one command or messages.
func (l *lane) handle(jobs []job) error {
	first := jobs[0]
	if first.command == "new" {
		return l.renew(first)
	}
	defer l.rest()
	switch deaths, last := l.guard.blame(first.Key()); {
	case last, first.held != nil && first.held.drop:
		return l.giveUp(first)
	case deaths >= deathsToPutAside:
		return l.putAside(first)
	}
	if err := l.hold(l.soft, l.turns); err != nil {
		return err
	}
	if err := l.begin(jobs); err != nil {
		return err
	}
	if do := l.chore(first.command); do != nil {
		return l.command(first, do)
	}
	return l.turn(jobs)
}

// begin waits until jobs may be answered, alone if the process may have died
// over them.
func (l *lane) begin(jobs []job) (err error) {
	first := jobs[0]
	if first.last() && !first.held.Tried {
		tried := first.held.hold
		tried.Tried = true
		err := l.insist(l.hard, "note the last try", func(ctx context.Context) error {
			return l.holds.table.Set(ctx, first.Key(), tried)
		})
		if err != nil {
			return err
		}
	}
	left := slices.ContainsFunc(jobs, func(j job) bool { return j.item.Again })
	l.begun, err = l.guard.begin(l.soft, first.Key(), left, first.last(), len(jobs) > 1)
	return err
}

// command does j, which is one of the chores. Nothing is forgotten meanwhile.
func (l *lane) command(j job, do func(*lane, context.Context, chat.Message) string) error {
	run := &running{since: time.Now(), doing: l.Texts.Doing.Command.With(j.command), stop: func(error) {}}
	if err := l.enter(l.hard, l.id, run, errBusy); err != nil {
		return err
	}
	defer l.leave(l.id)
	return l.reply(j, do(l, l.hard, j.Message))
}

// renew begins a new conversation, as /new asks.
func (l *lane) renew(j job) error {
	err := l.insist(l.hard, "begin a new conversation", func(ctx context.Context) error {
		return l.sessions.Update(ctx, l.id, (*conversation.State).BeginConversation)
	})
	if err == nil {
		l.conversationEnded(l.id)
		err = l.reply(j, l.Texts.Commands.New)
	}
	return err
}

// reply answers a command and ends it.
func (l *lane) reply(j job, text string) error {
	err := l.insist(l.hard, "reply", func(ctx context.Context) error { return l.answer(ctx, j.Message, text) })
	if err == nil {
		err = l.dequeue(l.hard, j)
	}
	return err
}

// dequeue removes j from the inbox.
func (l *lane) dequeue(ctx context.Context, j job) error {
	return l.insist(ctx, "end "+j.Key(), func(ctx context.Context) error {
		if err := l.holds.forget(ctx, j.Key()); err != nil {
			return err
		}
		return j.item.Done(ctx)
	})
}

// turn answers jobs in one turn. A panic on the way is a failed turn, not the
// end of the house.
func (l *lane) turn(jobs []job) (err error) {
	ctx, stop := context.WithCancelCause(l.hard)
	defer stop(nil)
	t := turn{lane: l, jobs: jobs, run: &running{since: time.Now(), said: jobs[0].Time, at: jobs[0].At, options: inheritedOptions(jobs[0].Message), stop: stop}, live: &screen{}}
	if err := l.enter(l.hard, l.id, t.run, errBusy); err != nil {
		return err
	}
	defer l.leave(l.id)
	if over, err := l.late(jobs); over || err != nil { // it was forgotten while it waited for a place
		return err
	}
	ended := func(string) {}
	if l.Begun != nil {
		ctx, ended = l.Begun(ctx, l.id, jobs[0].Message)
	}
	defer func() { ended(string(t.outcome)) }()
	if l.guarded("a turn of "+string(l.id), func() {
		if t.session, err = l.openFor(jobs[0].Message); err == nil {
			err = t.do(ctx)
		}
	}) {
		t.outcome = conversation.Failed
		return l.apologise(t.jobs)
	}
	if err == nil {
		l.idle.put(t.session)
	}
	return err
}

// enter makes r what is at work in the session id, once nothing else is. With
// why, what is there is ended for that reason.
func (p *Pool) enter(ctx context.Context, id chat.SessionID, r *running, why error) error {
	r.left = make(chan struct{})
	for {
		p.mu.Lock()
		other := p.running[id]
		if other == nil {
			p.running[id] = r
		} else if why != nil {
			other.stop(why)
		}
		p.mu.Unlock()
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

func (p *Pool) leave(id chat.SessionID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.running[id].left)
	delete(p.running, id)
}
