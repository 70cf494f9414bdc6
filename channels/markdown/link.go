package markdown

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"

	"parley/lazyregexp"
)

// A linkParser reads links. A call directly behind an index or a name, as in
// handlers[i](x), is code and no link, so its brackets are shown.
type linkParser struct{ links parser.InlineParser }

// indexForm matches an index and the arguments of a call that are no address.
var indexForm = lazyregexp.New(`^\[[^\[\]\n]*\]\([^()\s:/#]*\)`)

// Trigger implements [parser.InlineParser].
func (p linkParser) Trigger() []byte { return p.links.Trigger() }

// Parse implements [parser.InlineParser].
func (p linkParser) Parse(parent ast.Node, block text.Reader, pc parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before := block.PrecendingCharacter()
	if line[0] == '[' && (isWord(before) || before == '_' || before == ']' || before == ')') && indexForm.Match(line) {
		block.Advance(1)
		return ast.NewTextSegment(segment.WithStop(segment.Start + 1))
	}
	return p.links.Parse(parent, block, pc)
}

// CloseBlock implements [parser.CloseBlocker].
func (p linkParser) CloseBlock(parent ast.Node, block text.Reader, pc parser.Context) {
	if closer, ok := p.links.(parser.CloseBlocker); ok {
		closer.CloseBlock(parent, block, pc)
	}
}
