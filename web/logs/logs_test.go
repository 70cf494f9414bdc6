package logs

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"

	"parley/chat"
	"parley/redact"
	"parley/web/live"
	"parley/web/webtest"
)

// newPages returns pages of a log, and that log, which hides the word hunter2.
func newPages(level slog.Level) (*Pages, *slog.Logger) {
	var secrets redact.Redactor
	secrets.Add("hunter2")
	p := &Pages{Recent: new(redact.Recent), Streams: live.New()}
	return p, redact.NewLog(io.Discard, level, &secrets, p.Recent)
}

func get(t *testing.T, handle func(http.ResponseWriter, *http.Request, chat.Sender) error, at string) (string, error) {
	t.Helper()
	w := httptest.NewRecorder()
	err := handle(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, at, nil), chat.Sender{})
	return w.Body.String(), err
}

// Filters by level, part, text and time find what they say, the newest first, and secrets are hidden.
func TestFilters(t *testing.T) {
	p, log := newPages(slog.LevelInfo)
	log.Debug("not written")
	log.Info("started", "key", "hunter2")
	log.Warn("a little odd", "n", 1)
	log.With("channel", "x").Error("Broken", "err", "no more tea")
	for query, want := range map[string]string{
		"":                            "Broken|a little odd|started",
		"?level=INFO":                 "Broken|a little odd|started",
		"?level=WARN":                 "Broken|a little odd",
		"?level=ERROR":                "Broken",
		"?q=TEA":                      "Broken",
		"?q=hunter2":                  "",
		"?part=web":                   "Broken|a little odd|started",
		"?part=web/logs&level=ERROR":  "Broken",
		"?part=web/log":               "",
		"?time=5m&q=odd":              "a little odd",
		"?level=WARN&q=tea&part=chat": "",
	} {
		body, err := get(t, p.list, "/api/logs"+query)
		if err != nil {
			t.Fatal(err)
		}
		var got found
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, l := range got.Lines {
			message, _ := split(l)
			words = append(words, message)
			if strings.Contains(l.Text, "hunter2") {
				t.Errorf("a secret is shown: %s", l.Text)
			}
		}
		if strings.Join(words, "|") != want || strings.Join(got.Parts, ",") != "web/logs" {
			t.Errorf("%s: %q of %q, want %q", query, words, got.Parts, want)
		}
	}
	for _, query := range []string{"?level=loud", "?time=2y"} {
		if _, err := get(t, p.list, "/api/logs"+query); err == nil {
			t.Errorf("%s is taken", query)
		}
	}
}

// New lines that the filter takes are sent as they come, and none twice.
func TestTail(t *testing.T) {
	p, log := newPages(slog.LevelInfo)
	log.Warn("before")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := p.follow(w, r, chat.Sender{}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	defer p.Streams.Close()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, server.URL+"?level=WARN&after=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	log.Info("not wanted")
	log.Warn("first <b>")
	log.Error("second")
	lines := bufio.NewScanner(answer.Body)
	for _, want := range []string{`"n":3`, `"n":4`, `"n":5`} {
		if want == `"n":5` { // what was sent is not sent again
			log.Warn("third")
		}
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if !strings.Contains(data, want) || strings.Contains(data, "<b>first <b>") {
					t.Errorf("came %s, want %s", data, want)
				}
				break
			}
		}
	}
}

// What is logged is no markup, and without lines the page says what to do.
func TestPage(t *testing.T) {
	p, log := newPages(slog.LevelInfo)
	if body, err := get(t, p.page, "/owner/logs"); err != nil || !strings.Contains(body, "Nothing was logged yet") {
		t.Errorf("without lines: %v, %s", err, body)
	}
	for _, text := range webtest.Hostile {
		log.Info(text, "text", text)
		body, err := get(t, p.page, "/owner/logs")
		if err != nil {
			t.Fatal(err)
		}
		if faults := webtest.Active(body); len(faults) > 0 || !webtest.Shows(body, text) {
			t.Errorf("%q: %q in %s", text, faults, body)
		}
	}
}

// In a browser: who was signed out in another tab is told so, with a link, and is up to date once they are back.
func TestSignedOut(t *testing.T) {
	ctx := webtest.Browser(t)
	p, log := newPages(slog.LevelInfo)
	var out atomic.Bool
	mux := http.NewServeMux()
	for _, rt := range append(p.Routes(), live.Routes()...) {
		mux.HandleFunc(rt.Pattern, func(w http.ResponseWriter, r *http.Request) {
			if out.Load() && r.URL.Path == pagePath+"/events" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			if err := rt.Handle(w, r, chat.Sender{}); err != nil {
				t.Error(err)
			}
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	t.Cleanup(p.Streams.Close) // before it, which waits for them
	look := func(hidden string) {
		t.Helper()
		script := `(Object.defineProperty(document, "hidden", {value: ` + hidden + `, configurable: true}), document.dispatchEvent(new Event("visibilitychange")), true)`
		if _, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script)); err != nil {
			t.Fatal(err)
		}
	}
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+pagePath)); err != nil {
		t.Fatal(err)
	}
	webtest.Until(ctx, t, `document.getElementById("tail").textContent === "Live"`)
	out.Store(true)
	look("true")
	look("false")
	webtest.Until(ctx, t, `document.getElementById("tail").textContent === "You are signed out. Sign in" && document.querySelector("#tail a").pathname === "/signin"`)
	log.Warn("said meanwhile")
	out.Store(false)
	look("true")
	look("false")
	webtest.Until(ctx, t, `document.getElementById("tail").textContent === "Live" && document.getElementById("lines").innerText.includes("said meanwhile")`)
}
