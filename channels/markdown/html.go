package markdown

import (
	"bytes"
	"cmp"
	"html"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// HTML returns src, read as by [Parse], as HTML for our own page. It is safe
// whatever src says: tags are only text, a link goes to the web or to an
// address of mail, and an image is a link, which loads nothing (R-S13).
func HTML(src string) string {
	src = strings.Map(Clean, src)
	if !excessive(src) {
		var out bytes.Buffer
		source := []byte(src)
		if err := pages().Render(&out, source, linking().Parse(text.NewReader(source))); err == nil {
			return out.String()
		}
	}
	return "<p>" + strings.ReplaceAll(html.EscapeString(strings.TrimSpace(src)), "\n", "<br>\n") + "</p>\n"
}

// linking is the grammar, and addresses by themselves are links.
var linking = sync.OnceValue(func() parser.Parser {
	p := newGrammar()
	p.AddOptions(parser.WithInlineParsers(util.Prioritized(extension.NewLinkifyParser(
		extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})), 999)))
	return p
})

// pages renders without styles in the tags, which our pages do not allow.
var pages = sync.OnceValue(func() renderer.Renderer {
	return renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(tags{}, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(extension.NewTaskCheckBoxHTMLRenderer(), 500),
		util.Prioritized(gmhtml.NewRenderer(gmhtml.WithHardWraps()), 1000),
	))
})

// tags renders what goldmark would render otherwise than a chat needs it.
type tags struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (t tags) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, t.heading)
	r.Register(ast.KindLink, t.link)
	r.Register(ast.KindImage, t.link)
	r.Register(ast.KindAutoLink, t.link)
	r.Register(ast.KindText, t.text)
	r.Register(ast.KindFencedCodeBlock, t.code)
}

// text writes words, and ends a line where the source does.
func (tags) text(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	t := n.(*ast.Text)
	words := html.EscapeString(textOf(t, src))
	if t.SoftLineBreak() || t.HardLineBreak() {
		words += "<br>\n"
	}
	_, err := w.WriteString(words)
	return ast.WalkContinue, err
}

// code writes the lines of a fence, and before them what its first line says besides the language.
func (tags) code(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	lang, more := fenceInfo(n.(*ast.FencedCodeBlock), src)
	out := "<pre><code>"
	if lang != "" {
		out = `<pre><code class="language-` + html.EscapeString(lang) + `">`
	}
	if more != "" {
		out = "<p>" + html.EscapeString(more) + "</p>\n" + out
	}
	out += html.EscapeString(string(n.Lines().Value(src))) + "</code></pre>\n"
	_, err := w.WriteString(out)
	return ast.WalkContinue, err
}

// itemNumbers tells HTML the number of each item that does not follow from the one before.
type itemNumbers struct{}

// Transform implements [parser.ASTTransformer].
func (itemNumbers) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // which returns no error of its own
		l, isList := n.(*ast.List)
		if !entering || !isList || !l.IsOrdered() {
			return ast.WalkContinue, nil
		}
		next := l.Start
		for item := l.FirstChild(); item != nil; item = item.NextSibling() {
			number := itemNumber(reader.Source(), item)
			if value, err := strconv.Atoi(number); err == nil && value != next {
				item.SetAttributeString("value", []byte(number))
				next = value
			}
			next++
		}
		return ast.WalkContinue, nil
	})
}

// heading stays below the headings of the page.
func (tags) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	mark := "<h"
	if !entering {
		mark = "</h"
	}
	_, err := w.WriteString(mark + string("3456"[min(n.(*ast.Heading).Level, 4)-1]) + ">")
	return ast.WalkContinue, err
}

// link writes a link, an image, or an address that is a link by itself. An
// address that is not opened is written out.
func (tags) link(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	var address, words string // words: besides those within n
	switch n := n.(type) {
	case *ast.Link:
		address = unescape(n.Destination)
	case *ast.Image:
		address = unescape(n.Destination)
	case *ast.AutoLink:
		address, words = string(n.URL(src)), string(n.Label(src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
			address = "mailto:" + address
		}
	}
	if strings.HasPrefix(strings.ToLower(address), "data:") {
		address = ""
	}
	opened, out := opensOnPage(address) && !linked(n), ""
	switch {
	case entering && opened:
		out = anchor(address)
	case entering:
	case !n.HasChildren():
		out = html.EscapeString(cmp.Or(words, address))
	case !opened && address != "":
		out = " (" + html.EscapeString(address) + ")"
	}
	if !entering && opened {
		out += "</a>"
	}
	_, err := w.WriteString(out)
	return ast.WalkContinue, err
}

// anchor begins a link that tells the other side nothing about us.
func anchor(address string) string {
	return `<a href="` + html.EscapeString(string(util.URLEscape([]byte(address), false))) +
		`" rel="noopener noreferrer nofollow" target="_blank">`
}

// opensOnPage reports whether a link to address may stand on our page.
func opensOnPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || u.Scheme == "mailto" && u.Opaque != ""
}

// linked reports whether n lies within a link or an image.
func linked(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink || p.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}
