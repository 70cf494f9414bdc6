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
	"parley/response"
	"parley/store"
)

// access identifies visitors and signs people in.
type access struct {
	adminSecret string // the administrator's token; "" if there is none
	names       names
	people      people
	guesses     *guessLimit
	open        sync.Map // requests that were let in: *visitor to context.CancelFunc
	audit       func(kind, who, what string)
}

// A visitor is whoever sent a request. The zero visitor is not signed in.
type visitor struct {
	chat.Sender
	pass  pass // that identified them, if one did
	local bool // they came by the local socket
}

// key reports whether an API key identified them.
func (v visitor) key() bool { return v.pass.Kind == keys }

const (
	cookieName = "parley"
	maxSignIn  = 4 << 10 // bytes of a request to sign in
)

// identify is the identifier for requests from the network. With an error the
// visitor means nothing.
func (a *access) identify(w http.ResponseWriter, r *http.Request) (visitor, error) {
	ctx, b := r.Context(), bearer(r)
	switch {
	case strings.HasPrefix(b, keyPrefix):
		var p pass
		err := a.checkCredential(apiKey, r, func() (err error) {
			p, _, err = a.people.find(ctx, keys, b)
			return err
		})
		return visitor{Sender: sender(p.Person), pass: p}, err
	case b != "":
		c := a.adminToken()
		if isForPrograms(r) { // whoever asks there thinks that it is a key
			c.wrong, c.code = apiKey.wrong, apiKey.code
		}
		err := a.checkCredential(c, r, func() error { return a.checkToken(b) })
		return visitor{Sender: sender(ownerName)}, err
	}
	// Another server on this host may have set a cookie of the same name, which
	// browsers send too, possibly first. So each is tried.
	for _, c := range r.CookiesNamed(cookieName) {
		p, renewed, err := a.people.renewLogin(ctx, c.Value)
		if isMissing(err) {
			continue // expired or not ours; nobody guesses 256 bits, so it is not counted
		} else if err != nil {
			return visitor{}, err
		}
		if renewed {
			a.setCookie(w, r, c.Value, loginLifetime)
		}
		return visitor{Sender: sender(p.Person), pass: p}, nil
	}
	return visitor{}, nil
}

// A credential is a kind of secret that lets somebody in.
type credential struct {
	name  string // for the audit log
	wrong string // what is said to whoever has a wrong one
	code  string // the same for clients of the models' API; "": none
	short bool   // it has fewer than 128 bits, so guesses must be slowed down
}

var (
	apiKey = credential{
		name:  "API key",
		wrong: "This API key is invalid or has been revoked.",
		code:  "invalid_api_key",
	}
	oneTime = credential{name: "sign-in link", wrong: "This link has already been used, has expired or is invalid."}
)

// needsKey answers programs that use their endpoints without a key.
var needsKey = response.Problem{
	Status: http.StatusUnauthorized,
	Code:   apiKey.code,
	Text: "An API key is needed, in the header Authorization: Bearer KEY. " +
		"The owner makes one with parley key NAME.",
}

// isForPrograms reports whether r is for an endpoint that programs use with a key: the OpenAI-compatible one, or
// that of MCP clients.
func isForPrograms(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == mcpPath
}

const mcpPath = "/mcp"

// adminToken is the credential that the owner chose.
func (a *access) adminToken() credential {
	return credential{
		name:  "administrator's token",
		wrong: "This token is invalid.",
		short: !StrongSecret(a.adminSecret),
	}
}

// StrongSecret reports whether secret has at least 128 bits if it was made at
// random: 22 characters of base64, or 32 of hexadecimal.
func StrongSecret(secret string) bool {
	kinds := map[rune]bool{}
	for _, c := range secret {
		kinds[c] = true
	}
	lower := strings.ToLower(secret)
	upper := strings.ToUpper(secret)
	hasLetters := lower != upper
	hasBothCases := secret != lower && secret != upper
	return len(kinds) >= 8 && (len(secret) >= 32 && hasLetters || len(secret) >= 22 && hasBothCases)
}

// checkCredential returns nil if verify accepts the secret of kind c that r
// carries, and otherwise a problem. verify returns an error for which isMissing
// holds if the secret is wrong. A correct secret of 128 bits is accepted at once,
// so that nobody can lock others out by guessing; a short one has to wait after
// too many wrong guesses.
func (a *access) checkCredential(c credential, r *http.Request, verify func() error) error {
	var wait time.Duration
	var err error
	if c.short {
		wait, err = a.guesses.attempt(r.RemoteAddr, verify)
	} else if err = verify(); isMissing(err) {
		wait = a.guesses.count(r.RemoteAddr)
	}
	if wait == 0 && !isMissing(err) {
		return err
	}
	a.audit("refused", address(r.RemoteAddr).Addr().String(), "wrong "+c.name)
	if wait > 0 {
		return response.Problem{
			Status:     http.StatusTooManyRequests,
			Text:       "Too many failed attempts. Wait a moment, then try again.",
			RetryAfter: wait,
		}
	}
	return response.Problem{Status: http.StatusUnauthorized, Text: c.wrong, Code: c.code}
}

// checkToken returns store.ErrNotFound unless t is the administrator's token. It
// takes the same time for any t.
func (a *access) checkToken(t string) error {
	given := sha256.Sum256([]byte(t))
	right := sha256.Sum256([]byte(a.adminSecret))
	if subtle.ConstantTimeCompare(given[:], right[:]) != 1 || a.adminSecret == "" {
		return store.ErrNotFound
	}
	return nil
}

// bearer returns the bearer token of r, or "".
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// signIn exchanges the administrator's token or a one-time code for a cookie.
func (a *access) signIn(w http.ResponseWriter, r *http.Request, _ visitor) error {
	var ask struct{ Token, Code string }
	r.Body = http.MaxBytesReader(w, r.Body, maxSignIn) // whoever sends it is unknown, and may send many
	if err := body(w, r, &ask); err != nil {
		return err
	}
	name := ownerName
	by := a.adminToken()
	verify := func() error { return a.checkToken(ask.Token) }
	if ask.Code != "" {
		by = oneTime
		verify = func() (err error) {
			name, err = a.people.redeem(r.Context(), ask.Code)
			return err
		}
	}
	if err := a.checkCredential(by, r, verify); err != nil {
		return err
	}
	login := pass{Kind: logins, Person: name, Expires: time.Now().Add(loginLifetime)}
	cookie, _, err := a.people.issue(r.Context(), login)
	if err != nil {
		return err
	}
	a.setCookie(w, r, cookie, loginLifetime)
	if err := a.endPasses(r.Context(), replacedBy(r)); err != nil {
		return err
	}
	a.audit("sign-in", name, "by "+by.name+" from "+r.RemoteAddr)
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// replacedBy selects the logins whose cookies r brings: whoever signs in anew has no further use for them.
func replacedBy(r *http.Request) func(pass) bool {
	old := map[string]bool{}
	for _, c := range r.CookiesNamed(cookieName) {
		old[hashSecret(c.Value)] = true
	}
	return func(p pass) bool { return p.Kind == logins && old[p.ID] }
}

func (a *access) signOut(w http.ResponseWriter, r *http.Request, v visitor) error {
	if err := a.endPasses(r.Context(), func(p pass) bool { return p.ID == v.pass.ID && p.ID != "" }); err != nil {
		return err
	}
	a.setCookie(w, r, "", -time.Second)
	a.audit("sign-in", v.ID, "signed out")
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// link returns a link that signs person in, once, within a day.
func (a *access) link(ctx context.Context, person string) (string, error) {
	code, _, err := a.people.issue(ctx, pass{Kind: links, Person: person, Expires: time.Now().Add(linkLifetime)})
	if err != nil {
		return "", fmt.Errorf("link for %q: %w", person, err)
	}
	return a.names.at(ctx).home + "/signin#" + code, nil // no server, log or preview ever sees a fragment
}

// setCookie sets the login cookie. Scripts and other sites cannot read it, and
// where the page is served over https it is sent over https only (R-S5).
func (a *access) setCookie(w http.ResponseWriter, r *http.Request, value string, life time.Duration) {
	encrypted := strings.HasPrefix(a.names.at(r.Context()).origin, "https:")
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: "/", MaxAge: int(life.Seconds()),
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: encrypted,
	})
}

// endPasses deletes the passes that match selects, and cancels the requests that
// they admitted.
func (a *access) endPasses(ctx context.Context, match func(pass) bool) error {
	err := a.people.deletePasses(ctx, match)
	a.open.Range(func(v, stop any) bool {
		if match(v.(*visitor).pass) {
			stop.(context.CancelFunc)()
		}
		return true
	})
	return err
}
