package chat

import (
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	for text, want := range map[string][2]string{
		"": {}, " \n ": {}, "/new": {"/new", ""}, " /say  hi there\n": {"/say", "hi there"},
		"/remember\nmy boat\nis red": {"/remember", "my boat\nis red"}, "/say\u00a0hi": {"/say", "hi"}, "é\tü": {"é", "ü"},
	} {
		if word, rest := Word(text); word != want[0] || rest != want[1] {
			t.Errorf("%q: %q, %q", text, word, rest)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		text string
		n    int
		want string
	}{{"", 0, ""}, {"", 3, ""}, {"äöü", 3, "äöü"}, {"äöü", 2, "äö…"}, {"äöü", 0, "…"}, {"a\xffb", 2, "a\xff…"}} {
		if got := Clip(c.text, c.n, "…"); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.n, got, c.want)
		}
	}
}

// R-S11: what anybody wrote is shown as one line in which nothing is hidden.
func TestOneLine(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		" a\r\n\tb\u2028c\u00a0d\v": "a b c d",
		"\x1b[31mred\x07":           "[31mred",
		"gpj.\u202eexe\ufeff\u200b": "gpj.exe",
		"a\xffb\U000e0041c":         "abc",
		"👨\u200d👩\u200d👧 می\u200cخواهم": "👨\u200d👩\u200d👧 می\u200cخواهم",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestClipMiddle(t *testing.T) {
	for _, c := range []struct {
		text string
		most int
		want string
	}{{"", 4, ""}, {"abcd", 4, "abcd"}, {"abcde", 4, "ab … de"}, {"äöüß", 6, "ä … ß"}} {
		if got := ClipMiddle(c.text, c.most); got != c.want {
			t.Errorf("%q to %d: %q, want %q", c.text, c.most, got, c.want)
		}
	}
}

func TestIsShortCommand(t *testing.T) {
	for text, want := range map[string]bool{
		"/usage": true, "/model fast": true, "/stop@parley_bot": true, " /Stop\nnow": true, "/" + strings.Repeat("a", 32): true,
		"": false, "/": false, "/etc/hosts is wrong": false, "/3 of it": false, "a /stop": false, "/who" + strings.Repeat(" x", 100): false,
	} {
		if got := IsShortCommand(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
