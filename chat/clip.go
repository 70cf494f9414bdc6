package chat

import (
	"strings"
	"unicode"
)

// Clip returns the first n characters of text, and behind them more if that is
// not all. What is clipped is a copy, so that it does not keep all of text in memory.
func Clip(text string, n int, more string) string {
	for i := range text {
		if n--; n < 0 {
			return strings.Clone(text[:i]) + more
		}
	}
	return text
}

// IsShortCommand reports whether text is a command such as "/usage", which may be
// given also by whoever may not send anything else.
func IsShortCommand(text string) bool { return strings.HasPrefix(text, "/") && len(text) < 200 }

// Word returns the first word of text, and what is after it.
func Word(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	i := strings.IndexFunc(text+" ", unicode.IsSpace)
	return text[:i], strings.TrimSpace(text[i:])
}

// OneLine returns text that others wrote as one line that is safe to print in a
// list or at a terminal.
func OneLine(text string) string { return strings.Join(strings.Fields(Printable(text)), " ") }

// Printable returns text with spaces in the place of control characters, which
// could command a terminal. Line breaks and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		isControl := r < ' ' || r >= 0x7f && r < 0xa0
		if isControl && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, text)
}
