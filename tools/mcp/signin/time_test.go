package signin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools/mcp"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, text string) *http.Response {
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{"Content-Type": {"application/json"}},
		Body:       io.NopCloser(strings.NewReader(text)),
	}
}

// blockedStore fails to write while it is full.
type blockedStore struct {
	store.Store
	full atomic.Bool
}

func (s *blockedStore) Bucket(name string) store.Bucket {
	return blockedBucket{s.Store.Bucket(name), s}
}

type blockedBucket struct {
	store.Bucket
	of *blockedStore
}

func (b blockedBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if b.of.full.Load() {
		return 0, store.ErrFull
	}
	return b.Bucket.Put(ctx, key, val, rev)
}

// A token is renewed a minute before it expires, once for all who need it. What the authorization
// server cannot do at the moment is tried again, as long as the token is valid with it; and tokens that
// could not be written are used, and written later.
func TestTokenIsRenewedInTime(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var renewals atomic.Int32
		var down atomic.Bool
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if down.Load() {
				return answer(http.StatusBadGateway, "canary-in-the-body"), nil
			}
			n := renewals.Add(1)
			if err := r.ParseForm(); err != nil || r.Form.Get("refresh_token") != fmt.Sprintf("refresh-%d", n) {
				return answer(http.StatusBadRequest, `{"error":"invalid_grant"}`), nil
			}
			time.Sleep(time.Second) // a virtual one
			const text = `{"access_token":"access-%[1]d","refresh_token":"refresh-%[1]d","expires_in":3600,"token_type":"Bearer"}`
			return answer(http.StatusOK, fmt.Sprintf(text, n+1)), nil
		})}
		db := &blockedStore{Store: mem.New()}
		config := Config{Store: db, KeyFile: filepath.Join(t.TempDir(), "key"), Home: func() string { return "" }}
		s := New(config)
		defer func() { s.Close() }()
		const address = "https://mcp.example.com"
		h := func() *handler {
			service := mcp.Service{Name: "mail", Entry: mcp.Server{URL: address}, Client: client}
			return s.Handler(service, "telegram:1").(*handler)
		}
		token := func() string {
			got, err := h().Token()
			if err != nil {
				return err.Error()
			}
			if got == nil {
				return ""
			}
			return got.AccessToken
		}
		first := newRecord(address, &oauth2.Config{ClientID: "c", Endpoint: oauth2.Endpoint{TokenURL: "https://a.example.com/token"}},
			&oauth2.Token{AccessToken: "access-1", RefreshToken: "refresh-1", Expiry: time.Now().Add(time.Hour)})
		if err := s.account(key{"mail", "telegram:1"}).accept(t.Context(), first); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(58 * time.Minute)
		if got := token(); got != "access-1" || renewals.Load() != 0 {
			t.Errorf("%s, renewed %d times", got, renewals.Load())
		}
		timetest.Sleep(time.Minute + time.Second)
		down.Store(true)
		if got := token(); got != "access-1" {
			t.Errorf("while the authorization server is down: %s", got)
		}
		down.Store(false)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if got := token(); got != "access-2" {
					t.Error(got)
				}
			})
		}
		all.Wait()
		if n := renewals.Load(); n != 1 {
			t.Errorf("renewed %d times at once", n)
		}
		timetest.Sleep(time.Hour + time.Second)
		down.Store(true)
		if got := token(); !strings.Contains(got, "502") || strings.Contains(got, "canary") {
			t.Errorf("an expired token while the authorization server is down: %s", got)
		}
		down.Store(false)
		db.full.Store(true)
		if got := token(); got != "access-3" {
			t.Errorf("while the disk is full: %s", got)
		}
		db.full.Store(false)
		if got := token(); got != "access-3" {
			t.Error(got)
		}
		s.Close()
		s = New(config)
		if got := token(); got != "access-3" {
			t.Errorf("after a restart: %s", got)
		}
		timetest.Sleep(time.Hour + time.Second)
		renewals.Store(100) // it knows no such refresh token any more
		if got := token(); got != "" {
			t.Errorf("the sign-in has ended, but there is a token %s", got)
		}
	})
}

// A link is good for ten minutes, and nothing of it is left then.
func TestLinkExpires(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if strings.HasSuffix(r.URL.Path, "/oauth-authorization-server") {
				return answer(http.StatusOK, `{"issuer":"https://mcp.example.com","authorization_endpoint":"https://mcp.example.com/a",`+
					`"token_endpoint":"https://mcp.example.com/t","code_challenge_methods_supported":["S256"],`+
					`"response_types_supported":["code"]}`), nil
			}
			return answer(http.StatusNotFound, ""), nil
		})}
		s := New(Config{Store: mem.New(), Home: func() string { return "https://chat.example.com" }})
		defer s.Close()
		entry := mcp.Server{URL: "https://mcp.example.com/mcp", Auth: &mcp.Auth{ClientID: "c"}}
		begun, err := s.Login(t.Context(), mcp.Service{Name: "mail", Entry: entry, Client: client}, "owner")
		if err != nil || !strings.HasPrefix(begun.Link, "https://chat.example.com/oauth/start/") {
			t.Fatal(begun, err)
		}
		timetest.Sleep(flowTimeout - time.Second)
		f := s.flowOf(begun.ID)
		if f == nil {
			t.Fatal("the link does not last")
		}
		timetest.Sleep(2 * time.Second)
		if err := f.wait(t.Context()); !errors.Is(err, errLate) || s.flowOf(begun.ID) != nil {
			t.Errorf("%v", err)
		}
	})
}

// What a redirect of a token request says is not followed, and a public client is named in the body.
func TestTokenRequestsAreSafe(t *testing.T) {
	var seen []string
	client := safeClient(&http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		raw, _ := io.ReadAll(r.Body)
		seen = append(seen, r.URL.Host+" "+r.Header.Get("Authorization")+" "+string(raw))
		resp := answer(http.StatusTemporaryRedirect, "")
		resp.Header.Set("Location", "https://evil.example.com/")
		return resp, nil
	})})
	c := oauth2.Config{ClientID: "https://chat.example.com/c", Endpoint: oauth2.Endpoint{TokenURL: "https://a.example.com/"}}
	ctx := context.WithValue(t.Context(), oauth2.HTTPClient, client)
	if _, err := c.Exchange(ctx, "x"); err == nil {
		t.Error("exchanged")
	}
	for _, s := range seen {
		if !strings.HasPrefix(s, "a.example.com  ") || !strings.Contains(s, "client_id=https%3A%2F%2Fchat.example.com%2Fc") {
			t.Error(s)
		}
	}
}

// redactor counts what is redacted.
type redactor map[string]bool

func (r redactor) Add(all ...string) {
	for _, s := range all {
		r[s] = true
	}
}

func (r redactor) Remove(all ...string) {
	for _, s := range all {
		delete(r, s)
	}
}

// Tokens of the last renewals are redacted, and not those of all time: each costs memory.
func TestOldTokensAreForgotten(t *testing.T) {
	hidden := redactor{}
	s := New(Config{Store: mem.New(), KeyFile: filepath.Join(t.TempDir(), "key"), Secrets: hidden})
	defer s.Close()
	a := s.account(key{"mail", "telegram:1"})
	for n := range 100 {
		r := &record{Access: fmt.Sprint("access-", n), Refresh: "refresh", ClientSecret: "secret"}
		if err := a.accept(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if len(hidden) != keptHidden+2 || !hidden["access-99"] || !hidden["access-98"] || !hidden["refresh"] || !hidden["secret"] {
		t.Errorf("%d: %v", len(hidden), hidden)
	}
}
