package network

import (
	"net/http"
	"sync"
	"time"
)

// A ServerClock follows the clock of a network's server by the dates of its responses. If
// the clock of this machine is hours ahead, all messages seem to have waited for hours.
// The zero ServerClock knows nothing yet.
type ServerClock struct {
	mu    sync.Mutex
	shown time.Time // by the server's clock
	at    time.Time // when that was, by this machine's monotonic clock
}

// leastSkew is the difference up to which two clocks count as equal: the server sends
// whole seconds, and its response takes a while.
const leastSkew = time.Minute

// Watch sets the clock by all responses that client receives.
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
	if err != nil {
		return resp, err
	}
	shown, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil { // a server need not tell the time
		return resp, nil
	}
	w.clock.set(shown)
	return resp, nil
}

// CloseIdleConnections is called by [http.Client].
func (w watched) CloseIdleConnections() {
	if c, ok := w.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (c *ServerClock) set(shown time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.shown = shown
	c.at = time.Now()
}

// Now returns the time by the server's clock, or by this machine's clock as long as the
// server's is not known.
func (c *ServerClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if c.at.IsZero() {
		return now
	}
	return c.shown.Add(now.Sub(c.at))
}

// Local converts t, a time by the server's clock, to this machine's clock, if that is
// ahead. If it is behind, t is returned unchanged: converted, it would seem to be long ago
// once the clock is right again.
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
