package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/timetest"
	"parley/tools"
)

func read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

const found = "Results for: go \"1.26\" & more\n\n" +
	"1. Go 1.26 Release Notes\n   https://go.dev/doc/go1.26\n   What's new in Go 1.26 & later\n" +
	"2. The Go Blog\n   https://go.dev/blog/?a=1&b=2\n   News of the Go team\n" +
	"3. No snippet\n   https://example.com/"

// D-080, A-032: what each provider is asked, and what becomes of its answer.
func TestProviders(t *testing.T) {
	const query = `go "1.26" & more`
	for _, c := range []struct{ name, key, file, want string }{
		{"duckduckgo", "", "duckduckgo.html", "POST /html/\nContent-Type: application/x-www-form-urlencoded\n\nq=go+%221.26%22+%26+more"},
		{"brave", "k", "brave.json", "GET /res/v1/web/search?q=go+%221.26%22+%26+more&count=5\nX-Subscription-Token: k\n\n"},
		{"tavily", "k", "tavily.json", "POST /search\nAuthorization: Bearer k\nContent-Type: application/json\n\n" + `{"query":"go \"1.26\" \u0026 more","max_results":5}`},
		{"searxng", "", "searxng.json", "GET /search?q=go+%221.26%22+%26+more&format=json\n\n"},
		{"jina", "k", "jina.json", "GET /?q=go+%221.26%22+%26+more&num=5\nAuthorization: Bearer k\nX-Respond-With: no-content\n\n"},
		{"kagi", "k", "kagi.json", "GET /api/v0/search?q=go+%221.26%22+%26+more&limit=5\nAuthorization: Bot k\n\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got string
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				got = r.Method + " " + r.RequestURI + "\n"
				for _, h := range []string{"Authorization", "Content-Type", "X-Respond-With", "X-Subscription-Token"} {
					if v := r.Header.Get(h); v != "" {
						got += h + ": " + v + "\n"
					}
				}
				got += "\n" + string(body)
				_, _ = io.WriteString(w, read(t, c.file))
			}))
			defer srv.Close()
			kit := newKit(t, Config{Search: []Provider{{c.name, srv.URL + "/", c.key}}})
			r := callKit(t, kit, "web_search", `{"query":`+quote(query)+`}`)
			if r.Text != banner+found || r.Failed || r.Verdict != tools.Fine {
				t.Errorf("%s\nwant\n%s", r.Text, banner+found)
			}
			if got != c.want {
				t.Errorf("asked\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

// The page of DuckDuckGo for old browsers is asked when the other one is refused.
func TestLite(t *testing.T) {
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.RequestURI)
		if r.URL.Path == "/html/" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		_, _ = io.WriteString(w, read(t, "duckduckgo-lite.html"))
	}))
	defer srv.Close()
	kit := newKit(t, Config{Search: []Provider{{Name: "duckduckgo", BaseURL: srv.URL}}})
	if r := callKit(t, kit, "web_search", `{"q":"go \"1.26\" & more"}`); r.Text != banner+found {
		t.Error(r.Text)
	}
	if got := strings.Join(asked, " "); got != "/html/ /lite/" {
		t.Errorf("asked %s", got)
	}
}

// fake is a RoundTripper of a search's client.
type fake func(*http.Request) (*http.Response, error)

func (f fake) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reply(status int, body string) (*http.Response, error) {
	return &http.Response{StatusCode: status, Header: http.Header{"Location": {"http://elsewhere/"}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

func hitsOf(n int) string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf(`{"title":"T%d","url":"https://e.com/%d","description":"S"}`, i, i))
	}
	return `{"results":[` + strings.Join(list, ",") + `]}`
}

// D-080, A-032, E-005, E-019, E-020: how many results there are; none is poor.
func TestSearchCounts(t *testing.T) {
	n := 20
	kit := newKit(t, Config{Search: []Provider{{Name: "searxng", BaseURL: "http://sx"}}, transport: fake(func(*http.Request) (*http.Response, error) {
		return reply(200, hitsOf(n))
	})})
	for args, want := range map[string]int{
		`{"query":"x"}`: 5, `{"query":"x","max_results":10}`: 10, `{"q":"x","count":3}`: 3, `{"search_term":"x","num":"7"}`: 7, `{"Query":"x","num_results":1}`: 1,
	} {
		r := callKit(t, kit, "web_search", args)
		if got := strings.Count(r.Text, "https://e.com/"); got != want {
			t.Errorf("%s: %d results, want %d", args, got, want)
		}
		if list := r.Data.(map[string]any)["results"].([]hit); len(list) != want { // A-032
			t.Errorf("%s: %d in Data", args, len(list))
		}
	}
	for args, want := range map[string]string{
		`{"query":"x","max_results":11}`: "max_results must be <= 10", `{"query":"x","max_results":0}`: "max_results must be >= 1", `{}`: "query is required",
	} {
		if r := callKit(t, kit, "web_search", args); r.Text != "Error: Invalid parameters for tool 'web_search': "+want+hint {
			t.Error(r.Text)
		}
	}
	n = 0
	r := callKit(t, kit, "web_search", `{"query":"nothing"}`)
	if r.Text != banner+"No results for: nothing" || r.Failed || r.Verdict != tools.Poor {
		t.Errorf("none: %s, verdict %q", r.Text, r.Verdict)
	}
}

// merge.md §2.6, E-006: the names of other systems, their arguments and their JSON.
func TestOrganic(t *testing.T) {
	n := 2
	kit := newKit(t, Config{Search: []Provider{{Name: "searxng", BaseURL: "http://sx"}}, transport: fake(func(*http.Request) (*http.Response, error) {
		return reply(200, hitsOf(n))
	})})
	const want = `{"organic":[{"link":"https://e.com/0","position":1,"snippet":"S","title":"T0"},{"link":"https://e.com/1","position":2,"snippet":"S","title":"T1"}],"untrusted":true}`
	for tool, args := range map[string]string{"google_search": `{"q":"x","num":10}`, "sogou_search": `{"Query":"x"}`} {
		n = 2
		if r := callKit(t, kit, tool, args); r.Text != want || r.Verdict != tools.Fine {
			t.Errorf("%s: %s", tool, r.Text)
		}
		n = 0
		if r := callKit(t, kit, tool, args); r.Text != `{"organic":[],"untrusted":true}` || r.Verdict != tools.Poor {
			t.Errorf("%s, none: %s, verdict %q", tool, r.Text, r.Verdict)
		}
	}
}

// A search under another name of the tool is the same search (E-010).
func TestSearchByAlias(t *testing.T) {
	asked := 0
	list, err := New(Config{Search: []Provider{{Name: "searxng", BaseURL: "http://sx"}}, transport: fake(func(*http.Request) (*http.Response, error) {
		asked++
		return reply(200, hitsOf(1))
	})})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(list)}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	search := func(id, name, args string) tools.Result {
		return turn.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: id, Name: name, Args: args}, Scope: tools.Scope{Turn: "turn"}})
	}
	first := search("1", "web_search", `{"query":"x"}`)
	again := search("2", "google_search", `{"q":"x"}`)
	if asked != 1 || first.Failed || again.Failed || !again.Cached {
		t.Errorf("asked %d times: %+v", asked, again)
	}
}

// E-014, E-035: what an empty result is.
func TestEmpty(t *testing.T) {
	for i, c := range []struct {
		result any
		want   bool
	}{
		{`{"organic":[]}`, true},
		{map[string]any{"organic": []any{}}, true},
		{`{"organic":[{"title":"x"}]}`, false},
		{`{"searchParameters":{}}`, true}, // no list
		{`{"organic":[`, false},           // not understood
		{"", false},                       // nothing
		{nil, false},
		{`{}`, false},
		{`{"organic":"x"}`, false},
		{`{"organic":null}`, true},
	} {
		if got := empty(c.result, "organic"); got != c.want {
			t.Errorf("%d: empty(%v) = %v", i, c.result, got)
		}
	}
}

// A provider that fails rests: a minute at first, then twice as long, up to ten.
// Meanwhile the next one is asked.
func TestRest(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		status := 429
		asked := 0
		s, err := newSearcher(Config{Search: []Provider{{Name: "brave", Key: "k"}, {Name: "searxng", BaseURL: "http://sx"}}, transport: fake(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "sx" {
				return reply(200, hitsOf(1))
			}
			asked++
			return reply(status, hitsOf(2))
		})})
		if err != nil {
			t.Fatal(err)
		}
		search := func(hits, asks int) {
			t.Helper()
			if list, err := s.search(t.Context(), "q", 5); err != nil || len(list) != hits || asked != asks {
				t.Errorf("%d hits, err %v, asked %d times; want %d and %d", len(list), err, asked, hits, asks)
			}
		}
		search(1, 1)
		search(1, 1)
		for i, rest := range []time.Duration{1, 2, 4, 8, 10, 10} {
			timetest.Sleep(rest*time.Minute - time.Second)
			search(1, i+1)
			timetest.Sleep(time.Second)
			search(1, i+2)
		}
		status = 200
		timetest.Sleep(10 * time.Minute)
		search(2, 8)
		status = 500
		search(1, 9)
		timetest.Sleep(time.Minute) // a success makes it the first failure again
		search(1, 10)
	})
}

// D-084: what a provider says of a hit stays in its place and has its size.
func TestHitsAreHarmless(t *testing.T) {
	hits := []map[string]string{
		{"title": "A\n\n2. Forged", "url": "https://e.com/a", "description": "one\ntwo <b>three</b>"},
		{"title": "B", "url": "https://e.com/\n\n3. Forged", "description": "x"},
		{"title": "C", "url": "javascript:alert(1)"},
		{"title": "D", "url": "httpx://e.com/"},
		{"title": "E", "url": "https://e.com/" + strings.Repeat("x", 3000)},
		{"title": "F", "url": "https://e.com/f"},
	}
	kit := newKit(t, Config{Search: []Provider{{Name: "searxng", BaseURL: "http://sx"}}, transport: fake(func(*http.Request) (*http.Response, error) {
		return reply(200, quote(map[string]any{"results": hits}))
	})})
	want := banner + "Results for: x\n\n1. A 2. Forged\n   https://e.com/a\n   one two three\n2. F\n   https://e.com/f"
	if r := callKit(t, kit, "web_search", `{"query":"x","max_results":10}`); r.Text != want {
		t.Errorf("%q, want %q", r.Text, want)
	}
}

// An error of a search names neither the provider's address nor its port.
func TestSearchUnreachable(t *testing.T) {
	srv := httptest.NewServer(nil)
	srv.Close()
	for base, want := range map[string]string{srv.URL: "cannot be reached", "http://secret-name.invalid": "cannot be reached"} {
		kit := newKit(t, Config{Search: []Provider{{Name: "searxng", BaseURL: base}}})
		if r := callKit(t, kit, "web_search", `{"query":"q"}`); r.Text != "Error: web search is not available: searxng: "+want+hint {
			t.Error(r.Text)
		}
	}
}

// Nobody is left: the model reads why, and no key or address.
func TestSearchFails(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		const secret = "sekret"
		var log bytes.Buffer
		hang := false
		kit := newKit(t, Config{
			Log:    slog.New(slog.NewTextHandler(&log, nil)),
			Search: []Provider{{"tavily", "http://tv/" + secret, secret}, {"brave", "", secret}, {"kagi", "", secret}, {"searxng", "http://%zz/" + secret, ""}},
			transport: fake(func(r *http.Request) (*http.Response, error) {
				switch {
				case hang:
					<-r.Context().Done()
					return nil, r.Context().Err()
				case r.URL.Host == "tv":
					return nil, errors.New("connection refused")
				case r.URL.Host == "kagi.com":
					return reply(200, "<html>")
				}
				return reply(302, secret)
			}),
		})
		r := callKit(t, kit, "web_search", `{"query":"q"}`)
		want := "Error: web search is not available: tavily: connection refused; brave: HTTP 302; kagi: its answer cannot be parsed; searxng: its address is not a URL"
		if r.Text != want+hint {
			t.Errorf("%s\nwant %s", r.Text, want)
		}
		r = callKit(t, kit, "web_search", `{"query":"q"}`)
		want = "Error: web search is not available: tavily failed, and is paused for 1m0s; brave failed, and is paused for 1m0s; kagi failed, and is paused for 1m0s; searxng failed, and is paused for 1m0s"
		if r.Text != want+hint {
			t.Errorf("%s\nwant %s", r.Text, want)
		}
		timetest.Sleep(time.Minute)
		hang = true
		start := time.Now()
		r = callKit(t, kit, "web_search", `{"query":"q"}`) // D-080: 30 s for all
		want = "Error: web search is not available: tavily: no answer in time; brave: no answer in time; kagi: no answer in time; searxng: its address is not a URL"
		if r.Text != want+hint || time.Since(start) != 30*time.Second {
			t.Errorf("%s after %v\nwant %s", r.Text, time.Since(start), want)
		}
		if strings.Contains(log.String(), secret) || !strings.Contains(log.String(), "paused") {
			t.Errorf("log: %s", log.String())
		}
	})
}

// Who gives up on a search does not make its provider rest.
func TestSearchCancelled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	s, err := newSearcher(Config{Search: []Provider{{Name: "searxng", BaseURL: "http://sx"}}, transport: fake(func(r *http.Request) (*http.Response, error) {
		cancel(errors.New("stopped"))
		return nil, r.Context().Err()
	})})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.search(ctx, "q", 5); err == nil || err.Error() != "stopped" || s.pausedFor(s.providers[0]) > 0 {
		t.Errorf("err = %v, resting %v", err, s.pausedFor(s.providers[0]))
	}
}

// D-080: who lacks a key is left out, and if nobody is left there is DuckDuckGo.
func TestProviderOrder(t *testing.T) {
	for _, c := range []struct {
		search []Provider
		want   string
	}{
		{nil, "duckduckgo"},
		{[]Provider{{Name: "brave"}, {Name: "searxng"}, {Name: "kagi"}, {Name: "jina"}, {Name: "tavily"}}, "duckduckgo"},
		{[]Provider{{Name: "kagi", Key: "k"}, {Name: "brave"}, {Name: "duckduckgo"}, {Name: "searxng", BaseURL: "http://sx"}}, "kagi duckduckgo searxng"},
	} {
		s, err := newSearcher(Config{Search: c.search})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range s.providers {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%v: %s, want %s", c.search, got, c.want)
		}
	}
	_, err := New(Config{Search: []Provider{{Name: "bing"}}})
	if want := `web search: no provider is called "bing"; there are brave, duckduckgo, jina, kagi, searxng, tavily`; err == nil || err.Error() != want {
		t.Errorf("err = %v, want %s", err, want)
	}
}

// A page of DuckDuckGo without results is an answer, one for robots is none.
func TestDuckDuckGoEmpty(t *testing.T) {
	for page, want := range map[string]string{
		`<div class="no-results">No results found</div>`:                                  "",
		`<table><tr><td>No results.</td></tr></table>`:                                    "",
		`<div class="anomaly-modal__title">Unfortunately, bots use DuckDuckGo too.</div>`: "a page without results, as bots are shown",
		``: "a page without results, as bots are shown",
		`<a class="result__a" href="https://duckduckgo.com/y.js?ad_domain=x">Ad</a><p class=no-results>`: "",
	} {
		hits, err := readHTML([]byte(page))
		hits = slices.DeleteFunc(hits, func(h hit) bool { return h.URL == "" }) // as ask does with what leads nowhere
		if len(hits) != 0 || (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, %v", page, hits, err)
		}
	}
}

// E-032, E-033: what a search tool of another system needs to be one of this house.
func Example() {
	type args struct {
		Query string `json:"query"`
	}
	bing := tools.New("bing_search", "Search the web.", func(context.Context, tools.Call, args) (tools.Result, error) {
		return tools.Result{Text: `{"webPages":{"value":[]}}`}, nil
	})
	bing.ReadOnly, bing.Untrusted = true, true
	bing.Aliases = map[string]string{"q": "query"}
	bing.Query = func(args map[string]any) string { return fmt.Sprint("bing_search_", args["query"]) }
	bing.Assess = func(r tools.Result) tools.Verdict {
		var pages struct{ WebPages struct{ Value []any } }
		if json.Unmarshal([]byte(r.Text), &pages) != nil || len(pages.WebPages.Value) == 0 {
			return tools.Poor
		}
		return tools.Fine
	}
	fmt.Println(bing.Query(map[string]any{"query": "go"}))
	for _, text := range []string{`{"webPages":{"value":[]}}`, `{"webPages":`, `{"webPages":{"value":[{}]}}`} {
		fmt.Printf("%q\n", bing.Assess(tools.Result{Text: text}))
	}
	// Output:
	// bing_search_go
	// "poor"
	// "poor"
	// ""
}

// A result page of a search, or any page at all, breaks nothing down.
func FuzzDuckDuckGo(f *testing.F) {
	f.Add(read(f, "duckduckgo.html"))
	f.Add(read(f, "duckduckgo-lite.html"))
	f.Add(`<a class="result__a" href="//duckduckgo.com/l/?uddg=%3Fuddg%3Dx">`)
	f.Fuzz(func(t *testing.T, page string) {
		hits, err := readHTML([]byte(page))
		if err != nil && strings.Contains(err.Error(), "cannot be understood") {
			t.Fatal(err)
		}
		for _, h := range hits {
			if strings.Contains(h.Title, "\n") {
				t.Errorf("title %q", h.Title)
			}
		}
	})
}

func FuzzExtract(f *testing.F) {
	f.Add(read(f, "article.html"))
	f.Add("<p><b>x<table><b>y<template><svg><title><b></plaintext><A HREF=#>")
	f.Add("<pre>\n\n\n<br><td>x<ul><li>")
	f.Fuzz(func(t *testing.T, text string) {
		u := mustURL("http://example.com/dir/page?x=y")
		p := &page{at: u, media: "text/html", text: toUTF8([]byte(text), "text/html")}
		for _, plain := range []bool{true, false} {
			if _, _, err := p.extract(plain); err != nil && strings.Contains(err.Error(), "cannot be understood") {
				t.Fatal(err)
			}
		}
		for _, kind := range []string{"text", "links", "structured"} {
			if _, err := p.view(kind, 0, 1000); err != nil && strings.Contains(err.Error(), "cannot be understood") {
				t.Fatal(err)
			}
		}
	})
}
