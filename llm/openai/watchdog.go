package openai

import (
	"context"
	"errors"
	"time"

	"parley/llm"
)

// A watchdog ends a request when nothing arrives: no byte for maxIdle once the
// answer has begun, or no chunk for maxSilence, whether or not keep-alive comments
// arrive meanwhile (P11). The first byte may take as long as the first chunk: a
// model without a graphics card reads for minutes before it answers.
type watchdog struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration // between bytes
	due    time.Time     // when the next chunk must have arrived
	timer  *time.Timer
}

func newWatchdog(ctx context.Context) *watchdog {
	w := &watchdog{idle: maxIdle}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(maxSilence, func() {
		w.cancel(&llm.Error{Kind: llm.TimedOut, Err: errors.New("the provider fell silent")})
	})
	w.noteChunk()
	return w
}

// noteBytes notes that something arrived, maybe only a comment.
func (w *watchdog) noteBytes() { w.timer.Reset(min(w.idle, time.Until(w.due))) }

// noteChunk notes that a chunk of the answer arrived.
func (w *watchdog) noteChunk() { w.due = time.Now().Add(maxSilence) }

// shorten allows less time between bytes from now on.
func (w *watchdog) shorten(idle time.Duration) {
	w.idle = min(w.idle, idle)
	w.noteBytes()
}

func (w *watchdog) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// causeOf returns why the watchdog ended the request, or else err.
func (w *watchdog) causeOf(err error) error {
	if e, ok := errors.AsType[*llm.Error](context.Cause(w.ctx)); ok {
		return e
	}
	return err
}
