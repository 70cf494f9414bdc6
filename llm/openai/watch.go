package openai

import (
	"context"
	"errors"
	"time"

	"parley/llm"
)

const (
	afterFinish = 2 * time.Second       // for the token count, once the answer is whole
	afterDone   = 20 * time.Millisecond // for the end of the body, so that the connection can be used again
)

// A watch ends an exchange in which nothing happens. The first byte of an
// answer may take as long as the first piece of it: a model without a graphics
// card reads for minutes before it says anything.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	due    time.Time // when the next piece of the answer must have come
	timer  *time.Timer
}

func newWatch(ctx context.Context) *watch {
	w := &watch{idle: maxIdle}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(maxSilent, func() {
		w.cancel(&llm.Error{Kind: llm.TimedOut, Err: errors.New("the provider fell silent")})
	})
	w.answered()
	return w
}

// alive tells that something came, a comment maybe.
func (w *watch) alive() { w.timer.Reset(min(w.idle, time.Until(w.due))) }

// answered tells that a piece of the answer came.
func (w *watch) answered() { w.due = time.Now().Add(maxSilent) }

// hurry leaves less time from now on.
func (w *watch) hurry(idle time.Duration) {
	w.idle = min(w.idle, idle)
	w.alive()
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// blame returns the reason for which the watch ended the exchange, or else err.
func (w *watch) blame(err error) error {
	if e, ok := errors.AsType[*llm.Error](context.Cause(w.ctx)); ok {
		return e
	}
	return err
}
