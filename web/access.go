package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
)

// access knows who may come in, and who is in.
type access struct {
	adminSecret string // the administrator's token; "" if there is none
	names       names
	people      people
	guesses     *guessLimit
	open        sync.Map // requests that were let in: *visitor to context.CancelFunc
	audit       func(kind, who, what string)
}

// A visitor is whoever sent a request. The zero visitor is a stranger.
type visitor struct {
	chat.Sender
	pass pass // that they came by, if they did
}

// key says whether they came by an API key.
func (v visitor) key() bool { return v.pass.Kind == keys }

const (
	cookieName = "parley"
	maxSignIn  = 4 << 10 // bytes of a request to sign in
)

// identify is the identity of whoever comes by the network. With an error the
// visitor means nothing.
func (a *access) identify(w http.ResponseWriter, r *http.Request) (visitor, error) {
	ctx, b := r.Context(), bearer(r)
	switch {
	case strings.HasPrefix(b, keyMark):
		var p pass
		err := a.judge(apiKey, r, func() (err error) {
			p, _, err = a.people.find(ctx, keys, b)
			return err
		})
		return visitor{sender(p.Person), p}, err
	case b != "":
		c := a.adminToken()
		if forModels(r) { // whoever asks there thinks that it is a key
			c.wrong, c.code = apiKey.wrong, apiKey.code
		}
		err := a.judge(c, r, func() error { return a.token(b) })
		return visitor{Sender: sender(ownerName)}, err
	}
	// Another server on this host may have set a cookie of the same name, and
	// browsers send it along, maybe first: each is tried.
	for _, c := range r.CookiesNamed(cookieName) {
		p, renewed, err := a.people.signed(ctx, c.Value)
		if missing(err) {
			continue // it ended or is not ours, and 256 bits are not guessed
		} else if err != nil {
			return visitor{}, err
		}
		if renewed {
			a.setCookie(w, c.Value, loginLife)
		}
		return visitor{sender(p.Person), p}, nil
	}
	return visitor{}, nil
}

// A credential is a kind of secret that lets somebody in.
type credential struct {
	name  string // for the audit log
	wrong string // what is said to whoever has a wrong one
	code  string // the same for clients of the models' API; "": none
	short bool   // it has fewer than 128 bits, so it could be guessed by somebody who need not wait
}

var (
	apiKey  = credential{name: "API key", wrong: "This API key is invalid or has been revoked.", code: "invalid_api_key"}
	oneTime = credential{name: "sign-in link", wrong: "This link is invalid or has expired."}
)

// needsKey answers programs that ask the models' API without a key.
var needsKey = problem{
	status: http.StatusUnauthorized, code: apiKey.code,
	text: "An API key is needed, in the header Authorization: Bearer KEY. The owner makes one with parley key NAME.",
}

// forModels reports whether r asks the models' API.
func forModels(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/v1/") }

// adminToken is the credential that the owner chose.
func (a *access) adminToken() credential {
	return credential{name: "administrator's token", wrong: "This token is invalid.", short: !StrongSecret(a.adminSecret)}
}

// StrongSecret reports whether secret has 128 bits if it was made at random: 22
// characters of base64, or 32 in hexadecimal.
func StrongSecret(secret string) bool {
	kinds := map[rune]bool{}
	for _, c := range secret {
		kinds[c] = true
	}
	low, up := strings.ToLower(secret), strings.ToUpper(secret)
	return len(kinds) >= 8 && (len(secret) >= 32 && low != up || len(secret) >= 22 && secret != low && secret != up)
}

// judge returns nil if r has the secret that c describes, and otherwise a
// problem: right returns an error that is missing for a wrong one. A right one
// of 128 bits is let in at once, so that nobody locks others out by guessing; a
// short one has to wait when too many wrong ones came before it.
func (a *access) judge(c credential, r *http.Request, right func() error) error {
	var wait time.Duration
	var err error
	if c.short {
		wait, err = a.guesses.attempt(r.RemoteAddr, right)
	} else if err = right(); missing(err) {
		wait = a.guesses.count(r.RemoteAddr)
	}
	if wait == 0 && !missing(err) {
		return err
	}
	a.audit("refused", address(r.RemoteAddr).Addr().String(), "wrong "+c.name)
	if wait > 0 {
		return problem{status: http.StatusTooManyRequests, text: "Too many failed attempts. Wait a moment, then try again.", after: wait}
	}
	return problem{status: http.StatusUnauthorized, text: c.wrong, code: c.code}
}

// token returns store.ErrNotFound unless t is the administrator's. It takes as
// long for any.
func (a *access) token(t string) error {
	given := sha256.Sum256([]byte(t))
	right := sha256.Sum256([]byte(a.adminSecret))
	if subtle.ConstantTimeCompare(given[:], right[:]) != 1 || a.adminSecret == "" {
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

// signIn takes the administrator's token or a one-time code for a cookie.
func (a *access) signIn(w http.ResponseWriter, r *http.Request, _ visitor) error {
	var ask struct{ Token, Code string }
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn) // whoever sends it is unknown, and may send many
	if err := body(w, r, &ask); err != nil {
		return err
	}
	name, by, right := ownerName, a.adminToken(), func() error { return a.token(ask.Token) }
	if ask.Code != "" {
		by, right = oneTime, func() (err error) {
			name, err = a.people.use(r.Context(), ask.Code)
			return err
		}
	}
	if err := a.judge(by, r, right); err != nil {
		return err
	}
	cookie, _, err := a.people.grant(r.Context(), pass{Kind: logins, Person: name, Expires: time.Now().Add(loginLife)})
	if err != nil {
		return err
	}
	a.setCookie(w, cookie, loginLife)
	a.audit("sign-in", name, "by "+by.name+" from "+r.RemoteAddr)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (a *access) signOut(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := a.end(r.Context(), func(p pass) bool { return p.ID == v.pass.ID && p.ID != "" }); err != nil {
		return err
	}
	a.setCookie(w, "", -time.Second)
	a.audit("sign-in", v.ID, "signed out")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// link returns a link that signs person in, once, within a day.
func (a *access) link(ctx context.Context, person string) (string, error) {
	code, _, err := a.people.grant(ctx, pass{Kind: links, Person: person, Expires: time.Now().Add(linkLife)})
	if err != nil {
		return "", fmt.Errorf("link for %q: %w", person, err)
	}
	return a.names.home + "/signin#" + code, nil // no server, log or preview ever sees a fragment
}

// setCookie keeps value from scripts, from other sites and, where people come by
// https, from the clear (R-S5).
func (a *access) setCookie(w http.ResponseWriter, value string, life time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: strings.HasPrefix(a.names.origin, "https:"),
	})
}

// end ends the passes that go, and what those who came by them are in the middle of.
func (a *access) end(ctx context.Context, goes func(pass) bool) error {
	err := a.people.sweep(ctx, goes)
	a.open.Range(func(v, stop any) bool {
		if goes(v.(*visitor).pass) {
			stop.(context.CancelFunc)()
		}
		return true
	})
	return err
}
