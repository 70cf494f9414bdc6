// Package markdown turns what models write into text that any chat can show:
// plain words, and spans that say which of them are bold, code or a link. A
// channel renders the spans in its own markup.
package markdown

import (
	"strings"
	"unicode"
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
