package web

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"github.com/go-shiori/go-readability"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"parley/lazyregexp"
)

// Limits for a page, because the time for readability and Markdown grows with the
// product of its size and depth.
const (
	maxHTML  = 2 << 20 // bytes
	maxTags  = 60_000
	maxDepth = 100
	maxNest  = 8       // nested lists and quotations: in Markdown, each line begins with the marks of all
	maxCells = 100_000 // of a table: in Markdown, each row is as wide as the widest
	maxSpan  = 20      // columns or rows that a cell may span
)

var (
	// The HTML parser reopens formatting elements wherever they were left open, so
	// that 20 KB can make a tree of a million nodes.
	formatting = strings.Fields("a b big code em font i nobr s small strike strong tt u")
	embedded   = strings.Fields("svg math template plaintext") // they change how the parser reads the rest
	unseen     = strings.Fields("svg template")                // embedded elements to skip up to their end tags
	unread     = strings.Fields("script style noscript iframe object embed")
	around     = append(strings.Fields("nav footer header"), unread...) // not part of the content

	parts  = strings.Fields("table caption colgroup thead tbody tfoot tr th td") // of tables
	placed = strings.Fields("table hr pre blockquote h1 h2 h3 h4 h5 h6")         // never in a table of data
	broken = strings.Fields("br p div ul ol li dl dt dd")                        // only in one with headings

	// Elements that begin and end a line, and those with an empty line around them.
	lines = strings.Fields(
		"address article aside body dd div dl dt fieldset figcaption form hr li main option section tr")
	paragraphs = strings.Fields("blockquote footer h1 h2 h3 h4 h5 h6 header nav ol p pre table ul")
)

// parse returns the tree of an HTML page, or of its beginning if the page is too
// large. The size of the tree is proportional to that of the page.
func (p *page) parse() (*html.Node, error) {
	doc, err := html.Parse(p.safe())
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
		if n.Data == "sup" { // 10² is not 102
			n.InsertBefore(&html.Node{Type: html.TextNode, Data: "^"}, n.FirstChild)
		}
		if name, ok := strings.CutPrefix(n.Data, "x-"); ok && slices.Contains(formatting, name) {
			n.Data = name
			n.DataAtom = atom.Lookup([]byte(name))
		}
	}
	return doc, nil
}

// safe returns the page for the parser, without embedded elements, and with
// formatting elements renamed to ones that the parser does not know.
func (p *page) safe() io.Reader {
	var safe bytes.Buffer
	z := html.NewTokenizer(io.LimitReader(strings.NewReader(p.text), maxHTML))
	skip := ""               // name of the element that is skipped
	ends := map[string]int{} // offset of the last end tag, by name
	for _, name := range unseen {
		ends[name] = strings.LastIndex(p.text, "</"+name)
	}
	tags, read := 0, 0
	for kind := z.Next(); kind != html.ErrorToken && tags <= maxTags; kind = z.Next() {
		raw, tag := z.Raw(), ""
		read += len(raw)
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			name, _ := z.TagName()
			tag = string(name)
			tags++
		}
		switch {
		case tag != "" && skip != "":
			if kind == html.EndTagToken && tag == skip {
				skip = ""
			}
			z.NextIsNotRawText()
		case slices.Contains(embedded, tag):
			if kind == html.StartTagToken && read < ends[tag] {
				skip = tag
			}
			z.NextIsNotRawText()
		case skip != "":
		case slices.Contains(formatting, tag):
			at := bytes.IndexFunc(raw, unicode.IsLetter) // after < or </
			safe.Write(slices.Concat(raw[:at], []byte("x-"), raw[at:]))
		default:
			safe.Write(raw)
		}
	}
	p.cut = tags > maxTags || len(p.text) > maxHTML
	return &safe
}

var errDeep = errors.New("the page is nested too deeply")

// elements returns the elements of doc with one of the names, or all of them.
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

// absolute makes the addresses in doc absolute. at is the address of doc.
func absolute(doc *html.Node, at *url.URL) {
	for n := range elements(doc, "base") {
		u, err := at.Parse(attr(n, "href"))
		if err != nil {
			continue
		}
		at = u
		break
	}
	for n := range elements(doc) {
		for i, a := range n.Attr {
			isAddress := (a.Key == "href" || a.Key == "src") && a.Val != "" && a.Val[0] != '#'
			if !isAddress {
				continue
			}
			u, err := at.Parse(strings.TrimSpace(a.Val))
			if err != nil {
				continue
			}
			n.Attr[i].Val = u.String()
		}
	}
}

// prune removes the elements with one of the names from doc.
func prune(doc *html.Node, names []string) {
	for _, n := range slices.Collect(elements(doc, names...)) {
		n.Parent.RemoveChild(n)
	}
}

// article returns the main content of a page, or nil if it cannot be determined.
// Only this function uses readability.
func article(doc *html.Node, at *url.URL) *html.Node {
	reader := readability.NewParser() //nolint:staticcheck // its successor cannot be had
	reader.KeepClasses = true         // they say what language code is in
	a, err := reader.ParseDocument(doc, at)
	if err != nil || strings.TrimSpace(a.TextContent) == "" {
		return nil
	}
	prune(a.Node, unread)
	return a.Node
}

// markdown returns doc as Markdown, of a size proportional to doc. Nothing is
// escaped: escaping takes very long for some texts, and is of no use to a model.
func markdown(doc *html.Node) (string, error) {
	arrange(doc)
	tables := table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
		table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithHeaderPromotion(true))
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), tables),
		converter.WithEscapeMode(converter.EscapeModeDisabled))
	text, err := c.ConvertNode(doc)
	return string(text), err
}

// arrange replaces elements that Markdown cannot represent.
func arrange(doc *html.Node) {
	for _, t := range slices.Backward(slices.Collect(elements(doc, "table"))) { // the inner ones first
		if !tabular(t) {
			flatten(t)
			continue
		}
		for n := range t.Descendants() {
			n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
			if slices.Contains(broken, n.Data) { // a row is one line
				gap := " "
				if n.Data == "li" {
					gap = " • "
				}
				n.Parent.InsertBefore(&html.Node{Type: html.TextNode, Data: gap}, n)
				n.Data = "span"
				n.DataAtom = atom.Span
			}
		}
	}
	nesting := []string{"blockquote", "ul", "ol"}
	for n := range elements(doc, nesting...) {
		nest := 0
		for a := range n.Ancestors() {
			if slices.Contains(nesting, a.Data) {
				nest++
			}
		}
		if nest >= maxNest {
			n.Data = "div"
			n.DataAtom = atom.Div
		}
	}
}

// tabular reports whether t is a table of data, as opposed to one that lays out a
// page or is too large.
func tabular(t *html.Node) bool {
	rows := 0
	width := 0
	widest := 0
	tall := 0
	headed := false
	lines := false
	for n := range elements(t) {
		switch {
		case slices.Contains(placed, n.Data):
			return false
		case slices.Contains(broken, n.Data):
			lines = true
		case n.Data == "tr":
			rows++
			width = 0
		case n.Data == "th", n.Data == "td":
			headed = headed || n.Data == "th"
			across := span(n, "colspan")
			if span(n, "rowspan") > 1 {
				tall += across
			}
			width += across
			widest = max(widest, width)
		}
	}
	return (headed || !lines) && (rows+maxSpan)*(widest+tall) <= maxCells
}

// span returns how many cells n spans, and removes the attribute if that is not a
// sensible number.
func span(n *html.Node, name string) int {
	many, err := strconv.Atoi(attr(n, name))
	if err == nil && many > 0 && many <= maxSpan {
		return many
	}
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	return 1
}

// flatten turns the parts of a table into blocks, except those of tables in it.
func flatten(n *html.Node) {
	for c := range n.ChildNodes() {
		if c.Data != "table" {
			flatten(c)
		}
	}
	if slices.Contains(parts, n.Data) {
		n.Data = "div"
		n.DataAtom = atom.Div
	}
}

var (
	gaps   = lazyregexp.New(`\n{3,}`)
	spaces = lazyregexp.New(`[\s\pZ]+`)
)

// plain returns the text of doc, with a line for each block and at most one empty
// line in a row (A-033).
func plain(doc *html.Node) string {
	return strings.TrimSpace(gaps.ReplaceAllString(string(write(nil, doc, false)), "\n\n"))
}

// line returns the text of n on one line.
func line(n *html.Node) string { return strings.Join(strings.Fields(plain(n)), " ") }

// write appends the text of n to b. pre means that n is inside a pre element.
func write(b []byte, n *html.Node, pre bool) []byte {
	free := 0 // line breaks before and after n
	switch {
	case n.Type == html.TextNode && pre:
		return append(b, n.Data...)
	case n.Type == html.TextNode:
		text := spaces.ReplaceAllString(n.Data, " ")
		if len(b) == 0 || strings.IndexByte(" \n\t", b[len(b)-1]) >= 0 {
			text = strings.TrimPrefix(text, " ")
		}
		return append(b, text...)
	case n.Type == html.CommentNode, n.Data == "head", slices.Contains(unread, n.Data):
		return b
	case n.Data == "br":
		return append(b, '\n')
	case slices.Contains(paragraphs, n.Data):
		free = 2
	case slices.Contains(lines, n.Data):
		free = 1
	}
	b = endLine(b, free)
	for c := range n.ChildNodes() {
		b = write(b, c, pre || n.Data == "pre")
	}
	if n.Data == "td" || n.Data == "th" {
		b = append(b, '\t')
	}
	return endLine(b, free)
}

// endLine ends the current line of b, if any, so that b ends with n line breaks.
func endLine(b []byte, n int) []byte {
	if n == 0 || len(b) == 0 {
		return b
	}
	b = bytes.TrimRight(b, " \t")
	for !bytes.HasSuffix(b, []byte("\n\n"[:n])) {
		b = append(b, '\n')
	}
	return b
}
