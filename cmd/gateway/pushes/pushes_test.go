package pushes

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/deadletter"
	webchat "parley/channels/web"
	"parley/channels/web/notify"
	"parley/channels/webpush"
	"parley/channels/webpush/webpushtest"
	"parley/chat"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools/network"
	"parley/web"
	"parley/web/dashboard"
)

// TestOnlyPublic: a browser cannot have the gateway call something on its own machine or network.
func TestOnlyPublic(t *testing.T) {
	var called atomic.Bool
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Store(true) }))
	defer srv.Close()
	c := client(network.NewGuard(nil, nil))
	for _, to := range []string{
		srv.URL, "https://127.0.0.1/", "https://[::1]/", "https://10.0.0.1/", "https://169.254.169.254/", "https://192.168.1.1/",
		"https://[::ffff:127.0.0.1]/", "https://1.1.1.1:8443/", "https://localhost/",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, to, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := c.Do(r)
		if err == nil {
			answer.Body.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "is no address of a push service") {
			t.Errorf("%s: %v", to, err)
		}
	}
	if called.Load() {
		t.Error("a server on this machine was called")
	}
}

// A site is the server with the chat page, and a network in which each push service takes what it is given.
type site struct {
	t    *testing.T
	page *web.Server
	chat *webchat.Channel
	h    http.Handler

	mu     sync.Mutex
	pushed []string // the endpoints that were sent something
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pushed = append(s.pushed, r.URL.Path)
	return &http.Response{StatusCode: http.StatusCreated, Body: http.NoBody, Request: r}, nil
}

func newSite(t *testing.T) *site {
	t.Helper()
	s := &site{t: t}
	kept, log := mem.New(), slog.New(slog.DiscardHandler)
	cfg := configOf(kept, log, func() Page { return s.page })
	cfg.Client = &http.Client{Transport: s}
	none := deadletter.New(deadletter.Config{Store: kept})
	var err error
	s.chat, err = webchat.New(webchat.Config{Name: "web", Store: kept, Log: log, Notify: notify.New(cfg)})
	if err != nil {
		t.Fatal(err)
	}
	s.page, err = web.New(web.Config{
		Listen: "127.0.0.1:18790", Store: kept, Log: log, Chat: s.chat.Serve, Audit: func(string, string, string) {},
		Gateway: web.Gateway{Dashboard: &dashboard.Dashboard{}, DeadLetters: web.DeadLetters{Replies: none, Messages: none}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.h = s.page.Handler()
	return s
}

// do sends a request of the browser with that cookie. It returns the cookie that the browser has then.
func (s *site) do(method, path, cookie string, say any, want int) string {
	s.t.Helper()
	body, err := json.Marshal(say)
	if err != nil {
		s.t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), method, "http://127.0.0.1:18790"+path, strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Parley", "1")
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: "parley", Value: cookie})
	}
	w := httptest.NewRecorder()
	s.h.ServeHTTP(w, r)
	answer := w.Result()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != want {
		s.t.Fatalf("%s %s: %d %s", method, path, answer.StatusCode, text)
	}
	for _, c := range answer.Cookies() {
		cookie = c.Value
	}
	return cookie
}

// signIn signs person in, in the browser with that cookie.
func (s *site) signIn(person, cookie string) string {
	s.t.Helper()
	link, err := s.page.Link(s.t.Context(), person)
	if err != nil {
		s.t.Fatal(err)
	}
	_, code, _ := strings.Cut(link, "#")
	return s.do("POST", "/signin", cookie, map[string]string{"code": code}, http.StatusNoContent)
}

// told says something to each of the people, and returns the browsers that were told, in order.
func (s *site) told(id string, people ...string) string {
	s.t.Helper()
	for _, who := range people {
		to := chat.Address{Channel: "web", Chat: who, Thread: "first"}
		if _, err := s.chat.Send(s.t.Context(), chat.Reply{ID: id + who, To: to, Text: "Hello"}); err != nil {
			s.t.Fatal(err)
		}
	}
	timetest.Sleep(time.Minute)
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Sorted(slices.Values(s.pushed))
	s.pushed = nil
	return strings.Join(all, " ")
}

// TestSignedOut: nothing is pushed to a browser that is signed out: on its own page or elsewhere, because its sign-in
// has expired, because somebody has signed in there in their place, or because the owner has removed them.
func TestSignedOut(t *testing.T) {
	real := webpushtest.New(t) // whose browsers have real keys
	timetest.Test(t, func(t *testing.T) {
		s := newSite(t)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.chat.Run(ctx, func(context.Context, chat.Message) error { return nil }) }()
		boss := s.signIn("owner", "")
		for _, name := range []string{"anna", "bob", "carol"} {
			s.do("POST", "/api/people", boss, map[string]string{"name": name}, http.StatusCreated)
		}
		ask := func(name, cookie string) {
			t.Helper()
			sub := webpush.Subscription{Endpoint: "https://push.example/" + name, Keys: real.Subscribe("").Subscription.Keys}
			s.do("PUT", "/push", cookie, map[string]any{"subscription": sub}, http.StatusNoContent)
		}
		phone, laptop, desk, bobs := s.signIn("anna", ""), s.signIn("anna", ""), s.signIn("anna", ""), s.signIn("bob", "")
		ask("boss", boss)
		ask("phone", phone)
		ask("laptop", laptop)
		ask("desk", desk)
		ask("bobs", bobs)
		if all := s.told("1", "owner", "anna", "bob"); all != "/bobs /boss /desk /laptop /phone" {
			t.Errorf("at first %s are told", all)
		}
		s.do("POST", "/signout", phone, nil, http.StatusNoContent)
		s.signIn("carol", desk) // who shares it, and wants no notifications
		s.do("DELETE", "/api/people/bob", boss, nil, http.StatusNoContent)
		if all := s.told("2", "owner", "anna", "bob"); all != "/boss /laptop" {
			t.Errorf("after some were signed out, %s are told", all)
		}
		timetest.Sleep(20 * 24 * time.Hour)
		s.do("GET", "/talks", laptop, nil, http.StatusOK) // which renews its sign-in, and not the owner's
		timetest.Sleep(20 * 24 * time.Hour)
		if all := s.told("3", "owner", "anna", "bob"); all != "/laptop" {
			t.Errorf("after the owner's sign-in has expired, %s are told", all)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := s.chat.Close(); err != nil {
			t.Error(err)
		}
	})
}
