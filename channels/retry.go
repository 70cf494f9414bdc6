package channels

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"parley/panics"
)

const (
	leastWait = 100 * time.Millisecond // whatever a channel says, no lane spins
	firstWait = time.Second
	longWait  = 5 * time.Minute
	storeWait = 15 * time.Second // the longest for our own disk
	giveUp    = 24 * time.Hour

	attemptTime = 2 * time.Minute
	uploadTime  = 15 * time.Minute // of one with files: 50 MB on a slow line
	grace       = 3 * time.Second
)

// asked returns how long err asks to wait, 0 when it does not say.
func asked(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) && e.After > 0 {
		return max(e.After, leastWait)
	}
	return 0
}

// attempt does f within attemptTime.
func attempt(ctx context.Context, f func(context.Context) error) error {
	return within(ctx, attemptTime, f)
}

// within does f within limit. When ctx ends, f still gets a moment:
// what is on its way must not be in doubt because of an orderly end.
func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	lingering, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(grace, cancel) })()
	return panics.Try(func() error { return f(lingering) })
}

// Sleep waits for d and says whether ctx is still on.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// A Backoff is how one thing is tried again and again (P10): after a wait of
// about Least, doubling to Most.
type Backoff struct {
	Least, Most time.Duration

	tries int
	since time.Time // of the first failure
	last  time.Duration
}

// Next returns the wait after err, which is as long as err says if it is an
// *Error that asks for one.
func (b *Backoff) Next(err error) time.Duration {
	if b.tries++; b.tries == 1 {
		b.since = time.Now()
	}
	b.last = min(max(2*b.last, b.Least), b.Most)
	return cmp.Or(asked(err), b.last-rand.N(b.last/4+1))
}

// patience is the Backoff of what the Hub asks of a network.
func patience() Backoff { return Backoff{Least: firstWait, Most: longWait} }

// over says that err has come for so long that it will not pass.
func (b *Backoff) over() bool { return b.tries > 0 && time.Since(b.since) >= giveUp }
