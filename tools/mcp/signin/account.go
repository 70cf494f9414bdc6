package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

const (
	// renewalMargin is how long before it expires an access token is renewed.
	renewalMargin = time.Minute

	// tokenTimeout limits a request to an authorization server.
	tokenTimeout = 30 * time.Second

	// A token that is refused within refusalWindow of its renewal needs a sign-in.
	refusalWindow = time.Minute
)

// A record is what is kept of a sign-in.
type record struct {
	URL string `json:"url"` // of the server: its tokens go nowhere else

	// What tokens are renewed with.
	TokenURL     string           `json:"tokenUrl"`
	AuthStyle    oauth2.AuthStyle `json:"authStyle"`
	ClientID     string           `json:"clientId"`
	ClientSecret string           `json:"clientSecret,omitempty"`
	Scopes       []string         `json:"scopes,omitempty"`

	Access  string    `json:"access"`
	Type    string    `json:"type,omitempty"`
	Refresh string    `json:"refresh,omitempty"`
	Expiry  time.Time `json:"expiry,omitzero"`
}

// newRecord returns what is kept of token, which a server at address accepts.
func newRecord(address string, c *oauth2.Config, token *oauth2.Token) *record {
	r := &record{
		URL:          address,
		TokenURL:     c.Endpoint.TokenURL,
		AuthStyle:    c.Endpoint.AuthStyle,
		ClientID:     c.ClientID,
		ClientSecret: c.ClientSecret,
		Scopes:       c.Scopes,
	}
	if r.ClientSecret == "" {
		r.AuthStyle = oauth2.AuthStyleInParams
	}
	if granted, ok := token.Extra("scope").(string); ok {
		r.Scopes = strings.Fields(granted)
	}
	return r.with(token)
}

// with returns r with the tokens of token. A server that sends no new refresh token means the old one.
func (r *record) with(token *oauth2.Token) *record {
	next := *r
	next.Access = token.AccessToken
	next.Type = token.TokenType
	next.Expiry = token.Expiry
	if token.RefreshToken != "" {
		next.Refresh = token.RefreshToken
	}
	return &next
}

func (r *record) secrets() []string { return []string{r.Access, r.Refresh, r.ClientSecret} }

func (r *record) token() *oauth2.Token {
	return &oauth2.Token{AccessToken: r.Access, TokenType: r.Type, Expiry: r.Expiry}
}

// expiresWithin reports whether the access token expires so soon.
func (r *record) expiresWithin(d time.Duration) bool {
	return !r.Expiry.IsZero() && time.Until(r.Expiry) < d
}

// An account is the sign-in of one person to one server.
type account struct {
	signIn *SignIn
	key    key

	held    chan struct{} // has a value while somebody uses what follows: one renewal happens at a time
	loaded  bool
	record  *record   // nil: the person is not signed in
	unsaved bool      // record could not be written
	renewed time.Time // when a token that the server refused was replaced
	hidden  []*record // those whose tokens are redacted, the oldest first
}

// keptHidden is how many records back tokens are redacted: what was sent with them may still come back.
const keptHidden = 3

// lock waits until nobody else uses a. Renewals take their time, which a mutex is not for.
func (a *account) lock() { a.held <- struct{}{} }

func (a *account) unlock() { <-a.held }

// errSignedOut is returned by renew if the sign-in has ended.
var errSignedOut = errors.New("the sign-in has ended")

// TokenSource implements [auth.OAuthHandler].
func (h *handler) TokenSource(context.Context) (oauth2.TokenSource, error) {
	if h.key.who == "" {
		return nil, nil
	}
	return h, nil
}

// Token implements [oauth2.TokenSource]. It returns nil if the person is not signed in: the server
// then says what it wants.
func (h *handler) Token() (*oauth2.Token, error) {
	ctx, stop := context.WithTimeout(h.signIn.ctx, tokenTimeout)
	defer stop()
	return h.signIn.account(h.key).token(ctx, h.target)
}

// token returns a token that is valid for a while, nil if there is none.
func (a *account) token(ctx context.Context, t target) (*oauth2.Token, error) {
	a.lock()
	defer a.unlock()
	if err := a.load(ctx, t); err != nil {
		return nil, err
	}
	if a.unsaved {
		a.save(ctx)
	}
	switch {
	case a.record == nil:
		return nil, nil
	case !a.record.expiresWithin(renewalMargin):
		return a.record.token(), nil
	}
	err := a.renew(ctx, t)
	switch {
	case errors.Is(err, errSignedOut):
		return nil, nil
	case err != nil && a.record.expiresWithin(0):
		return nil, err
	case err != nil:
		a.signIn.config.Log.Warn("could not renew a sign-in yet",
			"server", a.key.server, "person", a.key.who, "err", err)
	}
	return a.record.token(), nil
}

// replace gets another token than used, which the server has refused. It reports false if only the
// person can.
func (a *account) replace(ctx context.Context, t target, used string) (renewed bool, err error) {
	a.lock()
	defer a.unlock()
	if err := a.load(ctx, t); err != nil {
		return false, err
	}
	switch {
	case a.record == nil:
		return false, nil
	case a.record.Access != used: // somebody else has replaced it meanwhile
		return true, nil
	case time.Since(a.renewed) < refusalWindow:
		return false, nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), tokenTimeout)
	defer stop()
	if err := a.renew(ctx, t); errors.Is(err, errSignedOut) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	a.renewed = time.Now()
	return true, nil
}

// current returns the record, whatever address it is for; nil if there is none.
func (a *account) current(ctx context.Context) (*record, error) {
	a.lock()
	defer a.unlock()
	if err := a.read(ctx); err != nil {
		return nil, err
	}
	return a.record, nil
}

// read reads the record, unless that was done before. a is locked.
func (a *account) read(ctx context.Context) error {
	if a.loaded {
		return nil
	}
	r, err := a.signIn.read(ctx, a.key)
	if err != nil {
		return err
	}
	a.record = r
	a.loaded = true
	a.hide()
	return nil
}

// load reads the record. One for another address than that of t is
// not used: the name may mean another server now. a is locked.
func (a *account) load(ctx context.Context, t target) error {
	if err := a.read(ctx); err != nil {
		return err
	}
	if a.record != nil && a.record.URL != t.Entry.URL {
		a.record = nil
		return a.signIn.remove(ctx, a.key)
	}
	return nil
}

// hide has the secrets of the record redacted, and no more those of records that are long gone. a is locked.
func (a *account) hide() {
	secrets := a.signIn.config.Secrets
	if a.record == nil || secrets == nil {
		return
	}
	secrets.Add(a.record.secrets()...)
	a.hidden = append(a.hidden, a.record)
	for len(a.hidden) > keptHidden {
		old := a.hidden[0]
		a.hidden = a.hidden[1:]
		for _, token := range []string{old.Access, old.Refresh} {
			isKept := func(r *record) bool { return token == r.Access || token == r.Refresh }
			if !slices.ContainsFunc(a.hidden, isKept) {
				secrets.Remove(token)
			}
		}
	}
}

// renew exchanges the refresh token for new tokens, which are written before they are used: the old
// refresh token may not be valid any more. a is locked.
func (a *account) renew(ctx context.Context, t target) error {
	r := a.record
	if r.Refresh == "" {
		return a.end(ctx, "it cannot be renewed")
	}
	c := oauth2.Config{
		ClientID:     r.ClientID,
		ClientSecret: r.ClientSecret,
		Endpoint:     oauth2.Endpoint{TokenURL: r.TokenURL, AuthStyle: r.AuthStyle},
		Scopes:       r.Scopes,
	}
	source := c.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, t.Client), &oauth2.Token{RefreshToken: r.Refresh})
	token, err := source.Token()
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok {
		switch refused.ErrorCode {
		case "invalid_grant", "invalid_client", "unauthorized_client":
			return a.end(ctx, "the authorization server answered "+refused.ErrorCode)
		}
		return fmt.Errorf("renew the sign-in to %s: the authorization server answered %d", t.Name, statusOf(refused))
	}
	if err != nil {
		return fmt.Errorf("renew the sign-in to %s: %w", t.Name, withoutBody(err))
	}
	a.record = r.with(token)
	a.hide()
	a.save(ctx)
	return nil
}

func statusOf(e *oauth2.RetrieveError) int {
	if e.Response == nil {
		return 0
	}
	return e.Response.StatusCode
}

// withoutBody returns err without what a server may have put into it.
func withoutBody(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return errors.New("its answer cannot be read")
}

// save writes the record. If that fails, the record is used all the same and written at the next use:
// the tokens before it are not valid any more. a is locked.
func (a *account) save(ctx context.Context) {
	err := a.signIn.write(context.WithoutCancel(ctx), a.key, a.record)
	a.unsaved = err != nil
	if err != nil {
		a.signIn.config.Log.Error("sign-in not saved; it is tried again at its next use",
			"server", a.key.server, "person", a.key.who, "err", err)
	}
}

// end removes the record: the person is asked to sign in when the server is used next. a is locked.
func (a *account) end(ctx context.Context, why string) error {
	a.signIn.config.Log.Info("a sign-in to an MCP server has ended",
		"server", a.key.server, "person", a.key.who, "why", why)
	if err := a.signIn.remove(context.WithoutCancel(ctx), a.key); err != nil {
		return err
	}
	a.record = nil
	a.unsaved = false
	return errSignedOut
}

// accept makes r the record: the person has signed in. The error says that it could not be written.
func (a *account) accept(ctx context.Context, r *record) error {
	a.lock()
	defer a.unlock()
	if err := a.signIn.write(context.WithoutCancel(ctx), a.key, r); err != nil {
		return err
	}
	a.record = r
	a.loaded = true
	a.unsaved = false
	a.renewed = time.Time{}
	a.hide()
	return nil
}

// isSignedIn reports whether there are tokens for the server at address.
func (a *account) isSignedIn(ctx context.Context, t target) bool {
	a.lock()
	defer a.unlock()
	return a.load(ctx, t) == nil && a.record != nil
}

// signOut revokes the tokens and removes the record. It reports whether there was one.
func (a *account) signOut(ctx context.Context, t target, c challenge) (was bool, err error) {
	a.lock()
	defer a.unlock()
	if err := a.load(ctx, t); err != nil || a.record == nil {
		return false, errors.Join(err, a.signIn.remove(ctx, a.key)) // perhaps it could not be read
	}
	r := a.record
	if err := a.end(ctx, "the person signed out"); !errors.Is(err, errSignedOut) {
		return true, err
	}
	return true, t.revoke(ctx, c, r)
}

// revoke has the tokens of r revoked, if the authorization server can do that.
func (t target) revoke(ctx context.Context, c challenge, r *record) error {
	ctx, stop := context.WithTimeout(ctx, tokenTimeout)
	defer stop()
	endpoint := t.revocationEndpoint(ctx, c, r)
	if endpoint == "" {
		return nil
	}
	form := url.Values{"token": {r.Access}}
	if r.Refresh != "" {
		form = url.Values{"token": {r.Refresh}, "token_type_hint": {"refresh_token"}}
	}
	if r.AuthStyle != oauth2.AuthStyleInHeader {
		form.Set("client_id", r.ClientID)
		if r.ClientSecret != "" {
			form.Set("client_secret", r.ClientSecret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if r.AuthStyle == oauth2.AuthStyleInHeader {
		req.SetBasicAuth(url.QueryEscape(r.ClientID), url.QueryEscape(r.ClientSecret))
	}
	resp, err := t.Client.Do(req)
	if err != nil {
		return fmt.Errorf("revoke the sign-in to %s: %w", t.Name, withoutBody(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusMultipleChoices {
		return fmt.Errorf("revoke the sign-in to %s: the authorization server answered %d", t.Name, resp.StatusCode)
	}
	return nil
}
