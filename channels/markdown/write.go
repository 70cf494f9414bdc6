package markdown

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley/lazyregexp"
)

// A writer writes the nodes of a document as a Text.
type writer struct {
	src     []byte
	opens   func(url string) bool
	columns int // that a table may have
	out     []byte
	spans   []Span
	open    [kinds]bool
	indent  string // at the beginning of each line of the current block
	fresh   bool   // the indent of the current line is not written yet
}

func (w *writer) write(s string) {
	if w.fresh {
		w.out = append(w.out, w.indent...)
		w.fresh = false
	}
	w.out = append(w.out, s...)
}

func (w *writer) newline() {
	w.out = append(w.out, '\n')
	w.fresh = true
}

// begin opens a span and returns what end needs to close it.
func (w *writer) begin(k Kind, arg string) int {
	if w.open[k] || w.open[Code] {
		return -1
	}
	w.write("")
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

// within writes the contents of n as a span of kind k.
func (w *writer) within(k Kind, n ast.Node, write func(ast.Node)) {
	i := w.begin(k, "")
	write(n)
	w.end(i)
}

// margin goes to the left margin: of a new line, unless the current one is empty.
func (w *writer) margin() {
	if !w.fresh && len(w.out) > 0 && w.out[len(w.out)-1] != '\n' {
		w.newline()
	}
	w.fresh = false
}

// blocks writes the blocks in parent, each on lines of its own.
func (w *writer) blocks(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.gap(n)
		w.block(n)
	}
}

// gap ends the block before n. There is a blank line where the source has one,
// and before headings and tables.
func (w *writer) gap(n ast.Node) {
	if n.PreviousSibling() == nil {
		return
	}
	if n.HasBlankPreviousLines() || n.Kind() == ast.KindHeading || n.Kind() == extast.KindTable {
		w.newline()
	}
	w.newline()
}

func (w *writer) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		w.within(Bold, n, w.inlines)
	case *ast.ThematicBreak:
		w.write("———")
	case *ast.FencedCodeBlock:
		lang, more := fenceInfo(n, w.src)
		if more != "" {
			w.write(more)
			w.newline()
		}
		w.code(n.Lines(), lang)
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

// quote writes a quote at the left margin. A quote within a quote, which chats do not
// have, keeps its mark.
func (w *writer) quote(n ast.Node) {
	if w.open[Quote] {
		w.indented("> ", "> ", n)
		return
	}
	w.margin()
	outer := w.indent
	w.indent = ""
	w.within(Quote, n, w.blocks)
	w.indent = outer
}

func (w *writer) list(l *ast.List) {
	for n := l.FirstChild(); n != nil; n = n.NextSibling() {
		w.gap(n)
		mark := "• "
		if l.IsOrdered() {
			mark = itemNumber(w.src, n) + string(l.Marker) + " "
		} else if hasCheckBox(n) {
			mark = "" // the box is enough
		}
		w.indented(mark, strings.Repeat(" ", max(2, utf8.RuneCountInString(mark))), n)
	}
}

// hasCheckBox reports whether a list item begins with the check box of a task.
func hasCheckBox(item ast.Node) bool {
	first := item.FirstChild()
	return first != nil && first.FirstChild() != nil && first.FirstChild().Kind() == extast.KindTaskCheckBox
}

// itemNumberAfter returns the number of an item of an ordered list, and whether it is
// another one than next.
func itemNumberAfter(src []byte, item ast.Node, next int) (number string, outOfSequence bool) {
	number = itemNumber(src, item)
	value, err := strconv.Atoi(number)
	return number, err == nil && value != next
}

// itemNumber returns the number of an item of an ordered list as it is written.
func itemNumber(src []byte, item ast.Node) string {
	rest := src[item.Pos():]
	return string(rest[:len(rest)-len(bytes.TrimLeft(rest, "0123456789"))])
}

// indented writes the blocks in n, with mark before the first line, and with indent
// before the others as long as that leaves room for words on a phone.
func (w *writer) indented(mark, indent string, n ast.Node) {
	const maxIndentBytes = 16
	w.write(mark)
	outer := w.indent
	if len(w.indent+indent) <= maxIndentBytes {
		w.indent += indent
	}
	w.blocks(n)
	w.indent = outer
}

// code writes lines of code unchanged at the left margin, so that they can be copied.
func (w *writer) code(lines *text.Segments, lang string) {
	w.margin()
	i := w.begin(Pre, lang)
	w.write(strings.TrimSuffix(strings.ReplaceAll(string(lines.Value(w.src)), "\t", "    "), "\n"))
	w.end(i)
}

// fenceInfo returns FenceInfo of the text behind the fence of n. If there is no code, such as below
// "~~~ see you", nothing is in a language.
func fenceInfo(n *ast.FencedCodeBlock, src []byte) (lang, more string) {
	switch {
	case n.Info == nil:
		return "", ""
	case len(bytes.TrimSpace(n.Lines().Value(src))) == 0:
		return "", strings.TrimSpace(textOf(n.Info, src))
	}
	return FenceInfo(textOf(n.Info, src))
}

// FenceInfo splits the text behind the fence of a code block into the language, if it
// begins with one, and the rest.
func FenceInfo(info string) (lang, more string) {
	info = strings.TrimSpace(info)
	lang, more, _ = strings.Cut(info, " ")
	if len(lang) > 32 || strings.Trim(strings.ToLower(lang), "abcdefghijklmnopqrstuvwxyz0123456789+-_.#") != "" {
		return "", info
	}
	return lang, strings.TrimSpace(more)
}

func (w *writer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n)
	}
}

func (w *writer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.write(textOf(n, w.src))
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.newline()
		}
	case *ast.CodeSpan:
		w.within(Code, n, w.codeSpan)
	case *ast.Emphasis:
		k := Italic
		if n.Level > 1 {
			k = Bold
		}
		w.within(k, n, w.inlines)
	case *extast.Strikethrough:
		w.within(Strike, n, w.inlines)
	case *ast.Link:
		w.link(n, unescape(n.Destination))
	case *ast.Image:
		w.link(n, unescape(n.Destination))
	case *ast.AutoLink:
		w.write(string(n.Label(w.src)))
	case *extast.TaskCheckBox:
		w.write(map[bool]string{true: "☑ ", false: "☐ "}[n.IsChecked])
	default:
		w.inlines(n)
	}
}

func (w *writer) codeSpan(n ast.Node) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			w.write(strings.NewReplacer("\t", " ", "\n", " ").Replace(string(t.Segment.Value(w.src))))
		}
	}
}

// link writes a link or an image. An address that cannot be opened is written out, as is
// one that is its own label.
func (w *writer) link(n ast.Node, url string) {
	address := strings.TrimPrefix(strings.TrimPrefix(url, "mailto:"), "tel:")
	i := -1
	if w.opens(url) {
		i = w.begin(Link, url)
	}
	start := len(w.out)
	w.inlines(n)
	label := strings.TrimSpace(string(w.out[start:]))
	switch {
	case !visible(label):
		w.write(address)
		label = address
	case w.open[Link], address == "", label == address, strings.HasPrefix(url, "data:"):
	default:
		w.write(" (" + address + ")")
	}
	w.end(i)
	if i >= 0 && label == address {
		w.spans[i].End = w.spans[i].Start // chats link it themselves
	}
}

// textOf returns the words of n.
func textOf(n *ast.Text, src []byte) string {
	words := resolve(src, n.Segment.Start, n.Segment.Stop)
	if end := n.Segment.Stop; n.HardLineBreak() && end < len(src) && src[end] == '\\' {
		if keeps, _ := keepsBackslashes(src, end); keeps {
			words += `\` // the end of a path, not the mark of a line's end
		}
	}
	return words
}

// unescape resolves the backslashes and entities of Markdown.
func unescape(b []byte) string { return resolve(b, 0, len(b)) }

// resolve returns src[from:to] with its backslashes and entities resolved.
func resolve(src []byte, from, to int) string {
	var out strings.Builder
	keeps := false // the backslashes up to known stand for themselves
	known := from
	for at := from; at < to; {
		entity := ""
		if src[at] == '&' {
			entity = entityForm.FindString(string(src[at:min(to, at+40)]))
		}
		switch {
		case src[at] == '\\' && at+1 < to && util.IsPunct(src[at+1]):
			if at >= known {
				keeps, known = keepsBackslashes(src, at)
			}
			if keeps {
				out.WriteByte('\\')
			}
			out.WriteByte(src[at+1])
			at += 2
		case entity != "":
			out.Write(util.ResolveEntityNames(util.ResolveNumericReferences([]byte(entity))))
			at += len(entity)
		default:
			out.WriteByte(src[at])
			at++
		}
	}
	return strings.ReplaceAll(strings.Map(Clean, out.String()), "\t", " ")
}

var (
	entityForm = lazyregexp.New(`^&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});`)

	// plainBackslash matches a word in which backslashes stand for themselves, such as
	// a path, a regular expression or a formula: before a letter or a digit, a
	// backslash is no mark of Markdown, so the others in that word are none either.
	// No mark needs a backslash before /, which sed and JavaScript have.
	plainBackslash = lazyregexp.New(`\\[A-Za-z0-9/]|^['(\[]?(?:[A-Za-z]:|%\w+%|\.{1,2}|~)\\[^~]`)
)

// keepsBackslashes reports whether the backslash at src[at] is in a word whose
// backslashes stand for themselves, and where the word ends.
func keepsBackslashes(src []byte, at int) (keeps bool, wordEnd int) {
	end := bytes.IndexFunc(src[at:min(len(src), at+maxWord)], endsAddress)
	if end < 0 {
		end = min(len(src), at+maxWord) - at
	}
	word := src[wordStart(src, at) : at+end]
	return plainBackslash.Match(escapedBackslash.ReplaceAll(word, []byte("//"))) || uncForm.Match(word), at + end
}

var (
	escapedBackslash = lazyregexp.New(`\\\\`)
	uncForm          = lazyregexp.New(`^['(\[]?\\\\[\w.-]+\\[\w.$-]`) // \\server\share
)
