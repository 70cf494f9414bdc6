package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/tools"
)

const (
	searchTime   = 30 * time.Second // for all providers together (D-080)
	providerTime = 12 * time.Second
	minPause     = time.Minute // after the first failure of a provider; doubled with each further one
	maxPause     = 10 * time.Minute
)

// A searcher asks its providers in turn. After a failure, a provider is not asked
// for a while.
type searcher struct {
	providers []Provider
	client    *http.Client
	log       *slog.Logger

	mu     sync.Mutex
	pauses map[Provider]pause
}

type pause struct {
	until time.Time
	last  time.Duration
}

// newSearcher skips providers that lack a key or an address. If none is left, it
// uses DuckDuckGo.
func newSearcher(c Config) (*searcher, error) {
	s := &searcher{log: cmp.Or(c.Log, slog.New(slog.DiscardHandler)), pauses: map[Provider]pause{}}
	for _, p := range c.Search {
		e, known := engines[p.Name]
		p.BaseURL = strings.TrimSuffix(cmp.Or(p.BaseURL, e.base), "/")
		switch {
		case !known:
			return nil, fmt.Errorf("web search: no provider is called %q; there are %s", p.Name,
				strings.Join(slices.Sorted(maps.Keys(engines)), ", "))
		case strings.Contains(e.header, "{key}") && p.Key == "", p.BaseURL == "":
			s.log.Warn("search provider skipped: it needs a key or an address", "provider", p.Name)
		default:
			s.providers = append(s.providers, p)
		}
	}
	if len(s.providers) == 0 {
		s.providers = []Provider{{Name: "duckduckgo", BaseURL: engines["duckduckgo"].base}}
	}
	s.client = &http.Client{Transport: c.transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a redirect must not carry the key to another server
	}}
	if c.transport == nil {
		s.client.Transport = &http.Transport{
			ForceAttemptHTTP2:      true,
			MaxResponseHeaderBytes: maxHeader,
			IdleConnTimeout:        30 * time.Second,
		}
	}
	return s, nil
}

// search returns at most n hits from the first provider that answers. An error is
// for the model to read.
func (s *searcher) search(ctx context.Context, q string, n int) ([]hit, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	var problems []string
	for _, p := range s.providers {
		if wait := s.pausedFor(p); wait > 0 {
			problems = append(problems, fmt.Sprintf("%s failed, and is paused for %v", p.Name, wait.Round(time.Second)))
			continue
		}
		hits, err := p.ask(ctx, s.client, q, n)
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, context.Cause(ctx)
		}
		s.note(p, err)
		if err == nil {
			return hits, nil
		}
		problems = append(problems, fmt.Sprintf("%s: %v", p.Name, err))
	}
	return nil, fmt.Errorf("web search is not available: %s", strings.Join(problems, "; "))
}

// pausedFor returns how long the provider is not to be asked.
func (s *searcher) pausedFor(p Provider) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Until(s.pauses[p].until)
}

// note records whether a provider has failed.
func (s *searcher) note(p Provider, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		delete(s.pauses, p)
		return
	}
	length := min(max(2*s.pauses[p].last, minPause), maxPause)
	s.pauses[p] = pause{time.Now().Add(length), length}
	s.log.Warn("search provider paused after an error", "provider", p.Name, "for", length, "err", err)
}

type searchArgs struct {
	Query string `json:"query" limit:"min=1 max=500"`
	Max   int    `json:"max_results" limit:"min=1 max=10 default=5"`
}

// tool returns web_search (D-080, A-032), or the same under another name, which
// returns JSON with a list called organic.
func (s *searcher) tool(name, aliasOf string) tools.Tool {
	t := tools.New(name, "Search the web. Returns titles, addresses and snippets; read a page with web_fetch.",
		func(ctx context.Context, _ tools.Call, in searchArgs) (tools.Result, error) {
			hits, err := s.search(ctx, in.Query, in.Max)
			switch {
			case err != nil:
				return tools.Result{}, err
			case aliasOf != "":
				return tools.Result{Data: organic(hits)}, nil
			}
			return tools.Result{Text: banner + list(in.Query, hits), Data: map[string]any{"results": hits}}, nil
		})
	t.AliasOf = aliasOf
	t.Use = tools.Basic
	t.Aliases = map[string]string{
		"q":           "query",
		"Query":       "query",
		"search_term": "query",
		"count":       "max_results",
		"num":         "max_results",
		"num_results": "max_results",
	}
	t.Assess = func(r tools.Result) tools.Verdict {
		if empty(r.Data, "results") && empty(r.Data, "organic") {
			return tools.Poor
		}
		return tools.Fine
	}
	return lookup(t, "query", "max_results")
}

// list returns hits as a numbered list.
func list(q string, hits []hit) string {
	if len(hits) == 0 {
		return "No results for: " + q
	}
	text := "Results for: " + q + "\n"
	for i, h := range hits {
		text += fmt.Sprintf("\n%d. %s\n   %s", i+1, h.Title, h.URL)
		if h.Snippet != "" {
			text += "\n   " + h.Snippet
		}
	}
	return text
}

// organic returns hits in the form that other systems use.
func organic(hits []hit) map[string]any {
	all := []map[string]any{}
	for i, h := range hits {
		all = append(all, map[string]any{"title": h.Title, "link": h.URL, "snippet": h.Snippet, "position": i + 1})
	}
	return map[string]any{"organic": all, "untrusted": true}
}

// empty reports whether result, JSON or a map, has no list with that name, or an
// empty one. A result that is not understood does not count as empty (E-014).
func empty(result any, list string) bool {
	text, ok := result.(string)
	if !ok {
		js, _ := json.Marshal(result)
		text = string(js)
	}
	var m map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &m) != nil || len(m) == 0 {
		return false
	}
	var items []json.RawMessage
	return m[list] == nil || json.Unmarshal(m[list], &items) == nil && len(items) == 0
}
