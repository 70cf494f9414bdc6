package markdown

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
)

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		i := w.begin(Bold, "")
		w.inlines(n)
		w.end(i)
	case *ast.ThematicBreak:
		w.out = append(w.out, "———"...)
	case *ast.FencedCodeBlock:
		w.code(n.Lines(), language(n.Language(w.src)))
	case *ast.CodeBlock:
		w.code(n.Lines(), "")
	case *ast.Blockquote:
		w.quote(n)
	case *ast.List:
		w.list(n)
	case *extast.Table:
		w.table(n)
	default:
		w.inlines(n)
	}
}

// quote writes a quote, at the left margin; one within another, which chats do not have, keeps its mark.
func (w *writer) quote(n ast.Node) {
	if w.open[Quote] {
		w.indented("> ", "> ", n)
		return
	}
	outer := w.indent
	w.margin()
	w.indent = ""
	i := w.begin(Quote, "")
	w.blocks(n)
	w.end(i)
	w.indent = outer
}

func (w *writer) list(l *ast.List) {
	number := l.Start
	for n := l.FirstChild(); n != nil; n = n.NextSibling() {
		if n != l.FirstChild() {
			w.gap(n)
		}
		mark := "• "
		if l.IsOrdered() {
			mark = strconv.Itoa(number) + string(l.Marker) + " "
			number++
		} else if isTask(n) {
			mark = "" // its box is mark enough
		}
		w.indented(mark, strings.Repeat(" ", max(2, utf8.RuneCountInString(mark))), n)
	}
}

// isTask reports whether a list's item begins with a box to tick.
func isTask(item ast.Node) bool {
	first := item.FirstChild()
	return first != nil && first.FirstChild() != nil && first.FirstChild().Kind() == extast.KindTaskCheckBox
}

// indented writes the blocks in n, with mark before the first line and indent
// before the others, as long as that leaves room for words on a phone.
func (w *writer) indented(mark, indent string, n ast.Node) {
	const most = 16 // bytes
	outer := w.indent
	if len(w.indent+indent) <= most {
		w.indent += indent
	}
	w.out = append(w.out, mark...)
	w.blocks(n)
	w.indent = outer
}

// code writes lines of code as they are, at the left margin, whence they can be copied.
func (w *writer) code(lines *text.Segments, lang string) {
	w.margin()
	i, start := w.begin(Pre, lang), len(w.out)
	for n := range lines.Len() {
		line := lines.At(n)
		w.out = append(w.out, bytes.ReplaceAll(line.Value(w.src), []byte("\t"), []byte("    "))...)
	}
	if len(w.out) > start && w.out[len(w.out)-1] == '\n' {
		w.out = w.out[:len(w.out)-1]
	}
	w.end(i)
}

// margin goes to the left margin: back over the indent of a line just begun, else to a new line.
func (w *writer) margin() {
	line := w.out[bytes.LastIndexByte(w.out, '\n')+1:]
	if w.indent != "" && string(line) == w.indent && !w.opensWithin(len(line)) {
		w.out = w.out[:len(w.out)-len(line)]
	} else if len(line) > 0 {
		w.out = append(w.out, '\n')
	}
}

// opensWithin reports whether a span begins or ends in the last n bytes.
func (w *writer) opensWithin(n int) bool {
	from := len(w.out) - n
	for _, s := range w.spans {
		if s.Start > from || s.End > from {
			return true
		}
	}
	return false
}

// language returns the language of a fence if it looks like one.
func language(info []byte) string {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-_.#", r))
	}
	if len(info) > 32 || bytes.ContainsFunc(info, odd) {
		return ""
	}
	return string(info)
}
