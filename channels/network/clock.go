package network

import (
	"net/http"
	"sync"
	"time"
)

// A ServerClock is the clock of a network's server, as its answers tell it. The
// clock of this machine may be wrong by hours, and every message would seem to
// have waited for that long. The zero ServerClock knows nothing yet.
type ServerClock struct {
	mu    sync.Mutex
	shown time.Time // what the server's clock showed …
	at    time.Time // … at this moment, of which the monotonic part counts
}

// leastSkew is what two clocks may differ by and still count as the same: the
// server tells whole seconds, and its answer takes a while.
const leastSkew = time.Minute

// Watch has the clock learn from all answers that the client gets.
func (c *ServerClock) Watch(client *http.Client) {
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = watched{c, next}
}

type watched struct {
	clock *ServerClock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (w watched) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(r)
	if err == nil {
		if shown, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
			w.clock.set(shown)
		}
	}
	return resp, err
}

// CloseIdleConnections is what http.Client calls.
func (w watched) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (c *ServerClock) set(shown time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown, c.at = shown, time.Now()
}

// Now returns what the server's clock shows, or this machine's if that is all
// there is.
func (c *ServerClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.at.IsZero() {
		return now
	}
	return c.shown.Add(now.Sub(c.at))
}

// Local returns t, a time that the server told, as a time of this machine: later,
// if this machine's clock is ahead. If that is behind, t is left as it is: it
// would seem to be long ago once the clock is right again.
func (c *ServerClock) Local(t time.Time) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return t
	}
	now := time.Now()
	skew := now.Round(0).Sub(c.shown.Add(now.Sub(c.at))) // by the wall clock
	if skew < leastSkew {
		return t
	}
	return t.Add(skew)
}
