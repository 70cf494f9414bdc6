package agent

import (
	"context"

	"parley/agent/conversation"
	"parley/panics"
	"parley/store"
)

// safely handles jobs. A panic, which no turn has made good, ends these jobs and
// nothing else (P8).
func (l *lane) safely(jobs []job) (err error) {
	if l.guarded("answer "+jobs[0].Key(), func() { err = l.handle(jobs) }) {
		return l.surrender(append(jobs, l.joined...))
	}
	return err
}

// surrender ends jobs without a look at what they say, which may be what caused
// a panic.
func (l *lane) surrender(jobs []job) error {
	for i, j := range jobs {
		if l.guarded("say that a message failed", func() {
			if i == 0 {
				_ = l.insist(l.hard, "reply", func(ctx context.Context) error { return l.answer(ctx, j.Message, l.Texts.Turn.Panic) }) // else it comes again
			}
		}) {
			l.insist(l.hard, "park message", func(ctx context.Context) error { //nolint:errcheck // ctx ended: it comes back
				_, err := l.parked.Put(ctx, j.Key(), j.item.Body, store.Any)
				return err
			})
		}
		if err := l.dequeue(l.hard, j); err != nil {
			return err
		}
	}
	return nil
}

// guarded calls do and reports whether it panicked, which it logs. It is for work
// in goroutines of its own, where a panic would end the process.
func (p *Pool) guarded(what string, do func()) (panicked bool) {
	err := panics.Try(func() error {
		do()
		return nil
	})
	if err != nil {
		p.Log.Error("panic", "what", what, "err", err, panics.Stack(err))
	}
	return err != nil
}

// apologise ends the turn of jobs after a panic. It does not read the session:
// that may be what caused it.
func (l *lane) apologise(jobs []job) error {
	st, _, err := l.sessions.Lookup(l.hard, l.id)
	if err != nil {
		return err
	}
	s := l.sessions.Restore(l.id, st, conversation.NewHistory(l.Zone), 0)
	s.History.Begin(jobs[0].Message)
	t := turn{session: s, lane: l, jobs: jobs}
	t.hear(jobs)
	return t.end(l.hard, conversation.Failed, t.Texts.Turn.Panic)
}
