// Package markdown turns what models write into text that any chat can show:
// plain words, and spans that say which of them are bold, code or a link. A
// channel renders the spans in its own markup.
package markdown

import (
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Text is words without markup, and how to show them.
type Text struct {
	Plain string // valid UTF-8 without control characters but \n
	Spans []Span // properly nested; by Start, the outer of two first; none empty
}

// A Span is a stretch of a Text's Plain that is shown in one way. No span lies
// within another of its Kind, and none within Code or Pre.
type Span struct {
	Start, End int // byte offsets
	Kind       Kind
	Arg        string // of a Link its URL; of a Pre the language, if known
}

// A Kind is a way to show text.
type Kind int

// The kinds of a Span.
const (
	Bold Kind = iota
	Italic
	Strike
	Code  // some words of code in a line
	Pre   // lines of code, or a table
	Link  // http, https, tg, mailto or tel
	Quote // whole lines
	kinds // how many there are
)

// Visible reports whether r leaves a mark in a chat. Networks refuse a message
// in which nothing does.
func Visible(r rune) bool {
	const unseen = "\u2800\ufffc\u030a\u0333\u033f" // blank Braille, placeholder, and marks that Telegram removes
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !strings.ContainsRune(unseen, r)
}

// visible reports whether anything of s is.
func visible(s string) bool { return strings.ContainsFunc(s, Visible) }

// Clean says what to put in place of r, for strings.Map. What could move the
// cursor of a terminal or turn the direction of the text around goes.
func Clean(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case r == '\u2028', r == '\u2029':
		return '\n'
	case unicode.IsControl(r), '\u202a' <= r && r <= '\u202e', '\u2066' <= r && r <= '\u2069':
		return -1
	}
	return r
}

// Split cuts t into parts of at most limit, as size measures them: between
// paragraphs if that fills half a part, else between lines, sentences or words.
// Spans that are cut go on in the next part. Nothing but space at the cuts is
// lost, and every part has something Visible. The size of a string must be the
// sum of the sizes of its runes; a rune larger than limit is a part of its own.
func (t Text) Split(limit int, size func(string) int) []Text {
	var parts []Text
	for at := 0; at < len(t.Plain); {
		end := at + prefix(t.Plain[at:], limit, size)
		if end < len(t.Plain) {
			end = t.cut(at, end)
		}
		if p := t.slice(at, end); visible(p.Plain) {
			parts = append(parts, p)
		}
		at = end + t.space(end)
	}
	return parts
}

// prefix returns how many bytes of s fit.
func prefix(s string, limit int, size func(string) int) int {
	total := 0
	for i, r := range s {
		if total += size(s[i : i+utf8.RuneLen(r)]); total > limit && i > 0 {
			return i
		}
	}
	return len(s)
}

// The places to cut, worst first.
const (
	nowhere = iota
	afterWord
	afterSentence
	afterCode // between two lines of code
	afterLine
	afterParagraph
)

// cut returns where to end a part that begins at and may go on until end, which
// is not the end of t.
func (t Text) cut(at, end int) int {
	best, where := nowhere, 0
	for i := end; i > at && best < afterParagraph && (best == nowhere || i >= at+(end-at)/2); i-- {
		if p := t.place(i); p > best {
			best, where = p, i
		}
	}
	if best == nowhere || !visible(t.Plain[at:where]) {
		return at + whole(t.Plain[at:], end-at)
	}
	return where
}

// place says what ends before the byte at i.
func (t Text) place(i int) int {
	next, _ := utf8.DecodeRuneInString(t.Plain[i:])
	last, _ := utf8.DecodeLastRuneInString(t.Plain[:i])
	switch {
	case next == '\n' && t.inCode(i):
		return afterCode
	case strings.HasPrefix(t.Plain[i:], "\n\n"):
		return afterParagraph
	case next == '\n':
		return afterLine
	case unicode.IsSpace(next) && strings.ContainsRune(".!?…", last) && !t.inCode(i), strings.ContainsRune("。！？", last):
		return afterSentence
	case unicode.IsSpace(next):
		return afterWord
	}
	return nowhere
}

// inCode reports whether i is within lines of code.
func (t Text) inCode(i int) bool {
	n := sort.Search(len(t.Spans), func(n int) bool { return t.Spans[n].Start >= i })
	return n > 0 && t.Spans[n-1].Kind == Pre && i < t.Spans[n-1].End
}

// space returns the length of the space at i, where a part ended. Within code
// the next line keeps its indent.
func (t Text) space(i int) int {
	rest := t.Plain[i:]
	n := len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	if t.inCode(i) {
		return strings.LastIndexByte(rest[:n], '\n') + 1
	}
	return n
}

// whole returns n, or a little less, so that s is not cut between a character
// and its accents or its skin, or within a family.
func whole(s string, n int) int {
	const joiner = '\u200d'
	for i := n; i > 0 && n-i < 64; {
		next, _ := utf8.DecodeRuneInString(s[i:])
		last, size := utf8.DecodeLastRuneInString(s[:i])
		if last != joiner && next != joiner && !unicode.In(next, unicode.M) && (next < 0x1f3fb || next > 0x1f3ff) {
			return i
		}
		i -= size
	}
	return n
}

// slice returns t from a to b, without the space at its end.
func (t Text) slice(a, b int) Text {
	p := Text{Plain: strings.TrimRightFunc(t.Plain[a:b], unicode.IsSpace)}
	b = a + len(p.Plain)
	for _, s := range t.Spans {
		if s.Start, s.End = max(s.Start, a)-a, min(s.End, b)-a; s.Start < s.End {
			p.Spans = append(p.Spans, s)
		}
	}
	return p
}
