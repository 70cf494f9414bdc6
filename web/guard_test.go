package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/store"
	"parley/timetest"
)

const public = "https://chat.example.com"

func publicly(c *Config) { c.PublicURL = public }

// R-S1: an Origin is ours exactly, or the request is refused; also where an
// address names it, on upgrades, and whatever the cookie.
func TestOrigin(t *testing.T) {
	f := newFace(t, publicly)
	boss := f.owner(t)
	for _, c := range []struct {
		origin []string
		ok     bool
	}{
		{[]string{home}, true},
		{[]string{public}, true},
		{nil, true}, // with our own header
		{[]string{""}, false},
		{[]string{"null"}, false},
		{[]string{"https://chat.example.com.evil.org"}, false}, // prefix
		{[]string{"https://evil-chat.example.com"}, false},     // suffix
		{[]string{"https://evilchat.example.com"}, false},
		{[]string{"https://example.com"}, false},
		{[]string{"https://chat.example.com@evil.org"}, false}, // userinfo
		{[]string{"https://x@chat.example.com"}, false},
		{[]string{"https://chat.example.com:443"}, false}, // no browser says the usual port
		{[]string{"https://chat.example.com:8443"}, false},
		{[]string{"http://chat.example.com"}, false},
		{[]string{"HTTPS://CHAT.EXAMPLE.COM"}, false},
		{[]string{"https://chat.example.com/"}, false},
		{[]string{"https://chat.example.com."}, false},
		{[]string{"http://127.0.0.1"}, false},
		{[]string{"http://127.0.0.1:3000"}, false}, // another program here
		{[]string{"https://127.0.0.1:18790"}, false},
		{[]string{"http://localhost:18790"}, false}, // ours, but not where this came to
		{[]string{"%zz://"}, false},
		{[]string{"file://"}, false},
		{[]string{home, home}, false},
		{[]string{home, "https://evil.org"}, false},
		{[]string{home + ", https://evil.org"}, false},
	} {
		for _, a := range []asking{
			{method: "POST", path: "/send"},
			{method: "DELETE", path: "/api/keys/x"},
			{method: "POST", path: "/signin", body: `{"token":"` + token + `"}`},
			{method: "GET", path: "/events", header: http.Header{"Accept": {"text/event-stream"}}},
			{method: "GET", path: "/events", header: http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, ownHeader: {"1"}}},
			{method: "POST", path: "/v1/chat/completions"},
		} {
			if a.header == nil {
				a.header = http.Header{}
			}
			a.by, a.header["Origin"] = boss, c.origin
			if r := f.ask(a); (r.StatusCode != 403) != c.ok {
				t.Errorf("%s %s from %q: %d, want ok to be %v", a.method, a.path, c.origin, r.StatusCode, c.ok)
			}
		}
	}
}

// R-S5: a write says that it is from a page of ours, or comes with a token.
func TestForgery(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	for name, c := range map[string]struct {
		header http.Header
		want   int
	}{
		"as our page":              {nil, 200},
		"no origin, our header":    {http.Header{"Origin": nil}, 200},
		"origin, not our header":   {http.Header{ownHeader: nil}, 403},
		"neither":                  {http.Header{"Origin": nil, ownHeader: nil}, 403},
		"token":                    {http.Header{"Origin": nil, ownHeader: nil, "Authorization": {"Bearer " + token}, "Cookie": nil}, 200},
		"wrong token, with cookie": {http.Header{"Authorization": {"Bearer wrong"}}, 401},
		"fetch of another site":    {http.Header{"Sec-Fetch-Site": {"cross-site"}}, 403},
		"another program here":     {http.Header{"Sec-Fetch-Site": {"same-site"}}, 403},
		"same origin":              {http.Header{"Sec-Fetch-Site": {"same-origin"}}, 200},
	} {
		for _, method := range []string{"POST", "PUT", "PATCH", "DELETE"} {
			if r := f.ask(asking{method: method, path: "/x", by: boss, header: c.header}); r.StatusCode != c.want {
				t.Errorf("%s %s: %d, want %d", name, method, r.StatusCode, c.want)
			}
		}
	}
	f.want(t, 403, asking{path: "/x", by: boss, header: http.Header{"Upgrade": {"websocket"}}})
	f.want(t, 403, asking{path: "/x", by: boss, header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"no-cors"}}})
	f.want(t, 200, asking{path: "/x", by: boss, header: http.Header{"Sec-Fetch-Site": {"cross-site"}, "Sec-Fetch-Mode": {"navigate"}}})
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		f.want(t, 415, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"anna"}`, header: http.Header{"Content-Type": {kind}}})
	}
	f.want(t, 413, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"` + strings.Repeat("x", 1<<20) + `"}`})
	for _, body := range []string{"", "{", "[]", `{"name":"anna","role":"owner"}`, `{"name":1}`} {
		f.want(t, 400, asking{method: "POST", path: "/api/people", by: boss, body: body, header: http.Header{"Content-Type": {"application/json"}}})
	}
	if all, err := list(t.Context(), f.access.people.invited, ""); err != nil || len(all) > 0 {
		t.Errorf("somebody was let in: %v %v", all, err)
	}
}

// R-S5: GET never writes.
func TestReadingWritesNothing(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	before := f.dump(t)
	f.did = nil
	f.walk(func(rt route, a asking) {
		a.method, a.by = "GET", boss
		f.ask(a)
	})
	if after := f.dump(t); before != after || len(f.did) > 0 {
		t.Errorf("reading did %q and changed\n%s\nto\n%s", f.did, before, after)
	}
}

// dump is all that a Server keeps.
func (f *face) dump(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, name := range []string{"web/people", "web/passes"} {
		for key, err := range f.store.Bucket(name).Keys(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			val, _, err := f.store.Bucket(name).Get(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintln(&b, name, key, string(val))
		}
	}
	return b.String()
}

// R-S2: a name that is not ours gets nothing, also where nothing is secret.
func TestHost(t *testing.T) {
	for _, c := range []struct {
		listen, public, host string
		ok                   bool
	}{
		{"127.0.0.1:18790", "", "127.0.0.1:18790", true},
		{"127.0.0.1:18790", "", "localhost:18790", true},
		{"127.0.0.1:18790", "", "LocalHost:18790", true},
		{"127.0.0.1:18790", "", "[::1]:18790", true},
		{"127.0.0.1:18790", "", "127.0.0.1", false},
		{"127.0.0.1:18790", "", "127.0.0.1:80", false},
		{"127.0.0.1:18790", "", "127.0.0.2:18790", false},
		{"127.0.0.1:18790", "", "0.0.0.0:18790", false},
		{"127.0.0.1:18790", "", "rebound.evil.org:18790", false},
		{"127.0.0.1:18790", "", "localhost.evil.org:18790", false},
		{"127.0.0.1:18790", "", "127.0.0.1.evil.org:18790", false},
		{"127.0.0.1:18790", "", "localhost:18790.", false},
		{"127.0.0.1:18790", "", "evil@localhost:18790", false},
		{"127.0.0.1:18790", "", "", false},
		{"127.0.0.1:80", "", "localhost", true},
		{"127.0.0.1:18790", public, "chat.example.com", true},
		{"127.0.0.1:18790", public + ":443", "chat.example.com", true},
		{"127.0.0.1:18790", "https://Chat.Example.com", "chat.example.com", true},
		{"127.0.0.1:18790", public, "evil.chat.example.com", false},
		{"127.0.0.1:18790", public, "chat.example.com:8443", false},
		{"0.0.0.0:18790", "", "0.0.0.0:18790", false},
		{":18790", "", "192.168.1.5:18790", false},
		{":18790", "http://192.168.1.5:18790", "192.168.1.5:18790", true},
		{"192.168.1.5:18790", "", "192.168.1.5:18790", true},
	} {
		f := newFace(t, func(cfg *Config) { cfg.Listen, cfg.PublicURL = c.listen, c.public })
		for _, at := range []string{"/healthz", "/signin", "/assets/owner.css", "/", "/v1/models", "/nothing"} {
			r := httptest.NewRequestWithContext(t.Context(), "GET", "http://x"+at, nil)
			r.Host = c.host
			w := httptest.NewRecorder()
			f.h.ServeHTTP(w, r)
			if (w.Code != 403) != c.ok {
				t.Errorf("at %s, public %q, host %q, %s: %d, want ok to be %v", c.listen, c.public, c.host, at, w.Code, c.ok)
			}
		}
	}
	for _, wrong := range []string{"chat.example.com", "ftp://x", "https://", "https://a/b", "https://u@a", "https://a?b", "https://a#b", "://"} {
		if _, err := New(Config{Listen: "127.0.0.1:1", PublicURL: wrong, Store: newFace(t).store}); err == nil || !strings.Contains(err.Error(), "http.publicUrl") {
			t.Errorf("publicUrl %q: %v", wrong, err)
		}
	}
}

// R-S5: every answer says what browsers may do with it, refusals too.
func TestHeaders(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	check := func(what string, h http.Header) {
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
			"Permissions-Policy": "microphone=(self), camera=(), geolocation=(), payment=(), usb=()",
		} {
			if h.Get(name) != want {
				t.Errorf("%s: %s is %q", what, name, h.Get(name))
			}
		}
		csp := h.Get("Content-Security-Policy")
		for _, want := range []string{"default-src 'none'", "script-src 'self';", "style-src 'self';", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("%s: no %s in %q", what, want, csp)
			}
		}
		if cache := h.Get("Cache-Control"); cache != "no-store" && !strings.HasPrefix(what, "GET /assets/") {
			t.Errorf("%s: may be kept: %q", what, cache)
		}
		if h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: open to other sites", what)
		}
	}
	f.walk(func(rt route, a asking) {
		check(rt.pattern, f.ask(a).Header)
		if a.by = boss; a.method == "GET" {
			check(rt.pattern, f.ask(a).Header)
		}
	})
	check("host", f.ask(asking{path: "/", host: "evil.org"}).Header)
	check("origin", f.ask(asking{method: "POST", path: "/", header: http.Header{"Origin": {"null"}}}).Header)
}

// What is said to a person when the store is in trouble (P19).
func TestStoreTrouble(t *testing.T) {
	f := newFace(t, func(c *Config) {
		c.Gateway.Conversations.Forget = func(context.Context, chat.SessionID) error { return fmt.Errorf("forget: %w", store.ErrFull) }
		c.Gateway.DeadLetters.Replies = letters{
			list: func(context.Context) ([]chat.DeadLetter, error) { return nil, io.ErrUnexpectedEOF },
		}
	})
	boss := f.owner(t)
	if got := read(t, f.want(t, 507, asking{method: "DELETE", path: "/api/sessions/x", by: boss})); !strings.Contains(got, "disk is full") {
		t.Errorf("full disk: %s", got)
	}
	if got := read(t, f.want(t, 500, asking{path: "/api/status", by: boss})); strings.Contains(got, "EOF") {
		t.Errorf("trouble is told with its cause: %s", got)
	}
	f.store.Close()
	f.want(t, 500, asking{path: "/", by: boss})
	f.want(t, 200, asking{path: "/healthz"})
}

// Over real sockets: a stream goes on until whoever reads it is put out.
func TestServer(t *testing.T) {
	streaming := make(chan struct{})
	f := newFace(t, func(c *Config) {
		c.Chat = func(w http.ResponseWriter, r *http.Request, _ chat.Sender) {
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			close(streaming)
			<-r.Context().Done()
		}
	})
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f.names.hosts = append(f.names.hosts, l.Addr().String())
	srv := f.HTTP(f.h)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	defer func() {
		srv.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	anna := f.invited(t, "anna")
	r, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+l.Addr().String()+"/events", nil)
	r.AddCookie(&http.Cookie{Name: cookieName, Value: anna})
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	<-streaming
	may := func(name string, want bool) { // R-S24
		t.Helper()
		if got, err := f.May(t.Context(), name); got != want || err != nil {
			t.Errorf("%s may come in: %v, %v", name, got, err)
		}
	}
	may("anna", true)
	f.want(t, 204, asking{method: "DELETE", path: "/api/people/anna", by: f.owner(t)})
	may("anna", false)
	may("owner", true)
	may("nobody", false)
	if _, err := io.ReadAll(got.Body); err != nil { // it would wait for ever
		t.Error(err)
	}
	http.DefaultClient.CloseIdleConnections()
}

// R-S3: a thousand wrong guesses from one place, or from a thousand, take more
// than 15 minutes, this machine included, whatever the headers say.
func TestGuesses(t *testing.T) {
	for name, c := range map[string]struct {
		remote func(int) string
		guess  func(int) asking
	}{
		"token from here": {
			func(int) string { return "127.0.0.1:4711" },
			func(i int) asking {
				return asking{method: "POST", path: "/signin", body: fmt.Sprintf(`{"token":"%d"}`, i)}
			},
		},
		"token, many ports and headers": {
			func(i int) string { return fmt.Sprintf("[::1]:%d", 1000+i) },
			func(i int) asking {
				return asking{method: "POST", path: "/signin", body: fmt.Sprintf(`{"token":"%d"}`, i), header: http.Header{
					"X-Forwarded-For": {fmt.Sprintf("10.0.0.%d", i)}, "X-Real-Ip": {fmt.Sprint(i)}, "Forwarded": {"for=1.2.3.4"}}}
			},
		},
		"codes, many addresses": {
			func(i int) string { return fmt.Sprintf("10.0.%d.%d:1", i/256%256, i%256) },
			func(i int) asking {
				return asking{method: "POST", path: "/signin", body: fmt.Sprintf(`{"code":"%d"}`, i)}
			},
		},
		"bearer, one household": {
			func(i int) string { return fmt.Sprintf("[2001:db8::%x]:1", i%65536) },
			func(i int) asking {
				return asking{path: "/metrics", header: http.Header{"Authorization": {fmt.Sprintf("Bearer %d", i)}}}
			},
		},
		"keys": {
			func(i int) string { return fmt.Sprintf("10.0.%d.%d:1", i/256%256, i%256) },
			func(i int) asking {
				return asking{path: "/v1/models", header: http.Header{"Authorization": {fmt.Sprintf("Bearer %s%d", keyPrefix, i)}}}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			timetest.TestWithOthers(t, func(t *testing.T) {
				f := newFace(t)
				start, wrong := time.Now(), 0
				for i := 0; wrong < 1000; i++ {
					a := c.guess(i)
					a.remote = c.remote(i)
					switch r := f.ask(a); r.StatusCode {
					case 401:
						wrong++
					case 429:
						if r.Header.Get("Retry-After") == "" {
							t.Fatal("it does not say when to try again")
						}
						timetest.Sleep(300 * time.Millisecond)
					default:
						t.Fatalf("guess %d: %d", i, r.StatusCode)
					}
				}
				if took := time.Since(start); took <= 15*time.Minute {
					t.Errorf("took %v", took)
				}
				if len(f.audited) < 1000 || !strings.HasPrefix(f.audited[0], "refused ") {
					t.Errorf("%d told, the first %q", len(f.audited), f.audited[0])
				}
				if n := len(f.access.guesses.byAddr); n > maxAddresses+totalBurst {
					t.Errorf("%d addresses are remembered", n)
				}
			})
		})
	}
}

// R-S1, R-S2: what another gateway passes on was asked of the address of its page, by no other name and by no page of
// another site; what it cannot say stays as it is here.
func TestHostPassedOn(t *testing.T) {
	for _, c := range []struct {
		at, public, host, origin string
		ok                       bool
		there                    string // the public URL of the other gateway
	}{
		{at: "0.0.0.0:18790", host: "localhost:18792", origin: "http://localhost:18792", there: "http://localhost:18792", ok: true},
		{at: "0.0.0.0:18790", host: "localhost:18791", there: "http://localhost:18792"},
		{at: "0.0.0.0:18790", public: "https://a.example", host: "b.example", there: "https://b.example", ok: true},
		{at: "0.0.0.0:18790", public: "https://a.example", host: "a.example", there: "https://b.example"},
		{at: "127.0.0.1:18792", public: "", host: "127.0.0.1:18792", origin: "http://127.0.0.1:18792", ok: true},
		{at: "127.0.0.1:18792", public: "", host: "localhost:18792", origin: "", ok: true},
		{at: "127.0.0.1:18792", public: "", host: "localhost:18790", origin: ""},
		{at: "127.0.0.1:18792", public: "", host: "localhost:18792", origin: "http://localhost:18790"},
		{at: "0.0.0.0:18792", public: "", host: "evil.example:18792", origin: ""},
		{at: "127.0.0.1:18792", public: "https://chat.example.com", host: "chat.example.com", origin: "https://chat.example.com", ok: true, there: "https://chat.example.com"},
		{at: "10.0.0.6:18792", public: "https://chat.example.com", host: "10.0.0.6:18792", origin: "http://10.0.0.6:18792", ok: true},
		{at: "10.0.0.6:18792", public: "https://chat.example.com", host: "chat.example.com"},
		{at: "127.0.0.1:18792", public: "https://chat.example.com", host: "evil.example", origin: ""},
		{at: "", public: "", host: "127.0.0.1:18790", origin: "", ok: true},
		{at: "", public: "", host: "evil.example", origin: ""},
	} {
		f := newFace(t, func(cfg *Config) { cfg.Listen, cfg.PublicURL = "127.0.0.1:18790", c.public })
		ctx := context.WithValue(t.Context(), http.LocalAddrContextKey, store.Address{Name: c.at, Public: c.there})
		r := httptest.NewRequestWithContext(ctx, "GET", "http://x/signin", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		f.h.ServeHTTP(w, r)
		if (w.Code != 403) != c.ok {
			t.Errorf("passed on at %q, public %q, host %q, origin %q: %d, want ok to be %v", c.at, c.public, c.host, c.origin, w.Code, c.ok)
		}
	}
}
