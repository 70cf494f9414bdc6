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
	URL      string `json:"url" jsonschema:"with http:// or https://" limit:"min=1"`
	Mode     string `json:"extractMode" limit:"choice=markdown|text"`
	MaxChars int    `json:"maxChars" limit:"min=100 default=50000"`
}

// An answer is the result of web_fetch (D-085).
type answer struct {
	URL       string `json:"url"`
	FinalURL  string `json:"finalUrl"`
	Status    int    `json:"status"`
	Extractor string `json:"extractor"` // readability, page (the whole page) or raw
	Truncated bool   `json:"truncated"`
	Length    int    `json:"length"` // characters of Text after the banner
	Untrusted bool   `json:"untrusted"`
	More      string `json:"more,omitempty"` // how to read the rest, if Truncated
	Text      string `json:"text"`
}

// webFetch returns the tool that reads the main text of a page (D-081).
func (f *fetcher) webFetch() tools.Tool {
	t := tools.New("web_fetch", "Read a web page: its main content as Markdown or text, without menus and the like.",
		func(ctx context.Context, _ tools.Call, in fetchArgs) (tools.Result, error) {
			data, err := f.read(ctx, in.URL, func(p *page) (any, error) {
				text, extractor, err := p.extract(in.Mode == "text")
				shown := chat.Clip(text, min(in.MaxChars, f.most), "")
				a := answer{
					URL:       in.URL,
					FinalURL:  p.at.String(),
					Status:    p.status,
					Extractor: extractor,
					Truncated: shown != text || p.cut,
					Length:    utf8.RuneCountInString(shown),
					Untrusted: true,
					Text:      banner + shown,
				}
				switch {
				case shown != text && a.Length < f.most:
					a.More = fmt.Sprintf("These are %d of %d characters. To read more, set a larger maxChars.",
						a.Length, utf8.RuneCountInString(text))
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
	return lookup(t, "url", "extractMode", "maxChars")
}

// read returns what show makes of the page at raw. If that fails, the error is for
// the model, and data is the object of A-034.
func (f *fetcher) read(ctx context.Context, raw string, show func(*page) (any, error)) (data any, err error) {
	defer func() {
		if err != nil {
			data = map[string]any{
				"error": chat.Clip(err.Error(), 300, ""),
				"url":   chat.HideLogins(raw),
			}
		}
	}()
	defer rescue(&err)
	p, err := f.get(ctx, raw)
	if err != nil {
		return nil, err
	}
	return show(p)
}

// extract returns the main text of the page.
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
		body = doc
		extractor = "page"
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

// rescue turns a panic while a page is processed into an error.
func rescue(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the page cannot be processed: %v", p)
	}
}

// tooLarge says that the rest of a page cannot be read.
const tooLarge = "This is the beginning of a page that is too large to be read completely."

type pageArgs struct {
	URL  string `json:"url" jsonschema:"the page, with http:// or https://" limit:"min=1"`
	Type string `json:"extract_type" jsonschema:"structured has all" limit:"choice=text|links|structured"`
	From int    `json:"offset,omitempty" jsonschema:"number of characters to skip, to continue reading" limit:"min=0"`
}

// fetchPage returns the tool that reads a whole page, or the same under
// another name.
func (f *fetcher) fetchPage(name, aliasOf string) tools.Tool {
	t := tools.New(name, "Read a whole web page: its text, its links, or both with title and description (structured).",
		func(ctx context.Context, _ tools.Call, in pageArgs) (tools.Result, error) {
			return tools.Result{Data: f.show(ctx, in.URL, in.Type, in.From)}, nil
		})
	t.AliasOf = aliasOf
	t.Use = tools.Rare
	t.JSON = aliasOf == ""
	t.Aliases = map[string]string{"link": "url", "uri": "url", "extractType": "extract_type"}
	return lookup(t, "url", "extract_type", "offset")
}

type batchArgs struct {
	URLs []string `json:"urls" jsonschema:"the pages, at most 10"`
	Type string   `json:"extract_type" jsonschema:"as for fetch_page" limit:"choice=text|links|structured"`
}

// crawlBatch returns the tool that reads several pages, and returns them in the
// order of its argument.
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
	t.Use = tools.Rare
	t.JSON = true
	t.Timeout = 2*f.patience + 15*time.Second
	return lookup(t, "urls", "extract_type")
}

// show returns the object of A-033 for a page, without the first from characters
// of its text, or that of A-034.
func (f *fetcher) show(ctx context.Context, raw, kind string, from int) any {
	data, _ := f.read(ctx, raw, func(p *page) (any, error) {
		data, err := p.view(kind, from, f.most)
		if err != nil {
			return data, err
		}
		data["url"] = raw
		return data, nil
	})
	return data
}

// view returns a part of the page's text, its links, or both with title and
// description. Only the first most characters of the text can be read. What is not
// HTML counts as text. If the text is cut, the result says so, and how to
// continue.
func (p *page) view(kind string, from, most int) (map[string]any, error) {
	doc := &html.Node{}
	text := p.text
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
	data := map[string]any{}
	part := maxText
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
		data["more"] = fmt.Sprintf("These are characters %d to %d of %d. "+
			`To continue, call fetch_page with "extract_type": "text" and "offset": %d.`, from+1, to, len(readable), to)
	case to < len(all) || p.cut:
		data["truncated"] = true
		data["more"] = tooLarge
	}
	return data, nil
}

type link struct {
	Text string `json:"text"`
	Href string `json:"href"`
}

// links returns up to n links of a page to other pages.
func links(doc *html.Node, n int) []link {
	found := []link{}
	for a := range elements(doc, "a") {
		if len(found) >= n {
			break
		}
		u, err := url.Parse(attr(a, "href"))
		if err != nil || u.Path == "" && u.Host == "" && u.Opaque == "" || u.Scheme == "javascript" {
			continue
		}
		found = append(found, link{line(a), u.String()})
	}
	return found
}

// about returns the title of a page, and its own description.
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
