package untrusted

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Typed is what a person typed in a turn, message by message, without regard to
// case and white space.
type Typed []string

// NewTyped returns the text of messages, without lines that quote other people.
func NewTyped(messages []string) Typed {
	typed := make(Typed, len(messages))
	for i, s := range messages {
		typed[i] = normalizeSpace(withoutQuotes(s))
	}
	return typed
}

// Contains reports whether one of the messages contains words, as whole words. No
// message contains an empty text.
func (t Typed) Contains(words string) bool {
	words = normalizeSpace(words)
	if words == "" {
		return false
	}
	for _, message := range t {
		if hasWholeWords(message, words) {
			return true
		}
	}
	return false
}

// hasWholeWords reports whether text contains words, which is not empty, such that
// neither end of it is inside a longer word.
func hasWholeWords(text, words string) bool {
	first, size := utf8.DecodeRuneInString(words)
	last, _ := utf8.DecodeLastRuneInString(words)
	for from := 0; ; {
		i := strings.Index(text[from:], words)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(text[:i])
		after, _ := utf8.DecodeRuneInString(text[i+len(words):])
		if !(inWord(before) && inWord(first)) && !(inWord(last) && inWord(after)) {
			return true
		}
		from = i + size
	}
}

// inWord reports whether r can be part of a word in a script with spaces between
// words.
func inWord(r rune) bool {
	return r == '_' || unicode.IsDigit(r) || unicode.IsLetter(r) && !isDense(r)
}

// withoutQuotes returns text without lines that quote other people.
func withoutQuotes(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), ">") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// normalizeSpace returns text in lower case, with one space for any white space.
func normalizeSpace(text string) string {
	return strings.ToLower(strings.Join(strings.Fields(text), " "))
}
