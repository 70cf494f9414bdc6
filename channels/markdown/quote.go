package markdown

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"parley/lazyregexp"
)

// A quoteParser reads quotes. Comparisons such as >50% and >= 3, Python's prompt as in
// >>> f(x), and faces such as >_< are none.
type quoteParser struct{ quotes parser.BlockParser }

var comparison = lazyregexp.New(`^ {0,3}>(?:[0-9=.]|>> \S|[_.,^oO-]+<)`)

func compares(reader text.Reader) bool {
	line, _ := reader.PeekLine()
	return comparison.Match(line)
}

// Trigger implements [parser.BlockParser].
func (p quoteParser) Trigger() []byte { return p.quotes.Trigger() }

// Open implements [parser.BlockParser].
func (p quoteParser) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if compares(reader) {
		return nil, parser.NoChildren
	}
	return p.quotes.Open(parent, reader, pc)
}

// Continue implements [parser.BlockParser].
func (p quoteParser) Continue(node ast.Node, reader text.Reader, pc parser.Context) parser.State {
	if compares(reader) {
		return parser.Close
	}
	return p.quotes.Continue(node, reader, pc)
}

// Close implements [parser.BlockParser].
func (p quoteParser) Close(node ast.Node, reader text.Reader, pc parser.Context) {
	p.quotes.Close(node, reader, pc)
}

// CanInterruptParagraph implements [parser.BlockParser].
func (p quoteParser) CanInterruptParagraph() bool { return p.quotes.CanInterruptParagraph() }

// CanAcceptIndentedLine implements [parser.BlockParser].
func (p quoteParser) CanAcceptIndentedLine() bool { return p.quotes.CanAcceptIndentedLine() }
