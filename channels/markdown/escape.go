package markdown

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"parley/lazyregexp"
)

// Escape returns src for a network that reads Markdown itself, less strictly than
// Parse. Characters that Parse takes for text and the network would take for a mark get
// a backslash, among them the || of spoilers and list numbers out of sequence. Code and
// web addresses stay as they are.
func Escape(src string) string {
	if excessive(src) {
		return src
	}
	e := escaper{
		src:       []byte(src),
		endsWord:  underscoreAtEnd.MatchString(src),
		addresses: webAddress.FindAllStringIndex(src, -1),
	}
	document := grammar().Parse(text.NewReader(e.src))
	_ = ast.Walk(document, e.node) // node returns no errors
	return e.result()
}

// node escapes what is no mark in n. It is an [ast.Walker].
func (e *escaper) node(n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	switch n := n.(type) {
	case *ast.CodeSpan, *ast.AutoLink, *ast.FencedCodeBlock:
		return ast.WalkSkipChildren, nil
	case *ast.Text:
		e.words(n.Segment.Start, n.Segment.Stop)
	case *ast.CodeBlock:
		for _, line := range n.Lines().Sliced(0, n.Lines().Len()) {
			e.words(line.Start, line.Stop)
		}
	case *ast.List:
		e.numbers(n)
	}
	return ast.WalkContinue, nil
}

// underscoreAtEnd matches a _ at the end of a word. Only if there is one can a single _
// between words begin an emphasis.
var underscoreAtEnd = lazyregexp.New(`_(?:[^0-9A-Za-z_]|$)`)

// An escaper collects the places where backslashes are missing.
type escaper struct {
	src      []byte
	endsWord bool // a _ stands at the end of a word
	at       []int

	wordEnd   int     // end of the latest word with a backslash
	keeps     bool    // the backslashes of that word stand for themselves
	addresses [][]int // start and end of the web addresses ahead
}

func (e *escaper) result() string {
	slices.Sort(e.at)
	var out strings.Builder
	from := 0
	for _, at := range e.at {
		out.Write(e.src[from:at])
		out.WriteByte('\\')
		from = at
	}
	out.Write(e.src[from:])
	return out.String()
}

// words escapes what is no mark in src[from:to].
func (e *escaper) words(from, to int) {
	if bytes.HasPrefix(e.src[from:to], []byte(">>> ")) {
		e.at = append(e.at, from)
	}
	for at := from; at < to; {
		c := e.src[at]
		end := at + 1
		switch {
		case c == '\\' && end < to && e.inWebAddress(at):
		case c == '\\' && end < to && util.IsPunct(e.src[end]):
			if e.keepsBackslashes(at) {
				e.at = append(e.at, at, at) // the first two of three backslashes show one
			}
			end++
		case c == '\\' && end < to && e.src[end] >= utf8.RuneSelf: // Parse shows it, and networks may not
			e.at = append(e.at, at)
		case strings.IndexByte("*_~|", c) >= 0:
			for end < to && e.src[end] == c {
				end++
			}
			if e.misread(at, end) && !e.inWebAddress(at) {
				for i := range end - at {
					e.at = append(e.at, at+i)
				}
			}
		}
		at = end
	}
}

// misread reports whether a network may take the equal characters src[at:end] for a mark.
func (e *escaper) misread(at, end int) bool {
	before, _ := utf8.DecodeLastRune(e.src[:at])
	after, _ := utf8.DecodeRune(e.src[end:])
	switch e.src[at] {
	case '~', '|':
		return end-at > 1
	case '_':
		return end-at > 1 || e.endsWord || !isWord(before) || !isWord(after)
	}
	space := func(r rune, beyond bool) bool { return beyond || unicode.IsSpace(r) }
	return end-at > 1 || !space(before, at == 0) || !space(after, end == len(e.src))
}

// numbers escapes the numbers of l that do not follow from the one before.
func (e *escaper) numbers(l *ast.List) {
	next := l.Start
	for item := l.FirstChild(); item != nil && l.IsOrdered(); item = item.NextSibling() {
		if number, outOfSequence := itemNumberAfter(e.src, item, next); outOfSequence {
			e.at = append(e.at, item.Pos()+len(number))
			next, _ = strconv.Atoi(number)
		}
		next++
	}
}

// webAddress matches an address that a network recognises by itself, up to the next
// white space or <, and the address of a link.
var webAddress = lazyregexp.New(`(?i)\]\(https?://[^)\s]*|https?://[^\s<]+`)

// inWebAddress reports whether src[at] is part of a web address. From call to call, at
// must not decrease.
func (e *escaper) inWebAddress(at int) bool {
	for len(e.addresses) > 0 && e.addresses[0][1] <= at {
		e.addresses = e.addresses[1:]
	}
	return len(e.addresses) > 0 && e.addresses[0][0] <= at
}

// keepsBackslashes reports whether the backslash at src[at] stands for itself. It
// examines each word once, because a long one may have many backslashes.
func (e *escaper) keepsBackslashes(at int) bool {
	if at >= e.wordEnd {
		e.keeps, e.wordEnd = keepsBackslashes(e.src, at)
	}
	return e.keeps
}
