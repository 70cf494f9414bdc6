package sandbox

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"parley/chat"
)

// Ends is an [io.Writer] that keeps the beginning and the end of what is written to it: half of Max
// characters of each.
type Ends struct {
	Max int

	head       []byte
	tail       []byte // up to twice as much as is needed, so that it is rarely moved
	characters int64  // that were written, as far as it was UTF-8
}

// Write never fails.
func (e *Ends) Write(p []byte) (int, error) {
	e.characters += countRunes(p)
	enough := (e.Max/2 + 1) * utf8.UTFMax
	n := min(len(p), enough-len(e.head))
	e.head = append(e.head, p[:n]...)
	rest := p[n:]
	e.tail = append(e.tail, rest[max(0, len(rest)-enough):]...)
	if over := len(e.tail) - enough; over > enough {
		e.tail = append(e.tail[:0], e.tail[over:]...)
	}
	return len(p), nil
}

// countRunes counts the characters that begin in p. A character may be written in two parts.
func countRunes(p []byte) (n int64) {
	for _, b := range p {
		if utf8.RuneStart(b) {
			n++
		}
	}
	return n
}

// Append writes to e what was written to more, which has the same Max.
func (e *Ends) Append(more *Ends) {
	all := e.characters + more.characters
	_, _ = e.Write(more.head)
	_, _ = e.Write(more.tail)
	e.characters = all
}

// Cut reports whether there was more than Max characters.
func (e *Ends) Cut() bool {
	_, missing := e.kept()
	return missing > 0
}

// kept returns both ends together, and how many characters are too many.
func (e *Ends) kept() (text string, missing int64) {
	text = string(e.head) + string(e.tail)
	return text, max(e.characters, int64(utf8.RuneCountInString(text))) - int64(e.Max)
}

// String returns what was written, as valid UTF-8. Of more than Max characters it returns both ends,
// and between them how many are missing (D-076).
func (e *Ends) String() string {
	text, missing := e.kept()
	if missing > 0 {
		gap := fmt.Sprintf("\n\n... (%s chars truncated) ...\n\n", withCommas(missing))
		text = chat.Clip(text, e.Max/2, gap) + lastCharacters(text, e.Max/2)
	}
	return strings.ToValidUTF8(text, "\ufffd")
}

// lastCharacters returns the last n characters of text.
func lastCharacters(text string, n int) string {
	start := len(text)
	for ; n > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	return text[start:]
}

// withCommas returns 1234567 as "1,234,567".
func withCommas(n int64) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// ClipEnds returns text as an Ends of so many characters has it.
func ClipEnds(text string, limit int) string {
	e := Ends{Max: limit}
	_, _ = e.Write([]byte(text))
	return e.String()
}
