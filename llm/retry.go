package llm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// Limit gives a model total to answer in, all tries included, and fails with
// TimedOut after that (P11).
func Limit(total time.Duration) func(Model) Model {
	return func(m Model) Model {
		return ModelFunc(func(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
			limited, cancel := context.WithTimeout(ctx, total)
			defer cancel()
			msg, err := m.Generate(limited, req, stream)
			if err != nil && limited.Err() != nil && ctx.Err() == nil {
				return Message{}, &Error{Kind: TimedOut, Err: fmt.Errorf("no whole answer within %v", total)}
			}
			return msg, err
		})
	}
}

const (
	maxTries   = 4
	firstPause = time.Second     // after the first try, doubled after each further one
	longPause  = time.Minute     // a provider that asks for more is given up at once
	lastTry    = 5 * time.Minute // no try begins later than this after the first, so that a fallback has time left
)

// Retry asks m again while the error is temporary, 4 times in all, and waits
// at least as long as the provider asks for (P11).
func Retry(m Model) Model {
	return ModelFunc(func(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
		return persist(ctx, m, req, stream)
	})
}

func persist(ctx context.Context, m Model, req Request, stream func(Delta)) (Message, error) {
	out := pieces{stream: stream}
	start := time.Now()
	for try := 1; ; try++ {
		msg, err := m.Generate(ctx, req, out.send)
		if err == nil {
			return msg, nil
		}
		if ctx.Err() != nil {
			return Message{}, ctx.Err()
		}
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.Temporary() || try >= maxTries || e.After > longPause {
			return Message{}, err
		}
		wait := pause(try, e.After)
		if time.Since(start)+wait > lastTry {
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

// pause is how long to wait after the given try: the back-off spread by a
// quarter either way, and never less than after.
func pause(try int, after time.Duration) time.Duration {
	d := firstPause << (try - 1)
	d += time.Duration((rand.Float64() - 0.5) * 0.5 * float64(d))
	return max(d, after)
}

// pieces hands on what is streamed and remembers whether there is something to take back.
type pieces struct {
	stream func(Delta) // may be nil
	shown  bool
}

func (p *pieces) send(d Delta) {
	p.shown = !d.Reset || d.Text != "" || d.Reasoning != "" || d.Call != nil
	if p.stream != nil {
		p.stream(d)
	}
}

// reset takes back what was shown, if anything.
func (p *pieces) reset() {
	if p.shown {
		p.send(Delta{Reset: true})
	}
}
