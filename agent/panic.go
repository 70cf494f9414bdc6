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

// endPanicked ends the turn of deliveries after a panic. It does not read the session,
// which may have caused it.
func (w *worker) endPanicked(deliveries []delivery) error {
	st, _, err := w.pool.sessions.Lookup(w.hard, w.id)
	if err != nil {
		return err
	}
	s := w.pool.sessions.Restore(w.id, st, conversation.NewHistory(w.pool.config.Zone), 0)
	s.History.Begin(deliveries[0].Message)
	t := &turn{session: s, pool: w.pool, worker: w, deliveries: deliveries}
	intake{t}.hear(deliveries)
	return t.end(w.hard, conversation.Failed, t.pool.texts.Turn.Panic)
}
