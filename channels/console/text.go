package console

import (
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"parley/channels/markdown"
)

// replyText returns the text and the file paths of a reply, safe to print, as a terminal shows it if out is one.
func replyText(f frame, out io.Writer, plain bool) string {
	text := strings.TrimRight(clean(f.Text), " \n")
	if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) && text != "" {
		text = markdown.Terminal(text, width(int(file.Fd())), !plain)
	}
	lines := append([]string{text}, fileLines(f)...)
	return strings.TrimPrefix(strings.Join(lines, "\n"), "\n")
}

// fileLines returns a line for each file of a reply, safe to print.
func fileLines(f frame) (lines []string) {
	for _, path := range f.Files {
		lines = append(lines, "[file: "+strings.ReplaceAll(clean(path), "\n", " ")+"]")
	}
	return lines
}

// clean removes control and bidirectional formatting characters, so that
// neither a model nor a file it read can drive the terminal or reorder what it
// shows. If a is a prefix of b, clean(a) is a prefix of clean(b).
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
