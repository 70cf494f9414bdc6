package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"parley/chat"
)

const (
	maxAnswer = 2 << 20 // bytes of a provider's answer
	maxURL    = 2000    // bytes of the address of a hit
)

// A Provider is a search engine, and how to reach it.
type Provider struct {
	Name    string // duckduckgo, brave, tavily, searxng, jina or kagi
	BaseURL string // "" is the provider's own address; searxng has none
	Key     string // duckduckgo and searxng need none
}

// A hit is one result of a search.
type hit struct {
	Title   string `json:"title"`
	URL     string `json:"url"`
	Snippet string `json:"snippet"`
}

// An engine describes the API of a kind of Provider: {q}, {js}, {n} and {key}
// stand for the query in a URL and in JSON, the number of hits wanted, and the
// key.
type engine struct {
	base   string // default address; "" if there is none
	paths  string // below base; each is tried if the one before fails
	header string // additional lines of the request's header
	body   string // "" is a GET
	read   func(answer []byte) ([]hit, error)
}

var engines = map[string]engine{
	"duckduckgo": {
		"https://*.duckduckgo.com",
		"/html/ /lite/",
		"Content-Type: application/x-www-form-urlencoded",
		"q={q}",
		readHTML,
	}, // * stands for the path
	"brave": {
		"https://api.search.brave.com",
		"/res/v1/web/search?q={q}&count={n}",
		"X-Subscription-Token: {key}",
		"",
		readJSON,
	},
	"tavily": {
		"https://api.tavily.com",
		"/search",
		"Content-Type: application/json\nAuthorization: Bearer {key}",
		`{"query":{js},"max_results":{n}}`,
		readJSON,
	},
	"searxng": {"", "/search?q={q}&format=json", "Accept: application/json", "", readJSON},
	"jina": {
		"https://s.jina.ai",
		"/?q={q}&num={n}",
		"X-Respond-With: no-content\nAuthorization: Bearer {key}",
		"",
		readJSON,
	},
	"kagi": {"https://kagi.com", "/api/v0/search?q={q}&limit={n}", "Authorization: Bot {key}", "", readJSON},
}

// ask returns at most n hits. Its errors name neither the address nor the key.
func (p Provider) ask(ctx context.Context, c *http.Client, q string, n int) (hits []hit, err error) {
	ctx, cancel := context.WithTimeout(ctx, providerTime)
	defer cancel()
	e := engines[p.Name]
	js, _ := json.Marshal(q)
	fill := strings.NewReplacer("{q}", url.QueryEscape(q), "{js}", string(js), "{n}", fmt.Sprint(n), "{key}", p.Key)
	for _, path := range strings.Fields(e.paths) {
		at := strings.Replace(p.BaseURL, "*", strings.Trim(path, "/"), 1) + fill.Replace(path)
		hits, err = e.ask(ctx, c, at, fill)
		if err == nil {
			break
		}
	}
	whole := []hit{}
	for _, h := range hits {
		if len(whole) >= n {
			break
		}
		u, err := url.Parse(h.URL)
		if err != nil || defaultPorts[u.Scheme] == "" || len(h.URL) > maxURL {
			continue
		}
		whole = append(whole, hit{clean(h.Title, 200), h.URL, clean(h.Snippet, 500)})
	}
	return whole, err
}

// ask asks at one address. fill fills in what the engine's texts leave open.
func (e engine) ask(ctx context.Context, c *http.Client, at string, fill *strings.Replacer) ([]hit, error) {
	answer, err := send(ctx, c, at, fill.Replace(e.header), fill.Replace(e.body))
	if err != nil {
		return nil, err
	}
	return e.read(answer)
}

// send makes a request: a POST if there is a body, otherwise a GET.
func send(ctx context.Context, c *http.Client, at, header, body string) ([]byte, error) {
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	req, err := http.NewRequestWithContext(ctx, method, at, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("its address is not a URL")
	}
	for h := range strings.SplitSeq("User-Agent: "+userAgent+"\nAccept: application/json, text/html;q=0.9\n"+header,
		"\n") {
		name, value, _ := strings.Cut(h, ": ")
		req.Header.Set(name, value)
	}
	resp, err := c.Do(req)
	var whole *url.Error
	var network *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("no answer in time")
	case errors.As(err, &network):
		return nil, errors.New("cannot be reached")
	case errors.As(err, &whole):
		return nil, whole.Err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("HTTP %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
}

// clean returns the first n characters of text on one line, without the marks that
// some providers put around the words searched for.
func clean(text string, n int) string {
	text = strings.NewReplacer("<strong>", "", "</strong>", "", "<b>", "", "</b>", "").Replace(text)
	return chat.Clip(chat.OneLine(html.UnescapeString(text)), n, "")
}

// readJSON parses an answer in JSON. Providers differ in where the list is and in
// the names of the snippets.
func readJSON(answer []byte) (hits []hit, err error) {
	type item struct{ Title, URL, Description, Snippet, Content string }
	var a struct {
		Web           struct{ Results []item }
		Results, Data []item
	}
	if json.Unmarshal(answer, &a) != nil {
		return nil, errors.New("its answer cannot be parsed")
	}
	for _, i := range slices.Concat(a.Web.Results, a.Results, a.Data) {
		hits = append(hits, hit{i.Title, i.URL, cmp.Or(i.Description, i.Snippet, i.Content)})
	}
	return hits, nil
}

// readHTML parses a result page of DuckDuckGo, of either kind.
func readHTML(answer []byte) (hits []hit, err error) {
	defer rescue(&err)
	doc, err := (&page{text: string(answer)}).parse()
	if err != nil {
		return nil, err
	}
	none := strings.Contains(string(answer), "No results.")
	for n := range elements(doc) {
		for _, class := range strings.Fields(attr(n, "class")) {
			switch class {
			case "result__a", "result-link":
				hits = append(hits, hit{Title: line(n), URL: target(attr(n, "href"))})
			case "result__snippet", "result-snippet":
				if len(hits) > 0 {
					hits[len(hits)-1].Snippet = line(n)
				}
			case "no-results", "result--no-result":
				none = true
			}
		}
	}
	if len(hits) == 0 && !none {
		return nil, errors.New("a page without results, as bots are shown")
	}
	return hits, nil
}

// target returns the target of a link of DuckDuckGo, or "" for an advertisement.
func target(href string) string {
	u, err := url.Parse(href)
	if err != nil || strings.HasSuffix(u.Hostname(), "duckduckgo.com") && u.Path == "/y.js" {
		return ""
	}
	if to := u.Query().Get("uddg"); to != "" {
		return target(to)
	}
	return href
}
