package live_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	g "maragu.dev/gomponents"

	"parley/chat"
	"parley/web/live"
	"parley/web/webtest"
)

// A reader is sent what has changed, once; nothing is computed before there is one and
// after it has left; and Close ends a stream.
func TestFollow(t *testing.T) {
	s := live.New()
	var computed, value atomic.Int64
	value.Store('a')
	parts := func(context.Context) ([]live.Part, error) {
		computed.Add(1)
		return []live.Part{{ID: "same", Node: g.Text("<same>")}, {ID: "other", Node: g.Text(string(rune(value.Load())))}}, nil
	}
	over := make(chan error, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		over <- s.Serve(w, r, live.Follow(time.Millisecond, parts))
	}))
	defer server.Close()
	read := func() (*bufio.Scanner, context.CancelFunc) {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("the answer is %s", kind)
		}
		return bufio.NewScanner(answer.Body), leave
	}
	next := func(lines *bufio.Scanner) string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	if computed.Load() > 0 {
		t.Error("it computes without a reader")
	}
	lines, leave := read()
	for _, want := range []string{`{"html":"\u0026lt;same\u0026gt;","id":"same"}`, `{"html":"a","id":"other"}`} {
		if got := next(lines); got != want {
			t.Errorf("first comes %s, want %s", got, want)
		}
	}
	value.Store('b')
	if got := next(lines); got != `{"html":"b","id":"other"}` {
		t.Errorf("then comes %s", got)
	}
	leave()
	if err := <-over; err != nil {
		t.Error(err)
	}
	lines, leave = read()
	defer leave()
	next(lines)
	s.Close()
	for next(lines) != "" {
		continue
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), nil); err == nil {
		t.Error("a stream begins after the end")
	}
}

// In a browser: who was signed out in another tab is told so, with a link, and the page asks no more. Whoever
// signed in meanwhile and comes back has a page that is up to date. A refusal for another reason is tried again.
func TestSignedOut(t *testing.T) {
	ctx := webtest.Browser(t)
	streams := live.New()
	var status, asked atomic.Int64
	status.Store(http.StatusServiceUnavailable)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte(`<span id="live"></span><div data-live="/events"><p id="part"></p></div><script type="module" src="/assets/live.js"></script>`))
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if n := int(status.Load()); n != http.StatusOK {
			w.WriteHeader(n)
			return
		}
		parts := func(context.Context) ([]live.Part, error) { return []live.Part{{ID: "part", Node: g.Text("new")}}, nil }
		if err := streams.Serve(w, r, live.Follow(10*time.Millisecond, parts)); err != nil {
			t.Error(err)
		}
	})
	for _, rt := range live.Routes() {
		mux.HandleFunc(rt.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if err := rt.Handle(w, r, chat.Sender{}); err != nil {
				t.Error(err)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(streams.Close) // before it, which waits for them
	// The page waits 3 s between two tries, and what it does at that moment is all that this test is about.
	const quick = `(window.setTimeout = ((set) => (go) => set(go, 20))(setTimeout), true)`
	show := func(hidden string) {
		t.Helper()
		script := `(Object.defineProperty(document, "hidden", {value: ` + hidden + `, configurable: true}), document.dispatchEvent(new Event("visibilitychange")), true)`
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script)); err != nil {
			t.Fatal(err)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, quick+` && document.getElementById("live").textContent === "No connection, trying again"`)
	status.Store(http.StatusOK)
	webtest.Until(ctx, t, `document.getElementById("live").textContent === "Live" && document.getElementById("part").textContent === "new"`)
	show("true")
	status.Store(http.StatusUnauthorized)
	show("false")
	webtest.Until(ctx, t, `document.getElementById("live").textContent === "You are signed out. Sign in" && document.querySelector("#live a").pathname === "/signin"`)
	before := asked.Load()
	if _, err := chromedp.Run(ctx, chromedp.Sleep(500*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n := asked.Load(); n != before {
		t.Errorf("it asks %d times more", n-before)
	}
	status.Store(http.StatusOK)
	show("true")
	show("false")
	webtest.Until(ctx, t, `document.getElementById("live").textContent === "Live"`)
}
