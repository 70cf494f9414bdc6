package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"
	"parley/chat"
	"parley/tools"
)

type fetchArgs struct {
	URL      string `json:"url" jsonschema:"the page, with http:// or https://" limit:"min=1"`
	Mode     string `json:"extractMode,omitempty" jsonschema:"what to make of the page" limit:"enum=markdown|text default=markdown"`
	MaxChars int    `json:"maxChars,omitempty" jsonschema:"how many characters of the page to return at most" limit:"min=100 default=50000"`
}

// An answer is what web_fetch returns (D-085).
type answer struct {
	URL       string `json:"url"`
	FinalURL  string `json:"finalUrl"`
	Status    int    `json:"status"`
	Extractor string `json:"extractor"` // readability, page (all of it) or raw
	Truncated bool   `json:"truncated"`
	Length    int    `json:"length"` // characters of Text behind the banner
	Untrusted bool   `json:"untrusted"`
	More      string `json:"more,omitempty"` // if Truncated, how to read on
	Text      string `json:"text"`
}

// webFetch is the tool for what a page is about (D-081).
func (f *fetcher) webFetch() tools.Tool {
	t := tools.New("web_fetch", "Read a web page: what it is about, as Markdown or text, without menus and the like.",
		func(ctx context.Context, _ tools.Call, in fetchArgs) (tools.Result, error) {
			data, err := f.read(ctx, in.URL, func(p *page) (any, error) {
				text, extractor, err := p.extract(in.Mode == "text")
				shown := chat.Clip(text, min(in.MaxChars, f.most), "")
				a := answer{URL: in.URL, FinalURL: p.at.String(), Status: p.status, Extractor: extractor,
					Truncated: shown != text ||
						p.cut, Length: utf8.RuneCountInString(shown), Untrusted: true, Text: banner + shown}
				switch {
				case shown != text && a.Length < f.most:
					a.More = fmt.Sprintf("These are %d of %d characters: a larger maxChars has more.", a.Length,
						utf8.RuneCountInString(text))
				case a.Truncated:
					a.More = tooLarge
				}
				return a, err
			})
			if err != nil {
				text, _ := json.Marshal(data)
				return tools.Result{Text: string(text), Data: data, Failed: true}, nil
			}
			return tools.Result{Data: data}, nil
		})
	t.Aliases = map[string]string{"link": "url", "uri": "url", "extract_mode": "extractMode", "max_chars": "maxChars"}
	return lookup(t, stepRead, "url", "extractMode", "maxChars")
}

// read returns what show makes of the page at raw. With an error, which is the
// model's to read, it is what A-034 says.
func (f *fetcher) read(ctx context.Context, raw string, show func(*page) (any, error)) (data any, err error) {
	defer func() {
		if err != nil {
			data = map[string]any{
				"error": chat.Clip(err.Error(), 300, ""),
				"url":   chat.HideLogins(raw),
			} // untrusted content may be in it
		}
	}()
	defer rescue(&err)
	p, err := f.get(ctx, raw)
	if err != nil {
		return nil, err
	}
	return show(p)
}

// extract returns the part of the page that is worth reading.
func (p *page) extract(text bool) (content, extractor string, err error) {
	if !p.html() {
		return p.text, "raw", nil
	}
	doc, err := p.parse()
	if err != nil {
		return "", "", err
	}
	absolute(doc, p.at)
	title, _ := about(doc)
	body, extractor := article(doc, p.at), "readability"
	if body == nil {
		body, extractor = doc, "page"
		prune(body, around)
	}
	if text {
		return strings.TrimSpace(title + "\n\n" + plain(body)), extractor, nil
	}
	if title != "" {
		title = "# " + title
	}
	content, err = markdown(body)
	return strings.TrimSpace(title + "\n\n" + strings.TrimSpace(content)), extractor, err
}

// rescue makes an error of what breaks down over a page.
func rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the page cannot be understood: %v", p)
	}
}

// tooLarge says of a page that there is no way to the rest of it.
const tooLarge = "This is the beginning of a page that is too large to be read whole."

type pageArgs struct {
	URL  string `json:"url" jsonschema:"the page, with http:// or https://" limit:"min=1"`
	Type string `json:"extract_type,omitempty" jsonschema:"all of its text; its links; or title, description, text and links" limit:"enum=text|links|structured default=text"`
	From int    `json:"offset,omitempty" jsonschema:"how many characters of the text to leave out, to go on where the last answer stopped" limit:"min=0"`
}

// fetchPage is the tool for a whole page, or for that by another name.
func (f *fetcher) fetchPage(name, aliasOf string) tools.Tool {
	t := tools.New(name, "Read a web page whole: its text, its links, or both with title and description.",
		func(ctx context.Context, _ tools.Call, in pageArgs) (tools.Result, error) {
			return tools.Result{Data: f.show(ctx, in.URL, in.Type, in.From)}, nil
		})
	t.AliasOf, t.JSON = aliasOf, aliasOf == ""
	t.Aliases = map[string]string{"link": "url", "uri": "url", "extractType": "extract_type"}
	return lookup(t, stepRead, "url", "extract_type", "offset")
}

type batchArgs struct {
	URLs []string `json:"urls" jsonschema:"the pages, at most 10"`
	Type string   `json:"extract_type,omitempty" jsonschema:"as for fetch_page" limit:"enum=text|links|structured default=text"`
}

// crawlBatch is fetch_page for several pages, which stay in their order.
func (f *fetcher) crawlBatch() tools.Tool {
	t := tools.New("crawl_batch", "Read up to 10 web pages at once, each as fetch_page does.",
		func(ctx context.Context, _ tools.Call, in batchArgs) (tools.Result, error) {
			if len(in.URLs) > 10 {
				return tools.Failf(tools.CodeError, "Maximum 10 pages can be fetched at once"), nil
			}
			results := make([]any, len(in.URLs))
			var g tools.Group
			g.SetLimit(5)
			for i, u := range in.URLs {
				g.Go(func() error {
					results[i] = f.show(ctx, u, in.Type, 0)
					return nil
				})
			}
			_ = g.Wait() // none of them returns an error
			return tools.Result{Data: map[string]any{"results": results, "total": len(results)}}, ctx.Err()
		})
	t.JSON, t.Timeout = true, 2*f.patience+15*time.Second
	return lookup(t, stepRead, "urls", "extract_type")
}

// show returns what A-033 says of a page, behind the first from characters of
// its text, or what A-034 does.
func (f *fetcher) show(ctx context.Context, raw, kind string, from int) any {
	data, _ := f.read(ctx, raw, func(p *page) (any, error) {
		data, err := p.view(kind, from, f.most)
		if err == nil {
			data["url"] = raw
		}
		return data, err
	})
	return data
}

// view returns a part of the page's text, its links, or both and more. Of the
// text no more than the first most characters can be read. What is not HTML is
// all text. What is cut says so, and how to go on.
func (p *page) view(kind string, from, most int) (map[string]any, error) {
	doc, text := &html.Node{}, p.text
	if p.html() {
		var err error
		if doc, err = p.parse(); err != nil {
			return nil, err
		}
	}
	absolute(doc, p.at)
	if kind == "links" {
		return map[string]any{"links": links(doc, 50), "untrusted": true}, nil
	}
	data, part := map[string]any{}, maxText
	if kind == "structured" {
		data["title"], data["description"] = about(doc)
		data["links"] = links(doc, 20)
		data["untrusted"] = true
		part = 5000
	}
	if p.html() {
		prune(doc, around)
		text = plain(doc)
	}
	all := []rune(text)
	readable := all[:min(len(all), most)]
	if from > 0 && from >= len(readable) {
		return nil, fmt.Errorf("offset %d is beyond the end of the page (%d characters)", from, len(readable))
	}
	to := min(from+part, len(readable))
	data["text"] = banner + string(readable[from:to])
	switch {
	case to < len(readable):
		data["truncated"] = true
		data["more"] = fmt.Sprintf(
			`These are the characters %d to %d of %d. To go on, call fetch_page with "extract_type": "text" and "offset": %d.`,
			from+1,
			to,
			len(readable),
			to,
		)
	case to < len(all) || p.cut:
		data["truncated"], data["more"] = true, tooLarge
	}
	return data, nil
}

type link struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

// links returns up to n places that a page leads to, none of them within itself.
func links(doc *html.Node, n int) []link {
	found := []link{}
	for a := range elements(doc, "a") {
		u, err := url.Parse(attr(a, "href"))
		if len(found) < n && err == nil && (u.Path != "" || u.Host != "" || u.Opaque != "") &&
			u.Scheme != "javascript" {
			found = append(found, link{line(a), u.String()})
		}
	}
	return found
}

// about returns a page's title, and how it describes itself.
func about(doc *html.Node) (title, description string) {
	for n := range elements(doc, "title", "meta") {
		switch {
		case n.Data == "title" && title == "":
			title = line(n)
		case strings.EqualFold(attr(n, "name"), "description"):
			description = attr(n, "content")
		}
	}
	return title, description
}
