package console

import (
	"slices"
	"strings"
	"testing"
)

// If the mark of its end gets lost, a person leaves what looks like pasted text with
// Ctrl-C. One alone may be pasted itself.
func TestPasteWithoutEnd(t *testing.T) {
	var p pasteFilter
	var got []string
	for _, typed := range []string{"\x1b[200~x\x1b[", "\x03", "y", "\x03", "\x03", "z\r"} {
		got = append(got, string(p.translate([]byte(typed))))
	}
	if want := []string{"x", "[", "y", "", "\x03", "z\r"}; !slices.Equal(got, want) {
		t.Errorf("the editor reads %q, want %q", got, want)
	}
}

// What is pasted is one line for the editor, however the terminal's bytes are cut, and
// the message has its line breaks and tabs again. No key is pressed by it.
func TestPaste(t *testing.T) {
	for _, c := range []struct{ typed, edited, message string }{
		{"plain\r", "plain\r", ""},
		{"a\x1b[200~one\r\ntwo\rthree\nfour\x1b[201~b\r", "aone⏎two⏎three⏎fourb\r", "aone\ntwo\nthree\nfourb"},
		{"\x1b[200~if x:\n\ty()\n\x1b[201~\r", "if x:⏎⇥y()⏎\r", "if x:\n\ty()"},
		{"\x1b[200~x\x03\x1b[Ay\x04\x1b[201~", "x[Ay", "x[Ay"},
		{"\x1b[A\x1b[2~", "\x1b[A\x1b[2~", ""}, // keys
		{"\x1b", "\x1b", ""},
		{"\x1b[200~a\x1b[200~b\x1b[201~", "a[200~b", "a[200~b"},
		{"\x1b[200~grüß\n\x1b[201~", "grüß⏎", "grüß"},
	} {
		for size := min(3, len(c.typed)); size <= len(c.typed); size++ { // a mark's first bytes are never alone
			var p pasteFilter
			var edited strings.Builder
			for rest := c.typed; rest != ""; {
				n := min(size, len(rest))
				edited.Write(p.translate([]byte(rest[:n])))
				rest = rest[n:]
			}
			if got := edited.String(); got != c.edited {
				t.Errorf("%q in pieces of %d: the editor reads %q, want %q", c.typed, size, got, c.edited)
			}
		}
		if c.message != "" && unfold(strings.TrimSuffix(c.edited, "\r")) != c.message {
			t.Errorf("%q: the message is %q, want %q", c.typed, unfold(c.edited), c.message)
		}
	}
}
