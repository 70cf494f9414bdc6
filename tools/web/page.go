package web

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"net/url"
	"regexp"
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
)

// Of a page, for readability and Markdown take time that grows with their product.
const (
	maxHTML  = 2 << 20 // bytes
	maxTags  = 60_000
	maxDepth = 100
	maxNest  = 8       // lists and quotations within one another that Markdown shows: each line begins with all of them
	maxCells = 100_000 // of a table: Markdown has each row as wide as the widest
	maxSpan  = 20      // cells that one may stand for
)

var (
	// formatting elements are opened again by the HTML parser wherever they were
	// left open: of 20 KB it can be made to make a tree of a million nodes.
	formatting = strings.Fields("a b big code em font i nobr s small strike strong tt u")
	embedded   = strings.Fields("svg math template plaintext") // change how the parser reads what follows
	unseen     = strings.Fields("svg template")                // up to their end tags
	unread     = strings.Fields("script style noscript iframe object embed")
	around     = append(strings.Fields("nav footer header"), unread...) // what one wants to read

	// Parts of tables, and what a table of data has nothing of, or only under a heading.
	parts  = strings.Fields("table caption colgroup thead tbody tfoot tr th td")
	placed = strings.Fields("table hr pre blockquote h1 h2 h3 h4 h5 h6")
	broken = strings.Fields("br p div ul ol li dl dt dd")

	// Elements that begin and end a line, and those around which one is left free.
	lines = strings.Fields(
		"address article aside body dd div dl dt fieldset figcaption form hr li main option section tr")
	paragraphs = strings.Fields("blockquote footer h1 h2 h3 h4 h5 h6 header nav ol p pre table ul")
)

// parse returns the tree of an HTML page, or of as much of it as there may be.
// It is not out of proportion to the page.
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
			n.Data, n.DataAtom = name, atom.Lookup([]byte(name))
		}
	}
	return doc, nil
}

// safe returns the page for the parser, without embedded elements and with
// formatting ones under names that mean nothing to it.
func (p *page) safe() io.Reader {
	var safe bytes.Buffer
	z := html.NewTokenizer(io.LimitReader(strings.NewReader(p.text), maxHTML))
	skip, ends := "", map[string]int{} // skip: to the end tag of this
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
			at := bytes.IndexFunc(raw, unicode.IsLetter) // behind < or </
			safe.Write(slices.Concat(raw[:at], []byte("x-"), raw[at:]))
		default:
			safe.Write(raw)
		}
	}
	p.cut = tags > maxTags || len(p.text) > maxHTML
	return &safe
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
	reader.KeepClasses = true         // which say what language code is in
	a, err := reader.ParseDocument(doc, at)
	if err != nil || strings.TrimSpace(a.TextContent) == "" {
		return nil
	}
	prune(a.Node, unread)
	return a.Node
}

// markdown returns doc as Markdown, not out of proportion to it. Nothing is
// escaped: that takes ages for some texts, and is of no use to a model.
func markdown(doc *html.Node) (string, error) {
	arrange(doc)
	tables := table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal),
		table.WithNewlineBehavior(table.NewlineBehaviorPreserve), table.WithHeaderPromotion(true))
	c := converter.NewConverter(converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), tables),
		converter.WithEscapeMode(converter.EscapeModeDisabled))
	text, err := c.ConvertNode(doc)
	return string(text), err
}

// arrange makes lines of what Markdown cannot show.
func arrange(doc *html.Node) {
	for _, t := range slices.Backward(slices.Collect(elements(doc, "table"))) { // the inner ones first
		if !tabular(t) {
			flatten(t)
			continue
		}
		for n := range t.Descendants() {
			n.Data = strings.ReplaceAll(n.Data, "|", `\|`)
			if slices.Contains(broken, n.Data) { // a row is one line
				n.Parent.InsertBefore(
					&html.Node{Type: html.TextNode, Data: map[bool]string{false: " ", true: " • "}[n.Data == "li"]}, n)
				n.Data, n.DataAtom = "span", atom.Span
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
			n.Data, n.DataAtom = "div", atom.Div
		}
	}
}

// tabular reports whether t is a table of data, and not one that puts the parts of
// a page in their places or that would be too large.
func tabular(t *html.Node) bool {
	rows := 0
	width := 0
	widest := 0
	tall := 0
	headed, lines := false, false
	for n := range elements(t) {
		switch {
		case slices.Contains(placed, n.Data):
			return false
		case slices.Contains(broken, n.Data):
			lines = true
		case n.Data == "tr":
			rows, width = rows+1, 0
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

// span returns how many cells n stands for, and takes out what is too many.
func span(n *html.Node, name string) int {
	many, err := strconv.Atoi(attr(n, name))
	if err == nil && many > 0 && many <= maxSpan {
		return many
	}
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == name })
	return 1
}

// flatten makes lines of the parts of a table, though not of those within it.
func flatten(n *html.Node) {
	for c := range n.ChildNodes() {
		if c.Data != "table" {
			flatten(c)
		}
	}
	if slices.Contains(parts, n.Data) {
		n.Data, n.DataAtom = "div", atom.Div
	}
}

var (
	gaps   = regexp.MustCompile(`\n{3,}`)
	spaces = regexp.MustCompile(`[\s\pZ]+`)
)

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
	for !bytes.HasSuffix(b, []byte("\n\n"[:n])) {
		b = append(b, '\n')
	}
	return b
}
