package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Beyond these the text is shown as it is written: goldmark's time, or its
// memory, grows with their square.
const (
	maxSource = 64 << 10 // bytes
	maxNest   = 32       // marks of quotes and lists that begin one line
	maxCells  = 100_000  // of a table as wide as the widest line and as long as the source
	maxLinks  = 1000
)

// Parse reads Markdown as models write it and people in chats expect it: a line
// stays a line, HTML is only text, and a fence without an end, as in an answer
// that is still being written, goes on to the last line. Where src shows
// anything, so does the result.
func Parse(src string) Text {
	src = strings.Map(clean, src)
	if excessive(src) {
		return Text{Plain: strings.TrimSpace(strings.ReplaceAll(src, "\t", " "))}
	}
	source := []byte(src)
	w := writer{src: source}
	w.blocks(grammar().Parse(text.NewReader(source)))
	if t := w.text(); visible(t.Plain) {
		return t
	}
	if visible(src) {
		return Text{Plain: strings.TrimSpace(strings.ReplaceAll(src, "\t", " "))}
	}
	return Text{}
}

// grammar is CommonMark with tables, task lists and strikethrough; without
// HTML, underlined headings (a line and --- below it is a line and a rule) and
// references (they would hide what they define).
var grammar = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(parser.NewBlockquoteParser(), 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(parser.NewLinkParser(), 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(parser.NewEmphasisParser(), 500),
			util.Prioritized(extension.NewStrikethroughParser(), 500),
		),
		parser.WithParagraphTransformers(util.Prioritized(extension.NewTableParagraphTransformer(), 200)),
		parser.WithASTTransformers(util.Prioritized(extension.NewTableASTTransformer(), 0)),
	)
})

// excessive reports whether src is more than we let goldmark read.
func excessive(src string) bool {
	if len(src) > maxSource || strings.Count(src, "](") > maxLinks {
		return true
	}
	lines, columns := 0, 0
	for line := range strings.Lines(src) {
		lines++
		columns = max(columns, strings.Count(line, "|"))
		if nesting(line) > maxNest {
			return true
		}
	}
	return lines*columns > maxCells
}

// nesting counts the marks of quotes and lists at the beginning of line.
func nesting(line string) int {
	n := 0
	for i := range len(line) {
		switch c := line[i]; c {
		case '>':
			n++
		case ' ', '\t':
			if i > 0 && strings.IndexByte("-+*.)", line[i-1]) >= 0 {
				n++
			}
		default:
			if strings.IndexByte("-+*.)0123456789", c) < 0 {
				return n
			}
		}
	}
	return n
}

// A writer writes the nodes of a document as a Text.
type writer struct {
	src    []byte
	out    []byte
	spans  []Span
	open   [kinds]bool
	indent string // what the lines of the current block begin with
}

// begin opens a span and returns what end needs to close it.
func (w *writer) begin(k Kind, arg string) int {
	if w.open[k] || w.open[Code] {
		return -1
	}
	w.open[k] = true
	w.spans = append(w.spans, Span{Start: len(w.out), Kind: k, Arg: arg})
	return len(w.spans) - 1
}

func (w *writer) end(i int) {
	if i >= 0 {
		w.spans[i].End = len(w.out)
		w.open[w.spans[i].Kind] = false
	}
}

// text returns what was written, without the space around it.
func (w *writer) text() Text {
	plain := strings.TrimRight(string(w.out), " \n")
	body := strings.TrimLeft(plain, "\n")
	return Text{Plain: plain, Spans: w.spans}.slice(len(plain)-len(body), len(plain))
}

// blocks writes the blocks in parent, each on lines of its own.
func (w *writer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		if n != parent.FirstChild() {
			w.gap(n)
		}
		w.block(n)
	}
}

// gap ends the block before n. There is a blank line where the source has one,
// and before headings and tables.
func (w *writer) gap(n ast.Node) {
	if n.HasBlankPreviousLines() || n.Kind() == ast.KindHeading || n.Kind() == extast.KindTable {
		w.out = append(w.out, '\n')
	}
	w.newline()
}

func (w *writer) newline() {
	w.out = append(w.out, '\n')
	w.out = append(w.out, w.indent...)
}
