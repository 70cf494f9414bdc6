package markdown

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley/lazyregexp"
)

// Beyond these limits a text is shown as it is written, because goldmark's time or memory
// grows with their square.
const (
	maxSource = 64 << 10 // bytes
	maxNest   = 32       // marks of quotes and lists at the beginning of a line
	maxCells  = 100_000  // of a table as wide as the widest line and as long as the source
	maxLinks  = 1000
	maxMarks  = 4000 // of emphasis between two blank lines
)

// Parse reads Markdown as models write it and people in chats expect it: line breaks are
// kept, HTML is plain text, and a fence without an end, as in an answer that is still
// being written, extends to the last line. A link address for which opens returns false
// is written out. If anything of src can be seen, so can something of the result.
func Parse(src string, opens func(url string) bool) Text { return parse(src, opens, maxTable) }

// parse is Parse for a screen with that many columns for a table.
func parse(src string, opens func(url string) bool, columns int) Text {
	src = strings.Map(Clean, src)
	if !excessive(src) {
		source := []byte(src)
		w := writer{src: source, opens: opens, columns: columns}
		w.blocks(grammar().Parse(text.NewReader(source)))
		t := Text{Plain: string(w.out), Spans: w.spans}
		if t = t.slice(len(t.Plain)-len(strings.TrimLeft(t.Plain, "\n")), len(t.Plain)); visible(t.Plain) {
			return t
		}
	}
	if !visible(src) {
		return Text{}
	}
	return Text{Plain: strings.TrimSpace(strings.ReplaceAll(src, "\t", " "))}
}

// grammar is CommonMark with tables, task lists and strikethrough, but without HTML,
// underlined headings (a line above --- is a line above a rule) and references (their
// definitions would disappear). What only looks like a mark in chats is text: see
// markParser and quoteParser.
var grammar = sync.OnceValue(newGrammar)

func newGrammar() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(
			util.Prioritized(parser.NewThematicBreakParser(), 200),
			util.Prioritized(parser.NewListParser(), 300),
			util.Prioritized(parser.NewListItemParser(), 400),
			util.Prioritized(parser.NewCodeBlockParser(), 500),
			util.Prioritized(parser.NewATXHeadingParser(), 600),
			util.Prioritized(parser.NewFencedCodeBlockParser(), 700),
			util.Prioritized(quoteParser{parser.NewBlockquoteParser()}, 800),
			util.Prioritized(parser.NewParagraphParser(), 1000),
		),
		parser.WithInlineParsers(
			util.Prioritized(extension.NewTaskCheckBoxParser(), 0),
			util.Prioritized(parser.NewCodeSpanParser(), 100),
			util.Prioritized(linkParser{parser.NewLinkParser()}, 200),
			util.Prioritized(parser.NewAutoLinkParser(), 300),
			util.Prioritized(markParser{}, 500),
		),
		parser.WithParagraphTransformers(util.Prioritized(tableTransformer{}, 200)),
		parser.WithASTTransformers(
			util.Prioritized(extension.NewTableASTTransformer(), 0),
			util.Prioritized(itemNumbers{}, 1),
		),
	)
}

// nestForm matches the mark of a quote or of a list's item.
var nestForm = lazyregexp.New(`>|[-+*.)][ \t]`)

// excessive reports whether src exceeds the limits above.
func excessive(src string) bool {
	if len(src) > maxSource || strings.Count(src, "](") > maxLinks {
		return true
	}
	lines := 0
	columns := 0
	marks := 0
	for line := range strings.Lines(src) {
		lines++
		marks += strings.Count(line, "*") + strings.Count(line, "_") + strings.Count(line, "~")
		if marks > maxMarks {
			return true
		}
		if !visible(line) {
			marks = 0
		}
		columns = max(columns, strings.Count(line, "|"))
		start := line[:len(line)-len(strings.TrimLeft(line, ">-+*.)0123456789 \t"))]
		if len(nestForm.FindAllString(start, -1)) > maxNest {
			return true
		}
	}
	return lines*columns > maxCells
}
