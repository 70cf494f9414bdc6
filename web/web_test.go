package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"parley/audit"
	"parley/channels/admission"
	"parley/chat"
	"parley/llm"
	"parley/redact"
	"parley/store"
	"parley/store/mem"
	"parley/tools"
	"parley/web/dashboard"
	"parley/web/layout"
	"parley/web/live"
	"parley/web/memorypages"
	"parley/web/schedule"
	"parley/web/talkpages"
	"parley/web/traffic"
)

const (
	token = "0123456789abcdef0123456789abcdef"
	home  = "http://127.0.0.1:18790"
	evil  = `<img src=x onerror="alert(1)">`
)

// A face is a Server, and what it did.
type face struct {
	*Server
	h     http.Handler
	store store.Store

	schedule *schedule.Pages // that clock made

	mu      sync.Mutex
	audited []string
	did     []string
}

func (f *face) note(list *[]string, words ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*list = append(*list, strings.TrimSpace(fmt.Sprintln(words...)))
}

func newFace(t testing.TB, change ...func(*Config)) *face {
	t.Helper()
	f := &face{store: mem.New()}
	c := Config{
		Listen: "127.0.0.1:18790", Token: token, Version: "1.2.3", Store: f.store, Log: slog.New(slog.DiscardHandler), Gateway: f.gateway(t),
		Chat: func(w http.ResponseWriter, r *http.Request, who chat.Sender) {
			fmt.Fprintf(w, "chat %s for %s %s", r.URL.Path, who.ID, who.Role)
		},
		API: func(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string) {
			fmt.Fprintf(w, "api for %s in %s", who.ID, prefix)
		},
		MCP: func(w http.ResponseWriter, _ *http.Request, who chat.Sender, prefix string) {
			fmt.Fprintf(w, "mcp for %s in %s", who.ID, prefix)
		},
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "metrics") }),
		Audit:   func(kind, who, what string) { f.note(&f.audited, kind, who, what) },
	}
	for _, ch := range change {
		ch(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	f.Server, f.h = s, s.Handler()
	return f
}

// letters are dead letters made of functions.
type letters struct {
	list           func(context.Context) ([]chat.DeadLetter, error)
	retry, dismiss func(context.Context, string) error
}

func (l letters) List(ctx context.Context) ([]chat.DeadLetter, error) { return l.list(ctx) }
func (l letters) Retry(ctx context.Context, key string) error         { return l.retry(ctx, key) }
func (l letters) Dismiss(ctx context.Context, key string) error       { return l.dismiss(ctx, key) }

// house is a house where everything that people, models and networks name is evil.
func (f *face) gateway(t testing.TB) Gateway {
	did := func(what string) func(context.Context, string) error {
		return func(_ context.Context, key string) error {
			if key == "absent" {
				return store.ErrNotFound
			}
			f.note(&f.did, what, key)
			return nil
		}
	}
	at := time.Now().Add(-time.Hour)
	held := func(context.Context) ([]chat.DeadLetter, error) {
		to := chat.Address{Channel: evil, Chat: evil}
		reply := chat.Reply{ID: "1", To: to, Text: evil}
		return []chat.DeadLetter{{Key: "telegram//42/7", Reply: reply, Reason: evil, Time: at}}, nil
	}
	entries := []chat.Entry{
		{Kind: chat.Heard, Who: evil, Text: evil, Time: at, Files: []chat.File{{Name: evil}}},
		{Kind: chat.Called, Who: evil, Text: evil, Call: "1", Time: at},
		{Kind: chat.Gave, Who: evil, Text: "```\n" + evil, Call: "1", Time: at},
		{Kind: chat.Said, Who: evil, Text: evil, Time: at},
	}
	clock := f.clock()
	events := audit.NewChain(f.store.Log("audit"), f.store.Bucket("audit"))
	if err := events.Append(context.Background(), audit.Event{Time: at, Kind: "tool", Who: evil, What: evil}); err != nil {
		panic(err)
	}
	notes := f.memory(t)
	talks := Conversations{
		List: func(_ context.Context, prefix string) ([]chat.Talk, error) {
			return []chat.Talk{{Session: "telegram:-100/7", Title: evil, Began: at, Last: at}}, nil
		},
		Transcript: func(_ context.Context, id chat.SessionID) iter.Seq2[chat.Entry, error] {
			return func(yield func(chat.Entry, error) bool) {
				for _, e := range entries {
					if id == "telegram:-100/7" && !yield(e, nil) {
						return
					}
				}
			}
		},
		Search: func(_ context.Context, in func(chat.SessionID) bool, words string, most int) ([]chat.Find, error) {
			return []chat.Find{{Session: evil, Entry: entries[0]}}, nil
		},
		Forget: func(ctx context.Context, id chat.SessionID) error { return did("forget")(ctx, string(id)) },
		Recording: func(_ context.Context, id chat.SessionID) iter.Seq2[[]byte, error] {
			return func(yield func([]byte, error) bool) {
				if id != "telegram:-100/7" {
					yield(nil, store.ErrNotFound)
					return
				}
				_ = yield([]byte("{\"session\":\"telegram:-100/7\"}\n"), nil) && yield([]byte("{}\n"), nil)
			}
		},
	}
	turns := func(_ context.Context, id chat.SessionID) ([]chat.Turn, error) {
		if id != "telegram:-100/7" {
			return nil, nil
		}
		turn := chat.Turn{Parts: []chat.Part{{Entry: entries[0]}, {Entry: entries[1], Step: &chat.Step{Tool: evil, Name: evil, Tip: evil, State: chat.Done}, Result: evil}, {Entry: entries[3]}}}
		return []chat.Turn{turn}, nil
	}
	return Gateway{
		Pages: []layout.Pages{
			f.schedule,
			&memorypages.Pages{Notes: notes, Zone: time.UTC, Audit: func(kind, who, what string) { f.note(&f.audited, kind, who, what) }},
			&talkpages.Pages{List: talks.List, Search: talks.Search, Turns: turns, Zone: time.UTC},
		},
		Conversations: talks,
		DeadLetters: DeadLetters{
			Replies:  letters{list: held, retry: did("resend"), dismiss: did("drop")},
			Messages: letters{list: held, retry: did("again"), dismiss: did("dismiss")},
			Redact:   func(text string) string { return text },
		},
		Toolbox: Toolbox{
			Tools: func(context.Context) ([]tools.Tool, error) {
				listed := tools.Tool{ToolSpec: llm.ToolSpec{Name: "list_dir", Description: evil, Schema: json.RawMessage(`{"type":"object"}`)}}
				alias := listed
				alias.Name, alias.AliasOf, alias.Category = "file_list", "list_dir", "files"
				return []tools.Tool{alias, listed}, nil
			},
			Stats: new(tools.Stats),
			Calls: func(_ context.Context, id chat.SessionID) ([]tools.Record, error) {
				if id != "telegram:-100/7" {
					return nil, store.ErrNotFound
				}
				return []tools.Record{tools.NewRecord(llm.ToolCall{ID: "c1", Name: "list_dir", Args: `{"path":"."}`}, evil, tools.Result{}, "main", 1)}, nil
			},
		},
		Dashboard: f.dashboard(at),
		ToolAdmin: f.toolAdmin(t),
		Scheduler: clock,
		Notes:     notes,
		Model:     func() string { return evil },
		Reasons:   func(context.Context) []string { return nil },
		Warnings:  func() []string { return []string{evil} },
		Disk:      func(context.Context) string { return "2.5 GB " + evil },
		Instances: func() []Instance {
			return []Instance{
				{Name: "process 1 on " + evil, State: Answers, Version: evil, Since: at, Page: evil},
				{Name: "process 2 on " + evil, State: StandsBy, Version: evil, Since: at},
			}
		},
		Channels: func(context.Context) ([]Channel, error) {
			return []Channel{{Name: evil, Trouble: evil, Pending: 3, Oldest: time.Hour}}, nil
		},
		Pairings: func(context.Context) ([]admission.Pairing, error) {
			return []admission.Pairing{{Code: "ABCD2345", Name: evil, Sender: evil, Time: at}}, nil
		},
		Approve: func(_ context.Context, code string) (admission.Pairing, error) {
			if code != "ABCD2345" {
				return admission.Pairing{}, admission.ErrNoPairing
			}
			f.note(&f.did, "approve", code)
			return admission.Pairing{}, nil
		},
		Usage: func(context.Context) ([]llm.Spent, error) {
			return []llm.Spent{
				{Day: "2026-01-01", Who: evil, Model: evil, Turns: 2, Usage: llm.Usage{In: 1000, Out: 10}, Unpriced: 1010},
				{Day: "2026-01-02", Who: "anna", Model: "m", Turns: 1, Usage: llm.Usage{In: 500, Out: 5}, Cost: 5},
			}, nil
		},
		Errors: func() []redact.Line { return []redact.Line{{Time: at, Level: "ERROR", Text: evil}} },
		Events: events,
		Backup: func(_ context.Context, send func(io.Reader)) error { send(strings.NewReader("backup")); return nil },
	}
}

// dashboard shows evil work, which can be stopped while it is there.
func (f *face) dashboard(at time.Time) *dashboard.Dashboard {
	return dashboard.New(dashboard.Config{
		Traffic: traffic.New(),
		Streams: live.New(),
		Usage: func(context.Context) ([]llm.Spent, error) {
			return []llm.Spent{{Day: time.Now().Format(time.DateOnly), Who: evil, Model: evil, Turns: 2, Usage: llm.Usage{In: 1000, Out: 10}, Cost: .5}}, nil
		},
		Problems: func(time.Time) (int, int, bool) { return 2, 3, true },
		Disk: func(context.Context) (dashboard.Disk, error) {
			return dashboard.Disk{Measured: at, Bytes: map[string]int64{evil: 7}}, nil
		},
		Waiting: func(context.Context) (int, error) { return 1, nil },
		Models:  func() []string { return []string{evil} },
		Work: func(context.Context) ([]chat.Work, error) {
			return []chat.Work{{ID: "turn:" + evil, Kind: chat.WorkTurn, What: evil, Doing: evil, Session: evil, Since: at}}, nil
		},
		Stop: func(_ context.Context, id, who string) (chat.Work, error) {
			if id == "absent" {
				return chat.Work{}, store.ErrNotFound
			}
			f.note(&f.did, "stop", id, "for", who)
			return chat.Work{ID: id, Kind: chat.WorkTurn, Session: evil}, nil
		},
	})
}

// An asking is a request as one of our pages makes it, and what is changed in it.
type asking struct {
	method, path, body string
	by                 string // the cookie
	header             http.Header
	host, remote       string
}

// An answer is a response without a connection that would have to be closed.
type answer struct {
	StatusCode int
	Header     http.Header
	Body       *bytes.Buffer
	cookies    []*http.Cookie
}

func (a answer) Cookies() []*http.Cookie { return a.cookies }

func answerOf(w *httptest.ResponseRecorder) answer {
	r := w.Result()
	defer r.Body.Close()
	return answer{r.StatusCode, r.Header, w.Body, r.Cookies()}
}

func (f *face) ask(a asking) answer {
	if a.method == "" {
		a.method = "GET"
	}
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	r := httptest.NewRequestWithContext(ctx, a.method, home+a.path, strings.NewReader(a.body))
	if a.host != "" {
		r.Host = a.host
	}
	if a.remote != "" {
		r.RemoteAddr = a.remote
	}
	if a.by != "" {
		r.AddCookie(&http.Cookie{Name: cookieName, Value: a.by})
	}
	if a.method != "GET" && a.method != "HEAD" {
		r.Header.Set("Origin", home)
		r.Header.Set(ownHeader, "1")
	}
	if a.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for k, vs := range a.header {
		r.Header[k] = vs
		if vs == nil {
			delete(r.Header, k)
		}
	}
	w := httptest.NewRecorder()
	f.h.ServeHTTP(guest{w, leave}, r)
	return answerOf(w)
}

// A guest leaves as soon as an answer turns out to be a stream.
type guest struct {
	*httptest.ResponseRecorder
	leave func()
}

func (g guest) Flush() {
	g.ResponseRecorder.Flush()
	g.leave()
}

func read(t testing.TB, r answer) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (f *face) want(t testing.TB, status int, a asking) answer {
	t.Helper()
	r := f.ask(a)
	if r.StatusCode != status {
		t.Errorf("%s %s by %.4q: %d %s, want %d", a.method, a.path, a.by, r.StatusCode, read(t, r), status)
	}
	return r
}

// renewLogin returns the cookie of somebody who signs in with body.
func (f *face) renewLogin(t testing.TB, body string) string {
	t.Helper()
	r := f.want(t, 204, asking{method: "POST", path: "/signin", body: body})
	for _, c := range r.Cookies() {
		if c.Name == cookieName {
			return c.Value
		}
	}
	t.Fatal("no cookie")
	return ""
}

func (f *face) owner(t testing.TB) string { return f.renewLogin(t, `{"token":"`+token+`"}`) }

// invited returns the cookie of somebody whom the owner invited.
func (f *face) invited(t testing.TB, name string) string {
	t.Helper()
	if err := f.access.people.add(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	link, err := f.Link(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return f.renewLogin(t, codeOf(t, link))
}

// codeOf is what the sign-in page makes of link.
func codeOf(t testing.TB, link string) string {
	t.Helper()
	page, code, _ := strings.Cut(link, "#")
	if page != home+"/signin" || len(code) < 43 {
		t.Fatalf("link is %q", link)
	}
	return `{"code":"` + code + `"}`
}

// decoded reads an answer.
func decoded[T any](t testing.TB, r answer) (v T) {
	t.Helper()
	if err := json.NewDecoder(r.Body).Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

// walk calls f with a request for every route there is.
func (f *face) walk(each func(rt route, a asking)) {
	fill := strings.NewReplacer("/sessions/{id}", "/sessions/telegram:-100%2F7", "/talks/{id}", "/talks/telegram:-100%2F7",
		"/pairings/{id}", "/pairings/ABCD2345", "/people/{id}", "/people/bert", "/changes/{id}", "/changes/2", "/icons/{name}", "/icons/brain.svg", "{id}", "telegram%2F%2F42%2F7")
	for _, rt := range f.routes() {
		method, at, ok := strings.Cut(rt.pattern, " ")
		if !ok {
			method, at = "GET", rt.pattern
		}
		a := asking{method: method, path: fill.Replace(at)}
		if at == "/owner/talks" {
			a.path += "?q=words"
		}
		if strings.HasSuffix(at, "/edit") || strings.HasSuffix(at, "/versions") || strings.HasSuffix(at, "/diff") || strings.HasSuffix(at, "/file") {
			a.path += "?id=calc&version=1&name=meta.json"
		}
		each(rt, a)
	}
}

// R-S3: a stranger gets nothing but health, readiness and the sign-in page, from
// any address, and does not learn what else there is.
func TestStranger(t *testing.T) {
	f := newFace(t, func(c *Config) {
		c.Gateway.Reasons = func(context.Context) []string { return []string{"the disk is full"} }
	})
	open := []string{"GET /healthz", "GET /readyz", "GET /signin", "POST /signin", "GET /assets/signin.js", "GET /assets/owner.css", "GET /assets/theme.js",
		"GET /favicon.ico"}
	seen := 0
	f.walk(func(rt route, a asking) {
		seen++
		for _, remote := range []string{"127.0.0.1:4711", "[::1]:4711", "203.0.113.9:4711"} {
			a.remote = remote
			for _, accept := range []string{"*/*", "text/html"} {
				a.header = http.Header{"Accept": {accept}}
				r := f.ask(a)
				body := read(t, r)
				switch {
				case strings.Contains(body, "disk is full"):
					t.Errorf("%s tells a stranger why", rt.pattern)
				case slices.Contains(open, rt.pattern):
				case accept == "text/html" && a.method == "GET" && r.StatusCode == 303 && r.Header.Get("Location") == "/signin":
				case r.StatusCode != 401 || !strings.Contains(body, "sign in first") && (rt.may != keyed || !strings.Contains(body, needsKey.Text)):
					t.Errorf("%s answers a stranger %d %q", rt.pattern, r.StatusCode, body)
				}
			}
		}
	})
	if seen < 30 {
		t.Errorf("only %d routes", seen)
	}
	for _, at := range []string{"/nothing", "/owner/", "/assets/owner.js", "/assets/app.css", "/signin/", "/healthz/x", "/v1/models"} {
		f.want(t, 401, asking{path: at})
	}
	icon := f.ask(asking{path: "/favicon.ico"}) // browsers ask for it by themselves
	if body := read(t, icon); icon.StatusCode != 200 || icon.Header.Get("Content-Type") != "image/svg+xml" || !strings.HasPrefix(body, "<svg") {
		t.Errorf("the icon is %d %s", icon.StatusCode, icon.Header.Get("Content-Type"))
	}
	for _, by := range []string{"wrong", strings.Repeat("x", 43)} {
		f.want(t, 401, asking{path: "/", by: by})
	}
}

// Somebody invited has the chat, and the owner's pages do not exist for them; nor
// has a key anything but the API.
func TestRights(t *testing.T) {
	f := newFace(t)
	boss, anna := f.owner(t), f.invited(t, "anna")
	f.want(t, 201, asking{method: "POST", path: "/api/people", by: boss, body: `{"name":"bert"}`})
	key := decoded[struct{ Secret string }](t, f.want(t, 201, asking{method: "POST", path: "/api/keys", by: boss, body: `{}`})).Secret
	f.walk(func(rt route, a asking) {
		wantAnna, wantKey := 404, 404
		switch {
		case rt.may == anyone:
			return
		case rt.may == person:
			wantAnna = 200
		case rt.may == administrator:
			wantAnna, wantKey = 403, 403
		case rt.may == keyed:
			wantAnna, wantKey = 401, 200
		}
		if rt.pattern == "POST /signout" {
			return
		}
		if a.by = anna; rt.may != person || rt.pattern != "/" {
			f.want(t, wantAnna, a)
		}
		a.by, a.header = "", http.Header{"Authorization": {"Bearer " + key}}
		f.want(t, wantKey, a)
	})
	if len(f.did) > 0 {
		t.Errorf("they did %q", f.did)
	}
	for by, want := range map[string]string{anna: "chat /x for anna user", boss: "chat /x for owner owner"} {
		if got := read(t, f.want(t, 200, asking{path: "/x", by: by})); got != want {
			t.Errorf("chat got %q, want %q", got, want)
		}
	}
	if got := read(t, f.want(t, 200, asking{path: "/metrics", header: http.Header{"Authorization": {"Bearer " + token}}})); got != "metrics" {
		t.Errorf("metrics for the administrator: %q", got)
	}
}

// The owner's actions do what they say, once, and are told to the audit log (R-S27).
func TestActions(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	f.audited = nil
	for _, c := range []struct{ method, path, did, audited string }{
		{"DELETE", "/api/sessions/telegram:-100%2F7", "forget telegram:-100/7", "session owner deleted: telegram:-100/7"},
		{"POST", "/api/parked/telegram%2F%2F42%2F7/resend", "resend telegram//42/7", "session owner reply sent again: telegram//42/7"},
		{"POST", "/api/parked/telegram%2F%2F42%2F7/drop", "drop telegram//42/7", "session owner reply dropped: telegram//42/7"},
		{"POST", "/api/aside/k/again", "again k", "session owner message answered again: k"},
		{"POST", "/api/aside/k/drop", "dismiss k", "session owner message dropped: k"},
		{"POST", "/api/pairings/ABCD2345/approve", "approve ABCD2345", "access owner paired: ABCD2345"},
	} {
		f.did, f.audited = nil, nil
		status := 204
		if strings.HasSuffix(c.path, "approve") { // it answers with whom it let in
			status = 200
		}
		f.want(t, status, asking{method: c.method, path: c.path, by: boss})
		if !slices.Equal(f.did, []string{c.did}) || !slices.Equal(f.audited, []string{c.audited}) {
			t.Errorf("%s %s did %q and told %q", c.method, c.path, f.did, f.audited)
		}
	}
	f.audited = nil
	for _, at := range []string{"/api/parked/absent/resend", "/api/pairings/WRONG/approve", "/api/aside/absent/drop"} {
		f.want(t, 404, asking{method: "POST", path: at, by: boss})
	}
	if len(f.audited) > 0 {
		t.Errorf("what was not done is told: %q", f.audited)
	}
}

// Where there is no chat, the owner is taken to the pages there are.
func TestNoChat(t *testing.T) {
	f := newFace(t, func(c *Config) { c.Chat = nil })
	boss := f.owner(t)
	if r := f.want(t, 303, asking{path: "/", by: boss}); r.Header.Get("Location") != "/owner" {
		t.Errorf("taken to %q", r.Header.Get("Location"))
	}
	f.want(t, 404, asking{path: "/c/1", by: boss})
	f.want(t, 401, asking{path: "/"})
}

// The socket of the OS user needs no credential (T0).
func TestLocal(t *testing.T) {
	f := newFace(t)
	r := httptest.NewRequestWithContext(t.Context(), "POST", "http://parley/api/people", strings.NewReader(`{"name":"owner"}`))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	f.Local().ServeHTTP(w, r)
	link := decoded[struct{ Link string }](t, answerOf(w)).Link
	f.renewLogin(t, codeOf(t, link))
	w = httptest.NewRecorder()
	f.Local().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://parley/api/status", nil))
	if got := decoded[Overview](t, answerOf(w)); got.Version != "1.2.3" || len(got.Channels) != 1 || len(got.DeadReplies) != 1 {
		t.Errorf("status = %+v", got)
	}
}

func TestHealth(t *testing.T) {
	f := newFace(t, func(c *Config) {
		c.Gateway.Reasons = func(context.Context) []string { return []string{"the disk is full"} }
	})
	if got := strings.TrimSpace(read(t, f.want(t, 200, asking{path: "/healthz"}))); got != `{"status":"ok"}` {
		t.Errorf("healthz: %s", got)
	}
	f.want(t, 200, asking{method: "HEAD", path: "/healthz"})
	f.want(t, 503, asking{path: "/readyz"})
	if got := read(t, f.want(t, 503, asking{path: "/readyz", by: f.owner(t)})); !strings.Contains(got, "the disk is full") {
		t.Errorf("the owner does not learn why: %s", got)
	}
	newFace(t).want(t, 200, asking{path: "/readyz"})
}

// R-S5: what people, models and networks wrote is text on every page.
func TestNothingIsMarkup(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	pages := 0
	f.walk(func(rt route, a asking) {
		if !strings.HasPrefix(rt.pattern, "GET /owner") || rt.pattern == "GET /owner/events" { // a stream of parts of the page
			return
		}
		a.by = boss
		body := read(t, f.want(t, 200, a))
		if low := strings.ToLower(body); strings.Contains(low, "<img") || strings.Contains(low, "javascript:") || strings.Contains(low, "style=") || strings.Contains(low, " onclick") {
			t.Errorf("%s: markup from outside, or not allowed by the policy:\n%s", rt.pattern, body)
		}
		if strings.Contains(body, "&lt;img") {
			pages++
		}
		if !strings.Contains(body, "<h1>") || !strings.Contains(body, `<html lang="en">`) || !strings.Contains(body, "</html>") {
			t.Errorf("%s is no whole page", rt.pattern)
		}
	})
	if pages != 12 {
		t.Errorf("%d pages show what was said, want 12", pages)
	}
	refused := read(t, f.ask(asking{path: "/api/sessions/" + url.PathEscape(evil), by: boss, header: http.Header{"Accept": {"text/html"}}}))
	if strings.Contains(refused, "<img") {
		t.Error("a refusal has markup from the address")
	}
	conversation := read(t, f.ask(asking{path: "/owner/talks/telegram:-100%2F7", by: boss}))
	if !strings.Contains(conversation, `href="/api/sessions/telegram:-100%2F7/export"`) {
		t.Errorf("the way to the export is not there:\n%s", conversation)
	}
	waiting := read(t, f.ask(asking{path: "/owner", by: boss}))
	if !strings.Contains(waiting, `data-post="/api/parked/telegram%2F%2F42%2F7/resend"`) {
		t.Errorf("the button does not say what it does:\n%s", waiting)
	}
	if !strings.Contains(waiting, "<p><b>7 bytes </b>") {
		t.Errorf("nothing says what takes how much of the disk:\n%s", waiting)
	}
}

func TestExport(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	const at = "/api/sessions/telegram:-100%2F7"
	got := decoded[conversation](t, f.want(t, 200, asking{path: at, by: boss}))
	if got.Session != "telegram:-100/7" || len(got.Entries) != 4 || got.Entries[3].Kind != chat.Said || !strings.Contains(got.Note, "secrets") {
		t.Errorf("export = %+v", got)
	}
	md := read(t, f.want(t, 200, asking{path: at + "/export", by: boss}))
	if !strings.Contains(md, "````\n```\n<img") || !strings.Contains(md, "secrets") || !strings.Contains(md, `**heard** \<img`) || !strings.Contains(md, `[file: \<img`) {
		t.Errorf("markdown:\n%s", md)
	}
	f.want(t, 404, asking{path: "/api/sessions/nobody", by: boss})
	f.want(t, 404, asking{path: "/api/sessions/nobody/export", by: boss})
	r := f.want(t, 200, asking{path: "/api/backup", by: boss})
	if got := r.Header.Get("Content-Disposition"); !strings.Contains(got, "holds-secrets") || read(t, r) != "backup" {
		t.Errorf("backup is called %s", got)
	}
}

// A backup that breaks off does not look whole; one that cannot be made says why.
func TestBackupBreaks(t *testing.T) {
	f := newFace(t, func(c *Config) {
		c.Gateway.Backup = func(context.Context, func(io.Reader)) error { return store.ErrFull }
	})
	boss := f.owner(t)
	f.audited = nil
	defer func() {
		if p, _ := recover().(error); !errors.Is(p, http.ErrAbortHandler) {
			t.Errorf("half a backup is whole: %v", p)
		}
	}()
	if r := f.want(t, 507, asking{path: "/api/backup", by: boss}); r.Header.Get("Content-Disposition") != "" || len(f.audited) > 0 {
		t.Errorf("what is none is called one: %v, told %q", r.Header, f.audited)
	}
	f.Server.cfg.Gateway.Backup = func(_ context.Context, send func(io.Reader)) error {
		send(io.MultiReader(strings.NewReader("half"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		return nil
	}
	f.ask(asking{path: "/api/backup", by: boss})
}

// The audit log is verified when that is asked.
func TestAudit(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	verdict := func() string {
		return read(t, f.want(t, 200, asking{path: "/api/audit?verify=yes", by: boss}))
	}
	if got := verdict(); !strings.Contains(got, `"verdict":{"whole":true}`) {
		t.Errorf("got %s", got)
	}
	if _, err := f.store.Log("audit").Append(t.Context(), store.Any, []byte("forged")); err != nil {
		t.Fatal(err)
	}
	if got := verdict(); !strings.Contains(got, `"verdict":{"whole":false,"why":"chain is broken`) {
		t.Errorf("got %s", got)
	}
	if got := read(t, f.want(t, 200, asking{path: "/api/audit", by: boss})); strings.Contains(got, "verdict") {
		t.Errorf("verified unasked: %s", got)
	}
}

func TestUsage(t *testing.T) {
	f := newFace(t)
	boss := f.owner(t)
	u := decoded[usage](t, f.want(t, 200, asking{path: "/api/usage", by: boss}))
	people, days := u.Tables[0].Rows, u.Tables[2].Rows
	if days[0].Name != "2026-01-02" || days[0].Cost != 5 || !days[1].Part || len(days[0].Bars) > 0 {
		t.Errorf("days = %+v, %+v", days[0], days[1])
	}
	if people[0].Usage.In != 1000 || people[1].Name != "anna" {
		t.Errorf("people = %+v, %+v", people[0], people[1])
	}
	if len(u.Days) != chartDays || u.Days[0] != "2025-12-04" || u.Days[28] != "2026-01-01" {
		t.Errorf("from %s, %d days", u.Days[0], len(u.Days))
	}
	for name, c := range map[string]struct{ got, want []int }{
		"all": {u.All.Rows[0].Bars[27:], []int{0, 100, 50}}, "most": {people[0].Bars[27:], []int{0, 100, 0}}, "anna": {people[1].Bars[27:], []int{0, 0, 50}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: bars end with %v, want %v", name, c.got, c.want)
		}
	}
	if page := read(t, f.want(t, 200, asking{path: "/owner/usage", by: boss})); strings.Count(page, "<rect") != chartDays*(1+2+2) {
		t.Errorf("%d bars", strings.Count(page, "<rect"))
	}
	f.Server.cfg.Gateway.Usage = func(context.Context) ([]llm.Spent, error) {
		return []llm.Spent{{Day: "2026-01-02", Turns: 1, Usage: llm.Usage{In: 12_345}, Cost: .0042}}, nil
	}
	for _, figure := range []string{">12\u202f345<", ">0.0042<"} { // as on the other pages
		if page := read(t, f.want(t, 200, asking{path: "/owner/usage", by: boss})); !strings.Contains(page, figure) {
			t.Errorf("the page lacks %s: %s", figure, page)
		}
	}
	f.Server.cfg.Gateway.Usage = func(context.Context) ([]llm.Spent, error) { return nil, nil }
	f.want(t, 200, asking{path: "/owner/usage", by: boss})
}
