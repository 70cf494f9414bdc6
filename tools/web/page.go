package web

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/go-shiori/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Of a page, for readability and Markdown take time that grows with their product.
const (
	maxHTML  = 2 << 20 // bytes
	maxTags  = 60_000
	maxDepth = 100
)

var (
	// formatting elements are opened again by the HTML parser wherever they were
	// left open: of 20 KB it can be made to make a tree of a million nodes.
	formatting = strings.Fields("a b big code em font i nobr s small strike strong tt u")
	embedded   = strings.Fields("svg math template plaintext") // change how the parser reads what follows
	unread     = strings.Fields("script style noscript iframe object embed")
	around     = append(strings.Fields("nav footer header"), unread...) // what one wants to read

	// Elements that begin and end a line, and those around which one is left free.
	lines      = strings.Fields("address article aside body dd div dl dt fieldset figcaption form hr li main option section tr")
	paragraphs = strings.Fields("blockquote footer h1 h2 h3 h4 h5 h6 header nav ol p pre table ul")
)

// parse returns the tree of an HTML page, or of as much of it as there may be.
// It is not out of proportion to the page, since the parser sees formatting
// elements under names that mean nothing to it.
func (p *page) parse() (*html.Node, error) {
	var safe bytes.Buffer
	z := html.NewTokenizer(io.LimitReader(strings.NewReader(p.text), maxHTML))
	for tags := 0; ; {
		kind, raw := z.Next(), z.Raw()
		if p.cut = tags > maxTags || len(p.text) > maxHTML; tags > maxTags || kind == html.ErrorToken {
			break
		}
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			tags++
			at := 1 // behind < or </
			if kind == html.EndTagToken {
				at = 2
			}
			switch name, _ := z.TagName(); {
			case slices.Contains(embedded, string(name)):
				z.NextIsNotRawText()
				continue
			case slices.Contains(formatting, string(name)):
				safe.Write(raw[:at])
				safe.WriteString("x-")
				raw = raw[at:]
			}
		}
		safe.Write(raw)
	}
	doc, err := html.Parse(&safe)
	if err != nil {
		return nil, errDeep
	}
	for n := range elements(doc) {
		depth := 0
		for range n.Ancestors() {
			depth++
		}
		if depth > maxDepth {
			return nil, errDeep
		}
		if name, ok := strings.CutPrefix(n.Data, "x-"); ok && slices.Contains(formatting, name) {
			n.Data, n.DataAtom = name, atom.Lookup([]byte(name))
		}
	}
	return doc, nil
}

var errDeep = errors.New("the page is nested too deeply")

// elements returns those of doc with one of the names, or all.
func elements(doc *html.Node, names ...string) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for n := range doc.Descendants() {
			if n.Type == html.ElementNode && (len(names) == 0 || slices.Contains(names, n.Data)) && !yield(n) {
				return
			}
		}
	}
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// absolute makes the addresses in doc whole; at is where doc was.
func absolute(doc *html.Node, at *url.URL) {
	for n := range elements(doc, "base") {
		if u, err := at.Parse(attr(n, "href")); err == nil {
			at = u
			break
		}
	}
	for n := range elements(doc) {
		for i, a := range n.Attr {
			u, err := at.Parse(strings.TrimSpace(a.Val))
			if err == nil && (a.Key == "href" || a.Key == "src") && a.Val != "" && a.Val[0] != '#' {
				n.Attr[i].Val = u.String()
			}
		}
	}
}

// prune takes the elements with one of the names out of doc.
func prune(doc *html.Node, names []string) {
	for _, n := range slices.Collect(elements(doc, names...)) {
		n.Parent.RemoveChild(n)
	}
}

// article returns what a page is about, without what surrounds it; nil if
// that cannot be told. All use of readability is here.
func article(doc *html.Node, at *url.URL) *html.Node {
	reader := readability.NewParser() //nolint:staticcheck // its successor cannot be had
	a, err := reader.ParseDocument(doc, at)
	if err != nil || strings.TrimSpace(a.TextContent) == "" {
		return nil
	}
	prune(a.Node, unread)
	return a.Node
}

// markdown returns doc as Markdown.
func markdown(doc *html.Node) (string, error) {
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin()))
	text, err := c.ConvertNode(doc)
	return string(text), err
}

var gaps = regexp.MustCompile(`\n{3,}`)

// plain returns the text of doc, a line for each block and never more than
// one empty line in a row.
func plain(doc *html.Node) string {
	return strings.TrimSpace(gaps.ReplaceAllString(string(write(nil, doc, false)), "\n\n"))
}

// line is the same on one line.
func line(n *html.Node) string { return strings.Join(strings.Fields(plain(n)), " ") }

// write appends to b the text of n, which may be within a pre.
func write(b []byte, n *html.Node, pre bool) []byte {
	free := 0 // lines to begin before and after it
	switch {
	case n.Type == html.TextNode && pre:
		return append(b, n.Data...)
	case n.Type == html.TextNode:
		return append(b, squeeze(n.Data, len(b) == 0 || strings.IndexByte(" \n\t", b[len(b)-1]) >= 0)...)
	case n.Type == html.CommentNode, n.Data == "head", slices.Contains(unread, n.Data):
		return b
	case n.Data == "br":
		return append(b, '\n')
	case slices.Contains(paragraphs, n.Data):
		free = 2
	case slices.Contains(lines, n.Data):
		free = 1
	}
	b = begin(b, free)
	for c := range n.ChildNodes() {
		b = write(b, c, pre || n.Data == "pre")
	}
	if n.Data == "td" || n.Data == "th" {
		b = append(b, '\t')
	}
	return begin(b, free)
}

// begin ends what b has of a line, and has n line ends at its end.
func begin(b []byte, n int) []byte {
	if n == 0 || len(b) == 0 {
		return b
	}
	b = bytes.TrimRight(b, " \t")
	have := len(b) - len(bytes.TrimRight(b, "\n"))
	return append(b, "\n\n"[:max(n-have, 0)]...)
}

// squeeze returns text with white space as one space each, and none at its
// beginning if there is one before it.
func squeeze(text string, spaced bool) string {
	words := strings.Fields(text)
	before, after := "", ""
	if !spaced && text != "" && text[0] <= ' ' {
		before = " "
	}
	if len(words) > 0 && text[len(text)-1] <= ' ' {
		after = " "
	}
	return before + strings.Join(words, " ") + after
}
