package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
	"sync"

	"parley/chat"
)

// A visitor is whoever sent a request. The zero visitor is a stranger.
type visitor struct {
	chat.Sender
	pass   string // the hash of the cookie or key they came by, if they did
	key    bool   // it is an API key
	prefix string // of its sessions
}

type visitorKey struct{}

func with(r *http.Request, v visitor) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), visitorKey{}, v))
}

func visiting(r *http.Request) visitor {
	v, _ := r.Context().Value(visitorKey{}).(visitor)
	return v
}

// outside lists what strangers may ask for (R-S3).
var outside = map[string]bool{
	"/healthz": true, "/readyz": true, "/signin": true, "/assets/signin.js": true, "/assets/owner.css": true,
}

const cookieName = "parley"

// door finds out who is there. Strangers go no further than the sign-in page:
// they do not learn which pages there are.
func (s *Server) door(w http.ResponseWriter, r *http.Request) {
	v, err := s.identify(w, r)
	switch {
	case err != nil:
		s.fail(w, r, err)
	case v.Role == chat.Stranger && outside[r.URL.Path]:
		s.mux.ServeHTTP(w, r)
	case v.Role == chat.Stranger && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
		http.Redirect(w, r, "/signin", http.StatusSeeOther)
	case v.Role == chat.Stranger:
		refuse(w, r, http.StatusUnauthorized, "sign in first")
	case bearer(r) == "" && writes(r) && r.Header.Get(ownHeader) == "" && !outside[r.URL.Path]:
		refuse(w, r, http.StatusForbidden, "this does not say "+ownHeader)
	default:
		s.mux.ServeHTTP(w, with(r, v))
	}
}

// identify says who sent r. The error may be a problem.
func (s *Server) identify(w http.ResponseWriter, r *http.Request) (visitor, error) {
	ctx := r.Context()
	if b := bearer(r); strings.HasPrefix(b, keyMark) {
		return s.holder(r, b)
	} else if b != "" {
		if err := s.judge(s.guesses, r, "the administrator's token", func() (bool, error) { return s.isToken(b), nil }); err != nil {
			return visitor{}, err
		}
		return visitor{Sender: sender(ownerName)}, nil
	}
	c, err := r.Cookie(cookieName)
	if err != nil {
		return visitor{}, nil
	}
	name, renewed, err := s.people.signed(ctx, c.Value)
	if missing(err) {
		return visitor{}, nil // it ended, and 256 bits are not guessed
	} else if err != nil {
		return visitor{}, err
	}
	if renewed {
		s.setCookie(w, c.Value, loginLife)
	}
	return visitor{Sender: sender(name), pass: hash(c.Value)}, nil
}

// holder says whose API key it is. A right one is never kept waiting, so that
// nobody can shut others out by being wrong; it has 256 bits.
func (s *Server) holder(r *http.Request, plain string) (visitor, error) {
	k, err := s.people.opens(r.Context(), plain)
	if err == nil {
		return visitor{Sender: sender(k.Person), pass: hash(plain), key: true, prefix: k.Prefix}, nil
	} else if !missing(err) {
		return visitor{}, err
	}
	return visitor{}, s.judge(s.keys, r, "an API key", func() (bool, error) { return false, nil })
}

// judge lets r be right about a secret, and returns a problem if it is not.
func (s *Server) judge(t tries, r *http.Request, what string, right func() (bool, error)) error {
	ok, wait, err := t.attempt(r.RemoteAddr, right)
	switch {
	case err != nil:
		return err
	case wait > 0:
		return problem{http.StatusTooManyRequests, "too many wrong ones: wait a little", wait}
	case !ok:
		s.audit("refused", r.RemoteAddr, "wrong: "+what)
		return problem{status: http.StatusUnauthorized, text: "that is not right, or not any more"}
	}
	return nil
}

// isToken compares in constant time.
func (s *Server) isToken(t string) bool {
	a, b := sha256.Sum256([]byte(t)), sha256.Sum256([]byte(s.Token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && s.Token != ""
}

// bearer returns the credential that r names, if it is one.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// streams are the requests that take long. Each ends with what let it in.
type streams struct {
	mu   sync.Mutex
	ends map[*http.Request]stream
}

type stream struct {
	visitor
	end context.CancelFunc
}

func (s *streams) enter(r *http.Request, v visitor) (ctx context.Context, leave func()) {
	ctx, end := context.WithCancel(r.Context())
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends[r] = stream{v, end}
	return ctx, func() {
		end()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.ends, r)
	}
}

// end ends those of whom it is true.
func (s *streams) end(whose func(visitor) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.ends {
		if whose(st.visitor) {
			st.end()
		}
	}
}
