package llm

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// RetryConfig bounds Retry. A zero field means its default.
type RetryConfig struct {
	Tries    int           // in all; 4
	Base     time.Duration // pause after the first try, doubled after each further one; 1 s
	MaxAfter time.Duration // a provider that asks for a longer pause is given up at once; 60 s
}

// Retry asks again while the error is temporary, and waits at least as long
// as the provider asks for (P11).
func Retry(c RetryConfig) func(Model) Model {
	if c.Tries == 0 {
		c.Tries = 4
	}
	if c.Base == 0 {
		c.Base = time.Second
	}
	if c.MaxAfter == 0 {
		c.MaxAfter = time.Minute
	}
	return func(m Model) Model {
		return ModelFunc(func(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
			return c.generate(ctx, m, req, stream)
		})
	}
}

func (c RetryConfig) generate(ctx context.Context, m Model, req Request, stream func(Delta)) (Message, error) {
	out := pieces{stream: stream}
	for try := 1; ; try++ {
		msg, err := m.Generate(ctx, req, out.send())
		var e *Error
		switch {
		case err == nil:
			return msg, nil
		case ctx.Err() != nil:
			return Message{}, ctx.Err()
		case !errors.As(err, &e), !e.Temporary(), try >= c.Tries, e.After > c.MaxAfter:
			return Message{}, err
		}
		if err := sleep(ctx, c.pause(try, e.After)); err != nil {
			return Message{}, err
		}
		out.reset()
	}
}

// pause is how long to wait after the given try: the back-off spread by a
// quarter either way, and never less than after.
func (c RetryConfig) pause(try int, after time.Duration) time.Duration {
	d := c.Base << (try - 1)
	d += time.Duration((rand.Float64() - 0.5) * 0.5 * float64(d))
	return max(d, after)
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pieces hands on what is streamed and remembers whether there is something to take back.
type pieces struct {
	stream func(Delta)
	shown  bool
}

// send is the stream to pass on: nil when nobody listens.
func (p *pieces) send() func(Delta) {
	if p.stream == nil {
		return nil
	}
	return func(d Delta) {
		p.shown = !d.Reset || d.Text != "" || d.Reasoning != ""
		p.stream(d)
	}
}

// reset takes back what was shown, if anything.
func (p *pieces) reset() {
	if p.shown {
		p.stream(Delta{Reset: true})
		p.shown = false
	}
}
