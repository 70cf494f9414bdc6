package agent

import (
	"parley/agent/conversation"
	"parley/panics"
)

// safely handles jobs. A panic that no turn has recovered from ends these jobs and
// nothing else (P8).
func (w *worker) safely(jobs []job) (err error) {
	if w.pool.guarded("answer "+jobs[0].Key(), func() { err = w.handle(jobs) }) {
		return w.endUnread(append(jobs, w.joined...))
	}
	return err
}

// endUnread ends jobs without reading what they say, which may have caused a panic.
func (w *worker) endUnread(jobs []job) error {
	for i, j := range jobs {
		if w.pool.guarded("say that a message failed", func() {
			if i == 0 {
				_ = w.sendReply(j, w.pool.texts.Turn.Panic) // else it comes again
			}
		}) {
			_ = w.keepDeadLetter(j) // ctx ended: it comes back
		}
		if err := w.dequeue(w.hard, j); err != nil {
			return err
		}
	}
	return nil
}

// guarded calls do and reports whether it panicked, which it logs. It is for work in
// a goroutine, where a panic would end the process.
func (p *Pool) guarded(what string, do func()) (panicked bool) {
	err := panics.Try(func() error {
		do()
		return nil
	})
	if err != nil {
		p.log.Error("panic", "what", what, "err", err, panics.Stack(err))
	}
	return err != nil
}

// endPanicked ends the turn of jobs after a panic. It does not read the session,
// which may have caused it.
func (w *worker) endPanicked(jobs []job) error {
	st, _, err := w.pool.sessions.Lookup(w.hard, w.id)
	if err != nil {
		return err
	}
	s := w.pool.sessions.Restore(w.id, st, conversation.NewHistory(w.pool.config.Zone), 0)
	s.History.Begin(jobs[0].Message)
	t := &turn{session: s, pool: w.pool, worker: w, jobs: jobs}
	intake{t}.hear(jobs)
	return t.end(w.hard, conversation.Failed, t.pool.texts.Turn.Panic)
}
