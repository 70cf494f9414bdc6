package markdown

import (
	"bytes"
	"cmp"
	"html"
	"net/url"
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
