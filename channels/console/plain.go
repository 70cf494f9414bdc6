package console

import (
	"strings"
	"unicode"
)

// plain returns what a reply says, as text that is safe to print.
func plain(f frame) string {
	lines := []string{strings.TrimRight(clean(f.Text), " \n")}
	for _, path := range f.Files {
		lines = append(lines, "[file: "+strings.ReplaceAll(clean(path), "\n", " ")+"]")
	}
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// clean takes out of s whatever could drive a terminal or reorder what it
// shows: a model, or a file it read, has no hand on either. The clean form of
// a text that grows only grows.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\u200c', r == '\u200d': // joiners, in Persian and in emoji
			return r
		case unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, s)
}
