package web

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How fast one may be wrong (R-S3): from one address a few times and then every
// two seconds, from all together once a second, so that a thousand wrong guesses
// take a quarter of an hour wherever they come from. Nothing that a request says
// of itself counts, and this machine is an address like any other.
const (
	everyOne, burstOne = 2 * time.Second, 10
	everyAll, burstAll = time.Second, 50
	manyOnes           = 1000 // addresses, before those that have been quiet are forgotten
)

// tries counts wrong guesses.
type tries struct {
	mu  sync.Mutex
	all *rate.Limiter
	one map[netip.Prefix]*rate.Limiter
}

func newTries() *tries {
	return &tries{all: rate.NewLimiter(rate.Every(everyAll), burstAll), one: map[netip.Prefix]*rate.Limiter{}}
}

// attempt calls right, unless whoever is there was wrong too often: then it
// returns how long to wait. An error that is missing is a wrong guess. Guesses are
// looked at one after another, so that many at once are no more than that.
func (t *tries) attempt(remote string, right func() error) (wait time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	from := address(remote)
	if one := t.one[from]; one != nil && one.Tokens() < 1 {
		return everyOne, nil
	}
	if t.all.Tokens() < 1 {
		return everyAll, nil
	}
	if err = right(); missing(err) {
		t.wrong(from)
	}
	return 0, err
}

// wrong counts a wrong guess.
func (t *tries) wrong(from netip.Prefix) {
	if len(t.one) >= manyOnes {
		maps.DeleteFunc(t.one, func(_ netip.Prefix, l *rate.Limiter) bool { return l.Tokens() >= burstOne })
	}
	if t.one[from] == nil {
		t.one[from] = rate.NewLimiter(rate.Every(everyOne), burstOne)
	}
	t.one[from].Allow()
	t.all.Allow()
}

// address is what counts as one place: an IPv4 address, or the 64 bits of IPv6
// that one household has.
func address(remote string) netip.Prefix {
	at, _ := netip.ParseAddrPort(remote) // none: all such share a place
	ip := at.Addr().Unmap()
	p, _ := ip.Prefix(min(ip.BitLen(), 64))
	return p
}
