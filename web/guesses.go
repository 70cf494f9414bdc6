package web

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// Limits of wrong guesses (R-S3). One address may guess a few times and then every
// two seconds, all addresses together once a second, so that a thousand guesses
// take a quarter of an hour wherever they come from. Headers such as
// X-Forwarded-For do not count, and loopback is an address like any other.
const (
	addressInterval = 2 * time.Second
	addressBurst    = 10
	totalInterval   = time.Second
	totalBurst      = 50
	maxAddresses    = 1000 // when reached, addresses that have been quiet are forgotten
)

// guessLimit limits wrong guesses.
type guessLimit struct {
	mu     sync.Mutex
	total  *rate.Limiter
	byAddr map[netip.Prefix]*rate.Limiter
}

func newGuessLimit() *guessLimit {
	return &guessLimit{
		total:  rate.NewLimiter(rate.Every(totalInterval), totalBurst),
		byAddr: map[netip.Prefix]*rate.Limiter{},
	}
}

// attempt calls verify, unless there were too many wrong guesses from remote: then
// it returns how long to wait. An error for which isMissing holds is a wrong guess.
// Guesses are verified one at a time, so that simultaneous ones gain nothing.
func (g *guessLimit) attempt(remote string, verify func() error) (wait time.Duration, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := address(remote)
	if wait := g.wait(from); wait > 0 {
		return wait, nil
	}
	if err = verify(); isMissing(err) {
		g.take(from)
	}
	return 0, err
}

// count counts a wrong guess, and returns how long to wait if there were too
// many before it.
func (g *guessLimit) count(remote string) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	from := address(remote)
	if wait = g.wait(from); wait == 0 {
		g.take(from)
	}
	return wait
}

// wait returns how long guesses from that address have to wait. The caller holds mu.
func (g *guessLimit) wait(from netip.Prefix) time.Duration {
	if l := g.byAddr[from]; l != nil && l.Tokens() < 1 {
		return addressInterval
	}
	if g.total.Tokens() < 1 {
		return totalInterval
	}
	return 0
}

// take counts a wrong guess. The caller holds mu.
func (g *guessLimit) take(from netip.Prefix) {
	if len(g.byAddr) >= maxAddresses {
		maps.DeleteFunc(g.byAddr, func(_ netip.Prefix, l *rate.Limiter) bool { return l.Tokens() >= addressBurst })
	}
	if g.byAddr[from] == nil {
		g.byAddr[from] = rate.NewLimiter(rate.Every(addressInterval), addressBurst)
	}
	g.byAddr[from].Allow()
	g.total.Allow()
}

// address returns what counts as one address: an IPv4 address, or the /64 of an
// IPv6 address, since one household has that many.
func address(remote string) netip.Prefix {
	at, _ := netip.ParseAddrPort(remote) // on an error all such share one address
	ip := at.Addr().Unmap()
	p, _ := ip.Prefix(min(ip.BitLen(), 64))
	return p
}
