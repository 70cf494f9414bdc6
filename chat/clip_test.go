package chat

import "testing"

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
