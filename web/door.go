package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/chat"
	"parley/store"
)

// A visitor is whoever sent a request. The zero visitor is a stranger.
type visitor struct {
	chat.Sender
	pass pass // that they came by, if they did
}

// key says whether they came by an API key.
func (v visitor) key() bool { return v.pass.Kind == keys }

const cookieName = "parley"

// identify is the identity of whoever comes by the network. With an error the
// visitor means nothing.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (visitor, error) {
	ctx, b := r.Context(), bearer(r)
	switch {
	case strings.HasPrefix(b, keyMark):
		p, _, err := s.people.find(ctx, keys, b)
		if missing(err) { // a right one never waits, so that nobody can shut others out by being wrong; it has 256 bits
			err = s.judge(s.keys, r, "an API key", func() error { return err })
		}
		return visitor{sender(p.Person), p}, err
	case b != "":
		err := s.judge(s.guesses, r, "the administrator's token", func() error { return s.token(b) })
		return visitor{Sender: sender(ownerName)}, err
	}
	c, err := r.Cookie(cookieName)
	if err != nil {
		return visitor{}, nil
	}
	p, renewed, err := s.people.signed(ctx, c.Value)
	if missing(err) {
		return visitor{}, nil // it ended, and 256 bits are not guessed
	} else if err != nil {
		return visitor{}, err
	}
	if renewed {
		s.setCookie(w, c.Value, loginLife)
	}
	return visitor{sender(p.Person), p}, nil
}

// judge lets r be right about a secret, and returns a problem if it is not:
// right tells by an error that is missing.
func (s *Server) judge(t *tries, r *http.Request, what string, right func() error) error {
	wait, err := t.attempt(r.RemoteAddr, right)
	switch {
	case wait > 0:
		return problem{http.StatusTooManyRequests, "too many wrong ones: wait a little", wait}
	case missing(err):
		s.Audit("refused", r.RemoteAddr, "wrong: "+what)
		return problem{status: http.StatusUnauthorized, text: "that is not right, or not any more"}
	}
	return err
}

// token returns store.ErrNotFound unless t is the administrator's. It takes as
// long for any.
func (s *Server) token(t string) error {
	a, b := sha256.Sum256([]byte(t)), sha256.Sum256([]byte(s.Token))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 || s.Token == "" {
		return store.ErrNotFound
	}
	return nil
}

// bearer returns the credential that r names, if it is one.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

func (s *Server) signInPage(w http.ResponseWriter, _ *http.Request, _ visitor) error {
	return s.show(w, http.StatusOK, "signin", frame{Title: "Sign in", Data: s.Token != ""})
}

// signIn takes the administrator's token or a one-time code for a cookie.
func (s *Server) signIn(w http.ResponseWriter, r *http.Request, _ visitor) error {
	var by struct{ Token, Code string }
	if err := body(w, r, &by); err != nil {
		return err
	}
	name, what, right := ownerName, "the administrator's token", func() error { return s.token(by.Token) }
	if by.Code != "" {
		what, right = "a one-time code", func() (err error) {
			name, err = s.people.use(r.Context(), by.Code)
			return err
		}
	}
	if err := s.judge(s.guesses, r, what, right); err != nil {
		return err
	}
	cookie, _, err := s.people.grant(r.Context(), pass{Kind: logins, Person: name, Expires: time.Now().Add(loginLife)})
	if err != nil {
		return err
	}
	s.setCookie(w, cookie, loginLife)
	s.Audit("sign-in", name, "by "+what+" from "+r.RemoteAddr)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (s *Server) signOut(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := s.end(r.Context(), func(p pass) bool { return p.ID == v.pass.ID && p.ID != "" }); err != nil {
		return err
	}
	s.setCookie(w, "", -time.Second)
	s.Audit("sign-in", v.ID, "signed out")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// setCookie keeps value from scripts, from other sites and, where people come by
// https, from the clear (R-S5).
func (s *Server) setCookie(w http.ResponseWriter, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(s.names.origin, "https:"),
	})
}

// end ends the passes that go, and what those who came by them are in the middle of.
func (s *Server) end(ctx context.Context, goes func(pass) bool) error {
	err := s.people.sweep(ctx, goes)
	s.open.Range(func(v, stop any) bool {
		if goes(v.(*visitor).pass) {
			stop.(context.CancelFunc)()
		}
		return true
	})
	return err
}

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
