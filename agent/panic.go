package agent

import (
	"parley/agent/conversation"
	"parley/panics"
)

// safely handles deliveries. A panic that no turn has recovered from ends these and
// nothing else (P8).
func (w *worker) safely(deliveries []delivery) (err error) {
	if w.pool.guarded("answer "+deliveries[0].Key(), func() { err = w.handle(deliveries) }) {
		return w.endUnread(append(deliveries, w.joined...))
	}
	return err
}

// endUnread ends deliveries without reading their messages, which may have caused a panic.
func (w *worker) endUnread(deliveries []delivery) error {
	for i, d := range deliveries {
		if w.pool.guarded("say that a message failed", func() {
			if i == 0 {
				_ = w.sendReply(d, w.pool.texts.Turn.Panic) // else it comes again
			}
		}) {
			_ = w.keepDeadLetter(d) // ctx ended: it comes back
		}
		if err := w.dequeue(w.hard, d); err != nil {
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

// endPanicked ends t after a panic. It does not read the session, which may have caused
// it, and may be nil.
func (w *worker) endPanicked(t *turn) error {
	s, err := w.pool.sessions.Blank(w.hard, w.id, t.session)
	if err != nil {
		return err
	}
	s.History.Begin(t.deliveries[0].Message)
	last := &turn{session: s, pool: w.pool, worker: w, deliveries: t.deliveries}
	intake{last}.hear(t.deliveries)
	err = last.end(w.hard, conversation.Failed, w.pool.texts.Turn.Panic)
	t.outcome = last.outcome
	return err
}
