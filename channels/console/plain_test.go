package console

import (
	"strings"
	"testing"
	"unicode"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"a\tb\nc":                   "a\tb\nc",
		"\x1b[2J\x1b]0;title\aok":   "[2J]0;titleok",
		"safe\rrm -rf":              "saferm -rf",
		"one\r\ntwo":                "one\ntwo",
		"\u202egnp.exe\u202c":       "gnp.exe",
		"\u2066x\u2069\u200f\ufeff": "x",
		"c1 \u009b31m\u0085":        "c1 31m",
		"\x9b31m":                   "\ufffd31m",
		"👩‍👩‍👧 می\u200cخواهم":   "👩‍👩‍👧 می\u200cخواهم",
		"back\b\b\x7fspace\x00": "backspace",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
}

// Whatever is said, it drives no terminal; streamed in pieces, it comes out whole.
func FuzzScreen(f *testing.F) {
	f.Add("# Title\n\nSome **bold** text that is longer than one row of a narrow terminal.\n\n- a\n- b  \n", 17)
	f.Add("\x1b[31mred\x1b[0m\r\nx\u202ey 漢字かな交じり文 ", 3)
	f.Fuzz(func(t *testing.T, text string, step int) {
		if step < 1 || len(text) > 4096 {
			t.Skip()
		}
		cleaned := clean(text)
		for _, r := range cleaned {
			if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r) {
				t.Fatalf("clean(%q) has %q", text, r)
			}
		}
		var b strings.Builder
		s := screen{out: &b}
		for n := step; n < len(text); n += step {
			s.live(frame{ID: "1", Text: text[:n]})
		}
		s.reply(frame{ID: "1", Text: text})
		got := strings.ReplaceAll(b.String(), eraseRow, "")
		if strings.Contains(got, "\x1b") {
			t.Fatalf("%q prints an escape: %q", text, got)
		}
		whole := strings.Join(strings.Fields(cleaned), "")
		if !strings.HasSuffix(strings.Join(strings.Fields(got), ""), whole) {
			t.Fatalf("%q is shown as %q", text, got)
		}
	})
}

// The final text takes the place of what was shown of it.
func TestScreenReply(t *testing.T) {
	for name, c := range map[string]struct {
		live  []string
		final string
		want  string
	}{
		"not streamed":      {nil, "a\nb", "a\nb\n\n"},
		"the rest":          {[]string{"a\nb", "a\nb\nc"}, "a\nb\nc d", "a\nb\nc d\n\n"},
		"all shown already": {[]string{"a\nb\n"}, "a\nb", "a\nb\n\n"},
		"blank at the end":  {[]string{"a\n\n\n"}, "a", "a\n\n\n\n"},
		"begun anew":        {[]string{"let me see\n", "ab"}, "ab", "let me see\nab\n\n"},
		"another text":      {[]string{"x\ny"}, "z", "x\nz\n\n"},
	} {
		var b strings.Builder
		s := screen{out: &b}
		for _, text := range c.live {
			s.live(frame{ID: "1", Text: text})
		}
		s.reply(frame{ID: "1", Text: c.final})
		if got := strings.ReplaceAll(b.String(), eraseRow, ""); got != c.want {
			t.Errorf("%s: shows %q, want %q", name, got, c.want)
		}
	}
}
