package console

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"parley/channels/markdown"
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
		s := screen{out: &b, colour: true}
		for n := step; n < len(text); n += step {
			s.showDraft(frame{ID: "1", Text: text[:n]})
			if n%3 == 0 {
				s.showStep(frame{ID: "1", Text: "  🔧 \x1bx"})
			}
		}
		s.showReply(frame{ID: "1", Text: text})
		got := strings.ReplaceAll(strings.ReplaceAll(b.String(), eraseRow, ""), "\x1b[2m  🔧 x\x1b[0m\n", "")
		if strings.Contains(sgr.ReplaceAllString(got, ""), "\x1b") {
			t.Fatalf("%q prints an escape: %q", text, got)
		}
		if markdown.HasMarks(cleaned) { // what becomes of them is tested there
			return
		}
		whole := strings.Join(strings.Fields(cleaned), "")
		if !strings.HasSuffix(strings.Join(strings.Fields(got), ""), whole) {
			t.Fatalf("%q is shown as %q", text, got)
		}
	})
}

var sgr = regexp.MustCompile("\x1b\\[(0|[1-9](;[1-9])*|36)m")

// Markdown is shown as what it stands for, block by block while it comes in, and with NO_COLOR without attributes.
func TestScreenMarkdown(t *testing.T) {
	const src = "# Plan\n\nSome **bold** words.\n\n- one\n- two\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nThe end is `near`"
	const want = "[1mPlan[0m\n\nSome [1mbold[0m words.\n\n• one\n• two\n\n[36mfunc main() {}[0m\n\n" +
		"[36ma  b[0m\n[36m────[0m\n[36m1  2[0m\n\nThe end is [36mnear[0m\n\n"
	for _, colour := range []bool{true, false} {
		var b strings.Builder
		s := screen{out: &b, colour: colour}
		for n := range len(src) {
			s.showDraft(frame{ID: "1", Text: src[:n]})
		}
		before := strings.ReplaceAll(b.String(), eraseRow, "")
		if strings.Contains(before, "end") || !strings.Contains(before, "1  2") {
			t.Errorf("before the end %q is shown", before)
		}
		s.showReply(frame{ID: "1", Text: src})
		got := strings.ReplaceAll(b.String(), eraseRow, "")
		want := strings.ReplaceAll(want, "[", "\x1b[")
		if !colour {
			want = sgr.ReplaceAllString(want, "")
		}
		if got != want {
			t.Errorf("shows\n%q, want\n%q", got, want)
		}
	}
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
		"blank at the end":  {[]string{"a\n\n\n"}, "a", "a\n\n\n"},
		"begun anew":        {[]string{"let me see\n", "ab"}, "ab", "let me see\nab\n\n"},
		"another text":      {[]string{"x\ny"}, "z", "x\nz\n\n"},
	} {
		var b strings.Builder
		s := screen{out: &b, colour: true}
		for _, text := range c.live {
			s.showDraft(frame{ID: "1", Text: text})
		}
		s.showReply(frame{ID: "1", Text: c.final})
		if got := strings.ReplaceAll(b.String(), eraseRow, ""); got != c.want {
			t.Errorf("%s: shows %q, want %q", name, got, c.want)
		}
	}
}

// §2.10: a step is a line of its own, never in the middle of another, after the
// text that came before it.
func TestScreenSteps(t *testing.T) {
	type s = string
	for name, c := range map[s]struct {
		see  []s // the text so far, "+" and a step, or "=" and the reply
		want s
	}{
		"before the text":      {[]s{"+  🔧 a", "+  ✅ a", "=x"}, "[  🔧 a]\n[  ✅ a]\nx\n\n"},
		"in a row":             {[]s{"Let me", "Let me see.", "+  🔧 a", "=Let me see.\n\nIt is."}, "Let me see.\n[  🔧 a]\n\nIt is.\n\n"},
		"more text":            {[]s{"x", "+  🔧 a", "x\n\ny\n", "+  ✅ a", "x\n\ny\nz", "=x\n\ny\nz"}, "x\n[  🔧 a]\n\ny\n[  ✅ a]\nz\n\n"},
		"between two words":    {[]s{"x", "+  🔧 a", "x y\n", "=x y"}, "x\n[  🔧 a]\ny\n\n"},
		"after all":            {[]s{"x\n", "+  🔧 a", "=x"}, "x\n[  🔧 a]\n\n"},
		"the text starts over": {[]s{"x", "+  🔧 a", "y\n", "=y"}, "x\n[  🔧 a]\ny\n\n"},
		"no escapes":           {[]s{"+  🔧 \x1b[31m\ra\u202e", "=x"}, "[  🔧 [31ma]\nx\n\n"},
	} {
		var b strings.Builder
		s := screen{out: &b, colour: true}
		for _, see := range c.see {
			switch text := see[1:]; see[0] {
			case '+':
				s.showStep(frame{ID: "1", Text: text})
			case '=':
				s.showReply(frame{ID: "1", Text: text})
			default:
				s.showDraft(frame{ID: "1", Text: see})
			}
		}
		if got := strings.NewReplacer(eraseRow, "", "\x1b[2m", "[", "\x1b[0m", "]").Replace(b.String()); got != c.want {
			t.Errorf("%s: shows %q, want %q", name, got, c.want)
		}
	}
}
