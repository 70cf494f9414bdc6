package chat

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/lazyregexp"
)

// Clip returns the first n characters of text, followed by more if text is longer.
// The result is a copy, so that it does not keep all of text in memory.
func Clip(text string, n int, more string) string {
	for i := range text {
		if n--; n < 0 {
			return strings.Clone(text[:i]) + more
		}
	}
	return text
}

// ClipBytes returns the beginning of text, of at most n bytes. If text was cut, the
// beginning ends with "…".
func ClipBytes(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[:n-len("…")], "")) + "…"
}

// Shorten returns text, cut to at most n characters. If it was cut, it ends with "…".
func Shorten(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return strings.TrimSpace(Clip(text, n-1, "")) + "…"
}

// ClipMiddle returns text with at most about most bytes, its middle left out.
func ClipMiddle(text string, most int) string {
	if len(text) <= most {
		return text
	}
	head, tail := text[:most/2], text[len(text)-most/2:]
	return strings.ToValidUTF8(head, "") + " … " + strings.ToValidUTF8(tail, "")
}

// IsShortCommand reports whether text is a command such as "/usage", which is
// answered even for people who may not send anything else.
func IsShortCommand(text string) bool {
	word, _ := Word(text)
	return len(text) < 200 && IsCommand(word)
}

var commandShape = lazyregexp.New(`^/[A-Za-z][A-Za-z0-9_-]{0,31}(@[A-Za-z0-9_]+)?$`)

// IsCommand reports whether word is one that begins a command, whether or not there is a command of that name: unlike a
// path such as /etc/hosts.
func IsCommand(word string) bool { return commandShape.MatchString(word) }

// Word returns the first word of text, and the rest of the text.
func Word(text string) (word, rest string) {
	text = strings.TrimSpace(text)
	i := strings.IndexFunc(text+" ", unicode.IsSpace)
	return text[:i], strings.TrimSpace(text[i:])
}

// OneLine returns text as one line, safe to show wherever it is listed, whoever wrote
// it: without control characters and without others that cannot be seen or that
// reverse the direction of writing.
func OneLine(text string) string {
	visible := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r), unicode.IsControl(r):
			return ' '
		case unicode.IsGraphic(r), r == zeroWidthJoiner, r == zeroWidthNonJoiner:
			return r
		}
		return -1
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(visible), " ")
}

// Invisible characters that OneLine keeps: one makes one emoji of several, and words
// of Persian need the other.
const (
	zeroWidthJoiner    = '\u200d'
	zeroWidthNonJoiner = '\u200c'
)

// Inline returns text, such as a name that somebody chose, fit for one line in
// brackets, with at most about most bytes.
func Inline(text string, most int) string {
	return ClipMiddle(OneLine(strings.NewReplacer("[", " ", "]", " ").Replace(text)), most)
}

// InlineCode returns what a program calls something as code in Markdown, of at most about n characters.
func InlineCode(text string, n int) string {
	return "`" + Clip(OneLine(strings.ReplaceAll(text, "`", "'")), n, "…") + "`"
}

// QuoteLines returns what a program says as a quote in Markdown, of at most about n characters, or "" if it says
// nothing. Each line is code, so that nothing in it is markup, a link or a mention.
func QuoteLines(text string, n int) string {
	var lines []string
	for line := range strings.Lines(Clip(Printable(text), n, "…")) {
		if OneLine(line) != "" {
			lines = append(lines, "> "+InlineCode(line, n))
		}
	}
	return strings.Join(lines, "\n")
}

// Printable returns text with control characters, which could control a terminal,
// replaced by spaces. Line breaks and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		isControl := r < ' ' || r >= 0x7f && r < 0xa0
		if isControl && r != '\n' && r != '\t' {
			return ' '
		}
		return r
	}, text)
}
