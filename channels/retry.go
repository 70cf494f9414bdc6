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
	minWait       = 100 * time.Millisecond // whatever a network asks for
	firstWait     = time.Second
	maxWait       = 5 * time.Minute
	maxStoreWait  = 15 * time.Second // our own disk is back soon
	giveUpAfter   = 24 * time.Hour
	sendTimeout   = 2 * time.Minute
	uploadTimeout = 15 * time.Minute // of a message with files: 50 MB on a slow connection
	gracePeriod   = 3 * time.Second  // for what is under way when the process ends
)

// requestedWait returns how long err asks to wait, or 0 if it does not say.
func requestedWait(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) && e.After > 0 {
		return max(e.After, minWait)
	}
	return 0
}

// attempt calls f with the time limit of a message.
func attempt(ctx context.Context, f func(context.Context) error) error {
	return within(ctx, sendTimeout, f)
}

// within calls f with a time limit. When ctx ends, f still has a moment: an orderly
// shutdown must not leave in doubt what was being sent.
func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	lingering, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(gracePeriod, cancel) })()
	return panics.Try(func() error { return f(lingering) })
}

// Sleep waits for d, or until ctx ends. It reports whether ctx goes on.
func Sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// A Backoff spaces the attempts at one thing (P10): after each failure it waits for
// about Least, then twice as long, and so on up to Most.
type Backoff struct {
	Least, Most time.Duration

	tries int
	since time.Time // of the first failure
	last  time.Duration
}

// Next returns how long to wait after err. If err is an *Error that asks for a
// certain time, that is it.
func (b *Backoff) Next(err error) time.Duration {
	b.tries++
	if b.tries == 1 {
		b.since = time.Now()
	}
	b.last = min(max(2*b.last, b.Least), b.Most)
	return cmp.Or(requestedWait(err), b.last-rand.N(b.last/4+1))
}

// isHopeless reports whether the attempts have failed for so long that they will not
// succeed.
func (b *Backoff) isHopeless() bool { return b.tries > 0 && time.Since(b.since) >= giveUpAfter }

// networkBackoff returns the Backoff for calls of a network.
func networkBackoff() Backoff { return Backoff{Least: firstWait, Most: maxWait} }
