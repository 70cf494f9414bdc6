package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Limit gives a model that much time for an answer, all attempts included. After
// that it fails with TimedOut (P11).
func Limit(total time.Duration) func(Model) Model {
	return func(m Model) Model { return &limited{model: m, total: total} }
}

// A limited model has so much time for an answer. It and its like are types instead of functions, because a request
// waits in all of them at once: each ModelFunc between them would take half a kilobyte of the stack of every turn.
type limited struct {
	model Model
	total time.Duration
}

// Generate implements Model.
func (l *limited) Generate(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
	inTime, cancel := context.WithTimeout(ctx, l.total)
	defer cancel()
	msg, err := l.model.Generate(inTime, req, stream)
	if err != nil && inTime.Err() != nil && ctx.Err() == nil {
		return Message{}, &Error{Kind: TimedOut, Err: fmt.Errorf("no whole answer within %v", l.total)}
	}
	return msg, err
}

const (
	maxAttempts   = 4
	firstPause    = time.Second     // after the first attempt, doubled after each further one
	maxRetryAfter = time.Minute     // a provider that asks to wait longer is not asked again
	retryWindow   = 5 * time.Minute // no attempt begins later, so that a fallback has time left
)

// Retry asks m again while the error is temporary, 4 times in all, and waits at
// least as long as the provider asks (P11).
func Retry(m Model) Model { return &retrying{m} }

type retrying struct{ model Model }

// Generate implements Model.
func (r *retrying) Generate(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
	out := resettable{stream: stream}
	start := time.Now()
	for attempt := 1; ; attempt++ {
		msg, err := r.model.Generate(ctx, req, out.send)
		if err == nil {
			return msg, nil
		}
		if ctx.Err() != nil {
			return Message{}, ctx.Err()
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Temporary() || attempt >= maxAttempts || e.After > maxRetryAfter {
			return Message{}, err
		}
		wait := pauseAfter(attempt, e.After)
		if time.Since(start)+wait > retryWindow {
			return Message{}, err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return Message{}, ctx.Err()
		}
		out.reset()
	}
}

// pauseAfter returns how long to wait after the given attempt: the backoff varied
// by a quarter, and never less than the provider asks.
func pauseAfter(attempt int, least time.Duration) time.Duration {
	d := firstPause << (attempt - 1)
	d += time.Duration((rand.Float64() - 0.5) * 0.5 * float64(d))
	return max(d, least)
}

// A resettable passes deltas on and remembers whether any must be reset.
type resettable struct {
	stream func(Delta) // may be nil
	sent   bool        // something since the last reset
}

func (r *resettable) send(d Delta) {
	r.sent = !d.Reset || d.Text != "" || d.Reasoning != "" || d.Call != nil
	if r.stream != nil {
		r.stream(d)
	}
}

// reset takes back what was sent, if anything.
func (r *resettable) reset() {
	if r.sent {
		r.send(Delta{Reset: true})
	}
}
