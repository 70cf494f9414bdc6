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
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// HTML returns src, read as by [Parse], as HTML for our own page. It is safe whatever
// src contains: tags are plain text, links lead to the web or to a mail address, and an
// image is a link, so that nothing is loaded (R-S13).
func HTML(src string) string {
	src = strings.Map(Clean, src)
	if !excessive(src) {
		var out bytes.Buffer
		source := []byte(src)
		document := linking().Parse(text.NewReader(source))
		if pages().Render(&out, source, document) == nil {
			return out.String()
		}
	}
	return "<p>" + strings.ReplaceAll(html.EscapeString(strings.TrimSpace(src)), "\n", "<br>\n") + "</p>\n"
}

// linking is the grammar in which bare addresses are links, too, and there are formulas.
var linking = sync.OnceValue(func() parser.Parser {
	p := newGrammar()
	p.AddOptions(parser.WithInlineParsers(util.Prioritized(extension.NewLinkifyParser(
		extension.WithLinkifyAllowedProtocols([]string{"http:", "https:"})), 999)))
	p.AddOptions(
		parser.WithASTTransformers(util.Prioritized(headingLevels{}, 2)),
		parser.WithInlineParsers(util.Prioritized(formulaParser{}, 50)),
		parser.WithBlockParsers(util.Prioritized(formulaBlockParser{}, 750)),
	)
	return p
})

// pages renders without style attributes, which our pages do not allow.
var pages = sync.OnceValue(func() renderer.Renderer {
	alignment := extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)
	return renderer.NewRenderer(renderer.WithNodeRenderers(
		util.Prioritized(tags{}, 100),
		util.Prioritized(extension.NewTableHTMLRenderer(alignment), 500),
		util.Prioritized(extension.NewStrikethroughHTMLRenderer(), 500),
		util.Prioritized(formulas{}, 500),
		util.Prioritized(gmhtml.NewRenderer(gmhtml.WithHardWraps()), 1000),
	))
})

// tags renders the nodes that goldmark would not render as a chat needs them.
type tags struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (t tags) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindHeading, t.heading)
	r.Register(ast.KindLink, t.link)
	r.Register(ast.KindImage, t.link)
	r.Register(ast.KindAutoLink, t.link)
	r.Register(ast.KindText, t.text)
	r.Register(ast.KindFencedCodeBlock, t.code)
	r.Register(extast.KindTaskCheckBox, t.task)
}

// task writes the box of a task, with a name for screen readers.
func (tags) task(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	box := `<input type="checkbox" aria-label="To do" disabled> `
	if n.(*extast.TaskCheckBox).IsChecked {
		box = `<input type="checkbox" aria-label="Done" checked disabled> `
	}
	_, err := w.WriteString(box)
	return ast.WalkContinue, err
}

// text writes words. It breaks lines where the source does.
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

// code writes a fenced code block, after the words that follow the language in its
// first line.
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

// itemNumbers gives list items out of sequence their number in HTML.
type itemNumbers struct{}

// Transform implements [parser.ASTTransformer].
func (itemNumbers) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	// The function returns no errors.
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		l, isList := n.(*ast.List)
		if !entering || !isList || !l.IsOrdered() {
			return ast.WalkContinue, nil
		}
		next := l.Start
		for item := l.FirstChild(); item != nil; item = item.NextSibling() {
			if number, outOfSequence := itemNumberAfter(reader.Source(), item, next); outOfSequence {
				item.SetAttributeString("value", []byte(number))
				next, _ = strconv.Atoi(number)
			}
			next++
		}
		return ast.WalkContinue, nil
	})
}

// headingLevels gives headings the level that they have on a page with a title: the first is of the
// second, and none is more than one below the one before it, whatever was written.
type headingLevels struct{}

// Transform implements [parser.ASTTransformer].
func (headingLevels) Transform(doc *ast.Document, _ text.Reader, _ parser.Context) {
	var above []int // the levels, as written, of the headings that the present one is below
	// The function returns no errors.
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		h, isHeading := n.(*ast.Heading)
		if !entering || !isHeading {
			return ast.WalkContinue, nil
		}
		for len(above) > 0 && above[len(above)-1] >= h.Level {
			above = above[:len(above)-1]
		}
		above = append(above, h.Level)
		h.Level = min(len(above)+1, 6)
		return ast.WalkContinue, nil
	})
}

// heading writes a heading.
func (tags) heading(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	mark := "<h"
	if !entering {
		mark = "</h"
	}
	_, err := w.WriteString(mark + strconv.Itoa(n.(*ast.Heading).Level) + ">")
	return ast.WalkContinue, err
}

// link writes a link, an image or a bare address. An address that is not opened is
// written out.
func (tags) link(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	address := ""
	words := "" // in addition to those within n
	switch n := n.(type) {
	case *ast.Link:
		address = unescape(n.Destination)
	case *ast.Image:
		address = unescape(n.Destination)
	case *ast.AutoLink:
		address = string(n.URL(src))
		words = string(n.Label(src))
		if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(address), "mailto:") {
			address = "mailto:" + address
		}
	}
	if strings.HasPrefix(strings.ToLower(address), "data:") {
		address = ""
	}
	opened := opensOnPage(address) && !linked(n)
	out := ""
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

// anchor returns the start tag of a link. The server it leads to learns nothing about
// our page.
func anchor(address string) string {
	return `<a href="` + html.EscapeString(string(util.URLEscape([]byte(address), false))) +
		`" rel="noopener noreferrer nofollow" target="_blank">`
}

// opensOnPage reports whether our page may link to address.
func opensOnPage(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	return (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" || u.Scheme == "mailto" && u.Opaque != ""
}

// linked reports whether n is inside a link or an image.
func linked(n ast.Node) bool {
	for p := n.Parent(); p != nil; p = p.Parent() {
		if p.Kind() == ast.KindLink || p.Kind() == ast.KindImage {
			return true
		}
	}
	return false
}
