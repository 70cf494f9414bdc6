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

// A Text is text without markup, with spans that say how to show it.
type Text struct {
	Plain string // valid UTF-8 without control characters except \n
	Spans []Span // properly nested, none empty; sorted by Start, outer spans first
}

// A Span is a part of a Text's Plain that is shown in one way. No span is inside another
// one of its Kind, nor inside Code or Pre.
type Span struct {
	Start, End int // byte offsets
	Kind       Kind
	Arg        string // the URL of a Link; the language of a Pre, if known
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

// Visible reports whether r can be seen in a chat. Networks refuse a message in which
// nothing can be seen.
func Visible(r rune) bool {
	const unseen = "\u2800\ufffc\u030a\u0333\u033f" // blank Braille, placeholder, and marks that Telegram removes
	return unicode.IsGraphic(r) && !unicode.IsSpace(r) && !strings.ContainsRune(unseen, r)
}

// visible reports whether anything of s can be seen.
func visible(s string) bool { return strings.ContainsFunc(s, Visible) }

// Clean is a mapping for strings.Map. It removes characters that could move the cursor of
// a terminal or reverse the direction of the text.
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

// Split cuts t into parts whose size is at most limit: between paragraphs if that fills
// half a part, else between lines, sentences or words. Spans that are cut continue in the
// next part. Only space at the cuts is lost, and every part has something Visible. The
// size of a string must be the sum of the sizes of its runes; a rune larger than limit
// becomes a part of its own.
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

// prefix returns how many bytes of s fit into limit.
func prefix(s string, limit int, size func(string) int) int {
	total := 0
	for i, r := range s {
		if total += size(s[i : i+utf8.RuneLen(r)]); total > limit && i > 0 {
			return i
		}
	}
	return len(s)
}

// Kinds of places to cut, the worst first.
const (
	nowhere = iota
	afterWord
	afterSentence
	afterCode // between two lines of code
	afterLine
	afterParagraph
)

// cut returns where to end a part that begins at at and may extend to end, which is not
// the end of t.
func (t Text) cut(at, end int) int {
	best := nowhere
	where := 0
	for i := end; i > at && best < afterParagraph && (best == nowhere || i >= at+(end-at)/2); i-- {
		if p := t.placeAt(i); p > best {
			best = p
			where = i
		}
	}
	if best == nowhere || !visible(t.Plain[at:where]) {
		return at + whole(t.Plain[at:], end-at)
	}
	return where
}

// placeAt returns what kind of place to cut the byte at i is.
func (t Text) placeAt(i int) int {
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

// inCode reports whether i is inside lines of code.
func (t Text) inCode(i int) bool {
	n := sort.Search(len(t.Spans), func(n int) bool { return t.Spans[n].Start >= i })
	return n > 0 && t.Spans[n-1].Kind == Pre && i < t.Spans[n-1].End
}

// space returns the length of the space at i, where a part ended. In code, the next line
// keeps its indent.
func (t Text) space(i int) int {
	rest := t.Plain[i:]
	n := len(rest) - len(strings.TrimLeftFunc(rest, unicode.IsSpace))
	if t.inCode(i) {
		return strings.LastIndexByte(rest[:n], '\n') + 1
	}
	return n
}

// whole returns n, or a little less, so that a cut of s does not separate a character from
// its accents or skin tone, nor the parts of a joined emoji.
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

// slice returns t from a to b without trailing space.
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
