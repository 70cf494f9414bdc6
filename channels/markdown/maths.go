package markdown

import (
	"bytes"
	"html"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley/lazyregexp"
)

// Formulas are TeX between $…$, $$…$$, \(…\) or \[…\]. They reach the page as they were written, with
// their marks, in an element of the class math: a script there shows them as formulas, and whoever has
// no script reads the TeX.

const maxFormula = 4096 // bytes

var (
	kindFormula      = ast.NewNodeKind("Formula")
	kindFormulaBlock = ast.NewNodeKind("FormulaBlock")
)

// A formula is a formula within a line.
type formula struct {
	ast.BaseInline
	tex []byte // with its marks
}

// Kind implements [ast.Node].
func (*formula) Kind() ast.NodeKind { return kindFormula }

// Dump implements [ast.Node].
func (f *formula) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// formulaParser reads formulas within lines.
type formulaParser struct{}

// Trigger implements [parser.InlineParser].
func (formulaParser) Trigger() []byte { return []byte(`$\`) }

// Parse implements [parser.InlineParser].
func (formulaParser) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, segment := block.PeekLine()
	before := block.PrecendingCharacter()
	if line[0] == '$' && !bytes.HasPrefix(line, []byte("$$")) {
		end := moneyless(line)
		if end < 0 || isWord(before) || before == '$' {
			return nil
		}
		block.Advance(end)
		return &formula{tex: line[:end]}
	}
	closing := closingMark(line)
	if closing == nil || !isNear(block.Source()[segment.Start+2:], closing) {
		return nil
	}
	// It may go on in further lines of the paragraph.
	var tex []byte
	for from := 2; len(tex) < maxFormula; from = 0 {
		if end := bytes.Index(line[from:], closing); end >= 0 {
			end += from + len(closing)
			tex = append(tex, line[:end]...)
			if !visible(string(tex[2 : len(tex)-2])) {
				return nil
			}
			block.Advance(end)
			return &formula{tex: tex}
		}
		tex = append(tex, line...)
		block.AdvanceLine()
		if line, segment = block.PeekLine(); line == nil || segment.IsEmpty() {
			return nil
		}
	}
	return nil
}

// closingMark returns what ends the formula that begins with the first two bytes of line, or nil.
func closingMark(line []byte) []byte {
	switch {
	case bytes.HasPrefix(line, []byte("$$")):
		return []byte("$$")
	case bytes.HasPrefix(line, []byte(`\(`)):
		return []byte(`\)`)
	case bytes.HasPrefix(line, []byte(`\[`)):
		return []byte(`\]`)
	}
	return nil
}

// isNear reports whether closing is in text so near that a formula may reach there. It keeps marks that
// nothing closes from taking long.
func isNear(text, closing []byte) bool {
	return bytes.Contains(text[:min(len(text), maxFormula)], closing)
}

// moneyless returns the length of the formula between dollars at the beginning of line, or -1: $5 and
// $6 are money, and $HOME/$USER are variables.
func moneyless(line []byte) int {
	end := 1
	for end < len(line) && line[end] != '$' {
		if line[end] == '\\' {
			end++
		}
		end++
	}
	if end >= len(line) || end == 1 || end > maxFormula {
		return -1
	}
	tex := line[1:end]
	last := tex[len(tex)-1]
	after := run{rest: line[end+1:]}.after()
	if util.IsSpace(tex[0]) || util.IsSpace(last) || isWord(after) || after == '$' || !looksLikeTeX(string(tex)) {
		return -1
	}
	return end + 1
}

var (
	// texWords are commands, and groups of words as in \text{if odd}.
	texWords = lazyregexp.New(`\\(?:text|textbf|textit|mathrm|operatorname)\{[^{}]*\}|\\[A-Za-z]+`)
	words    = lazyregexp.New(`[A-Za-z]{3,}`)
)

// looksLikeTeX reports whether what stands between two dollars is a formula rather than prose between
// two prices.
func looksLikeTeX(tex string) bool {
	if strings.Contains(tex, "`") {
		return false
	}
	if !strings.ContainsAny(tex, " \t") {
		return true
	}
	rest := texWords.ReplaceAllString(tex, " ")
	prose := len(words.FindAllString(rest, -1))
	switch hasMarks := strings.ContainsAny(tex, `\^_={}<>`); {
	case hasMarks:
		return prose < 2
	case prose > 0:
		return false
	}
	return tex[0] < '0' || tex[0] > '9' || strings.ContainsAny(tex, "+-*/|")
}

// A formulaBlock is a formula on lines of its own.
type formulaBlock struct {
	ast.BaseBlock
	closing []byte
	isDone  bool
}

// Kind implements [ast.Node].
func (*formulaBlock) Kind() ast.NodeKind { return kindFormulaBlock }

// IsRaw implements [ast.Node].
func (*formulaBlock) IsRaw() bool { return true }

// Dump implements [ast.Node].
func (f *formulaBlock) Dump(source []byte, level int) { ast.DumpHelper(f, source, level, nil, nil) }

// formulaBlockParser reads formulas that begin and end a line. One without an end, as in an answer that
// is still being written, is none.
type formulaBlockParser struct{}

// Trigger implements [parser.BlockParser].
func (formulaBlockParser) Trigger() []byte { return []byte(`$\`) }

// Open implements [parser.BlockParser].
func (formulaBlockParser) Open(_ ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	at := pc.BlockOffset()
	if at < 0 || at >= len(line) {
		return nil, parser.NoChildren
	}
	closing := closingMark(line[at:])
	if closing == nil || bytes.Equal(closing, []byte(`\)`)) {
		return nil, parser.NoChildren
	}
	f := &formulaBlock{closing: closing}
	first := line[at+2:]
	switch inLine := bytes.Index(first, closing); {
	case inLine < 0 && !ends(reader.Source()[segment.Stop:], closing):
		return nil, parser.NoChildren
	case inLine >= 0 && (visible(string(first[inLine+2:])) || !visible(string(first[:inLine]))):
		return nil, parser.NoChildren // words follow
	case inLine >= 0:
		f.isDone = true
	}
	f.Lines().Append(text.NewSegment(segment.Start+at, segment.Stop))
	reader.AdvanceToEOL()
	return f, parser.NoChildren
}

// ends reports whether a line of the paragraph that rest begins with ends with closing.
func ends(rest, closing []byte) bool {
	if !isNear(rest, closing) {
		return false
	}
	for line := range bytes.Lines(rest[:min(len(rest), maxFormula)]) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			return false
		}
		if bytes.HasSuffix(line, closing) {
			return true
		}
	}
	return false
}

// Continue implements [parser.BlockParser].
func (formulaBlockParser) Continue(n ast.Node, reader text.Reader, _ parser.Context) parser.State {
	f := n.(*formulaBlock)
	line, segment := reader.PeekLine()
	if f.isDone || util.IsBlank(line) {
		return parser.Close
	}
	f.Lines().Append(segment)
	f.isDone = bytes.HasSuffix(bytes.TrimSpace(line), f.closing)
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

// Close implements [parser.BlockParser].
func (formulaBlockParser) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph implements [parser.BlockParser].
func (formulaBlockParser) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements [parser.BlockParser].
func (formulaBlockParser) CanAcceptIndentedLine() bool { return false }

// formulas renders formulas.
type formulas struct{}

// RegisterFuncs implements [renderer.NodeRenderer].
func (formulas) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(kindFormula, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		_, err := w.WriteString(`<span class="math">` + html.EscapeString(string(n.(*formula).tex)) + "</span>")
		return ast.WalkContinue, err
	})
	r.Register(kindFormulaBlock, func(w util.BufWriter, src []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		tex := strings.TrimSpace(string(n.Lines().Value(src)))
		_, err := w.WriteString(`<div class="math">` + html.EscapeString(tex) + "</div>\n")
		return ast.WalkContinue, err
	})
}
