package signin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"

	"parley/store"
)

// A challenge is how a server has said that it wants to know its users.
type challenge struct {
	URL    string   `json:"url"` // of the server
	Status int      `json:"status"`
	Header []string `json:"header"` // WWW-Authenticate
}

// maxChallenge is how long such a header may be, in bytes.
const maxChallenge = 4000

// challengeFrom returns the challenge that resp is.
func challengeFrom(address string, resp *http.Response) challenge {
	c := challenge{URL: address, Status: resp.StatusCode}
	for _, h := range resp.Header.Values("WWW-Authenticate") {
		if len(h) <= maxChallenge && len(c.Header) < 5 {
			c.Header = append(c.Header, h)
		}
	}
	return c
}

// params returns what the challenge says.
func (c challenge) params() []oauthex.Challenge {
	list, err := oauthex.ParseWWWAuthenticate(c.Header)
	if err != nil {
		return nil
	}
	return list
}

// wantsScope reports whether a sign-in with more scopes helps.
func (c challenge) wantsScope() bool {
	return slices.ContainsFunc(c.params(), func(p oauthex.Challenge) bool {
		return p.Scheme == "bearer" && p.Params["error"] == "insufficient_scope"
	})
}

// response returns c as the package auth of the SDK reads it.
func (c challenge) response() (*http.Request, *http.Response, error) {
	u, err := url.Parse(c.URL)
	if err != nil {
		return nil, nil, err
	}
	header := http.Header{}
	for _, h := range c.Header {
		header.Add("WWW-Authenticate", h)
	}
	resp := &http.Response{StatusCode: c.Status, Header: header, Body: io.NopCloser(strings.NewReader(""))}
	return &http.Request{Method: http.MethodPost, URL: u, Header: http.Header{}}, resp, nil
}

// challengeKey is the key of the challenge of a server in the store.
func challengeKey(server string) string { return "challenge/" + server }

// challengeOf returns how a server has asked for a sign-in, if it has.
func (s *SignIn) challengeOf(server, address string) (challenge, bool) {
	s.mu.Lock()
	c, known := s.required[server]
	s.mu.Unlock()
	if !known {
		var err error
		if c, err = s.readChallenge(server); err != nil {
			s.config.Log.Warn("could not read whether an MCP server wants a sign-in", "server", server, "err", err)
			return challenge{}, false
		}
		c = s.remember(server, c)
	}
	return c, c.URL != "" && c.URL == address
}

// remember keeps c, which was read for a server, unless require has noted another meanwhile. It returns the one
// that counts.
func (s *SignIn) remember(server string, c challenge) challenge {
	s.mu.Lock()
	defer s.mu.Unlock()
	if noted, known := s.required[server]; known {
		return noted
	}
	s.required[server] = c
	return c
}

// readChallenge reads the challenge of a server; it is empty if there is none.
func (s *SignIn) readChallenge(server string) (c challenge, err error) {
	raw, _, err := s.bucket().Get(s.ctx, challengeKey(server))
	if errors.Is(err, store.ErrNotFound) {
		return c, nil
	}
	if err != nil {
		return c, err
	}
	err = json.Unmarshal(raw, &c)
	return c, err
}

// require notes that a server wants a sign-in. Only that of a 401 is kept: it is how sign-ins begin.
func (s *SignIn) require(ctx context.Context, server string, c challenge) error {
	if old, ok := s.challengeOf(server, c.URL); ok &&
		(c.Status != http.StatusUnauthorized || slices.Equal(old.Header, c.Header)) {
		return nil
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	if _, err := s.bucket().Put(context.WithoutCancel(ctx), challengeKey(server), raw, store.Any); err != nil {
		return fmt.Errorf("note that the server wants a sign-in: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.required[server] = c
	return nil
}

// probe returns the challenge of a server that nobody has used so far.
func (t target) probe(ctx context.Context) (c challenge, err error) {
	const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, t.Entry.URL, strings.NewReader(ping))
	if err != nil {
		return c, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := t.Client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok { // the name of the request says nothing to people
			err = fmt.Errorf("cannot reach %s: %w", failed.URL, failed.Err)
		}
		return c, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusUnauthorized && t.Entry.Auth == nil {
		return c, fmt.Errorf("sign in to %s, which answered %s: %w", t.Name, resp.Status, ErrNoSignIn)
	}
	c = challengeFrom(t.Entry.URL, resp)
	c.Status = http.StatusUnauthorized
	return c, nil
}

// revocationEndpoint returns where the tokens of r are revoked; "" if there is no such place.
func (t target) revocationEndpoint(ctx context.Context, c challenge, r *record) string {
	u, err := url.Parse(t.Entry.URL)
	if err != nil {
		return ""
	}
	const wellKnown = "/.well-known/oauth-protected-resource"
	root := u.Scheme + "://" + u.Host
	issuers := []string{root}
	for _, at := range append(metadataOf(c), root+wellKnown+u.Path, root+wellKnown) {
		for _, resource := range []string{t.Entry.URL, root} {
			meta, err := oauthex.GetProtectedResourceMetadata(ctx, at, resource, t.Client)
			if err != nil || meta == nil {
				continue
			}
			issuers = append(meta.AuthorizationServers, issuers...)
		}
	}
	for _, issuer := range issuers {
		meta, err := auth.GetAuthServerMetadata(ctx, issuer, t.Client)
		if err != nil || meta == nil || meta.TokenEndpoint != r.TokenURL {
			continue
		}
		return meta.RevocationEndpoint
	}
	return ""
}

// metadataOf returns the addresses of metadata that a challenge names.
func metadataOf(c challenge) (list []string) {
	for _, p := range c.params() {
		if at := p.Params["resource_metadata"]; at != "" {
			list = append(list, at)
		}
	}
	return list
}
