package agent

import (
	"context"
	"encoding/json"
	"runtime/debug"
	"time"

	"parley/chat"
	"parley/store"
)

// A job is a message and the work item that brought it.
type job struct {
	chat.Message
	item store.Item
}

// A lane is the goroutine of one session, which exists only while there is
// something to answer (P5).
type lane struct {
	*Pool
	id   chat.SessionID
	soft context.Context // when it ends no turn begins
	hard context.Context // when it ends turns end
	pull func() []store.Item

	waiting []job // in the order they came
	solo    bool  // nothing joins the turn under way
}

// serve answers what has come in. What it cannot do yet it tries again, so that
// the order is kept; at the end of the house it leaves that in the inbox.
func (l *lane) serve() {
	l.waiting = l.take()
	l.gather()
	for len(l.waiting) > 0 {
		if err := l.next(); err != nil && !l.patient(err) {
			for _, j := range l.waiting {
				j.item.Later(0)
			}
			return
		}
		l.waiting = append(l.waiting, l.take()...)
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
	tries, err := l.begun(jobs[0])
	if l.solo = tries > 0; l.solo {
		l.waiting = append(jobs[1:], l.waiting...)
		jobs = jobs[:1:1]
	}
	if err == nil {
		err = l.handle(jobs, tries)
	}
	if err != nil {
		l.waiting = append(jobs, l.waiting...)
	}
	return err
}

// batch removes from those that wait what one turn can answer: messages up to the next command.
func (l *lane) batch() []job {
	n := 0
	for n < len(l.waiting) && durable[command(l.waiting[n].Text)] == "" {
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
	l.waiting = append(l.waiting, l.take()...)
	if l.solo || len(l.waiting) == 0 || durable[command(l.waiting[0].Text)] != "" {
		return nil
	}
	return l.batch()
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
		jobs = append(jobs, j)
	}
	return jobs
}

const (
	again  = 5 * time.Second        // until what failed is tried again
	fresh  = 10 * time.Second       // a message older than this has waited for us
	settle = 300 * time.Millisecond // and is seldom the only one
)

// gather waits for the rest when messages have waited while nobody listened,
// so that all of them get one answer.
func (l *lane) gather() {
	for len(l.waiting) > 0 && time.Since(l.waiting[0].Time) > fresh {
		select {
		case <-l.soft.Done():
			return
		case <-time.After(settle):
		}
		more := l.take()
		if len(more) == 0 {
			return
		}
		l.waiting = append(l.waiting, more...)
	}
}

// handle answers jobs, one command or messages, the first of which was taken up
// after so many crashes.
func (l *lane) handle(jobs []job, tries int) error {
	if command(jobs[0].Text) == "new" {
		return l.renew(jobs[0])
	}
	if l.solo {
		if err := l.alone.Acquire(l.soft, 1); err != nil {
			return err
		}
		defer l.alone.Release(1)
	}
	if tries >= crashes {
		return l.park(jobs[0])
	}
	if err := l.turns.Acquire(l.soft, 1); err != nil {
		return err
	}
	defer l.turns.Release(1)
	if err := l.count(jobs, tries); err != nil {
		return err
	}
	err := l.turn(jobs)
	l.uncount(jobs, tries, err)
	return err
}

// renew begins a new conversation, as /new asks.
func (l *lane) renew(j job) error {
	err := l.insist(l.hard, "begin a new conversation", func(ctx context.Context) error {
		return l.update(ctx, l.id, func(s *state) { s.Epoch, s.From = s.Epoch+1, 0 })
	})
	if err == nil {
		err = l.insist(l.hard, "reply", func(ctx context.Context) error { return l.answer(ctx, j.Message, wordsNew) })
	}
	if err == nil {
		err = l.insist(l.hard, "end "+j.Key(), j.item.Done)
	}
	return err
}

// turn answers jobs in one turn. A panic on the way is a failed turn, not the
// end of the house.
func (l *lane) turn(jobs []job) (err error) {
	t := turn{lane: l, jobs: jobs, run: &running{since: time.Now(), said: jobs[0].Time}}
	defer func() {
		if x := recover(); x != nil {
			l.Log.Error("panic in a turn", "session", l.id, "panic", x, "stack", string(debug.Stack()))
			err = l.apologise(t.jobs)
		}
	}()
	ctx, stop := context.WithCancelCause(l.hard)
	defer stop(nil)
	if t.session, err = l.open(l.hard, l.id); err != nil {
		return err
	}
	t.run.stop = stop
	l.enter(t.run)
	defer l.leave()
	if err := t.do(ctx); err != nil {
		return err
	}
	l.idle.put(t.session)
	return nil
}

// apologise ends the turn of jobs after a panic. It does not read the session:
// that may be what caused it.
func (l *lane) apologise(jobs []job) error {
	st, _, err := l.lookup(l.hard, l.id)
	if err != nil {
		return err
	}
	s := &session{state: st, id: l.id, log: l.logOf(l.id, st.Epoch), history: history{zone: l.Zone}}
	s.history.begin(jobs[0].Message)
	t := turn{session: s, lane: l, jobs: jobs}
	t.hear(jobs)
	return t.end(l.hard, failed, wordsPanic)
}

func (l *lane) enter(r *running) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[l.id] = r
}

func (l *lane) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, l.id)
}
