package markdown

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

const letter = "# Plan\n\nThis is **bold**, *soft*, `code` and [a link](https://example.com/x).\n\n" +
	"- first, which is an item so long that it needs a second row of its own\n- [x] done\n\n1. one\n2. two\n\n" +
	"> quoted words that are so many that they need two rows on this terminal\n\n" +
	"```go\nfunc main() {}\n```\n\n" +
	"| Name of it | Price in euros | Where |\n|---|---:|---|\n| Tea | 3 | the shop around the corner |\n"

func TestTerminal(t *testing.T) {
	for _, c := range []struct {
		columns int
		colour  bool
		want    string
	}{
		{50, false, `Plan

This is bold, soft, code and a link
(https://example.com/x).

• first, which is an item so long that it needs a
  second row of its own
☑ done

1. one
2. two

│ quoted words that are so many that they need
│ two rows on this terminal

func main() {}

Name of it · Price in euros · Where

Tea
Price in euros: 3
Where: the shop around the corner`},
		{100, true, `*1mPlan*0m

This is *1mbold*0m, *3msoft*0m, *36mcode*0m and a link (https://example.com/x).

• first, which is an item so long that it needs a second row of its own
☑ done

1. one
2. two

│ *2mquoted words that are so many that they need two rows on this terminal*0m

*36mfunc main() {}*0m

*36mName of it  Price in euros  Where*0m
*36m──────────────────────────────────────────────────────*0m
*36mTea                      3  the shop around the corner*0m`},
	} {
		got := Terminal(letter, c.columns, c.colour)
		if want := strings.ReplaceAll(c.want, "*", "\x1b["); got != want {
			t.Errorf("%d columns:\n%s\nwant\n%s", c.columns, got, want)
		}
	}
}

// Nothing but the attributes moves the terminal, no row is wider than it, and no word is lost.
func FuzzTerminal(f *testing.F) {
	f.Add(letter, 30)
	f.Add("\x1b[2J\x9b1m\u202e**\a**", 3)
	f.Add("世界世界世界世界世界", 11)
	f.Add("- a\n  - b\n    - "+strings.Repeat("c", 40), 20)
	f.Fuzz(func(t *testing.T, src string, columns int) {
		columns = min(max(columns, 10), 200)
		plain := Terminal(src, columns, false)
		if strings.ContainsFunc(plain, func(r rune) bool { return r != '\n' && unicode.IsControl(r) }) {
			t.Errorf("control characters in %q", plain)
		}
		colour := Terminal(src, columns, true)
		if bare := sgr.ReplaceAllString(colour, ""); bare != plain {
			t.Errorf("with colour %q, without %q", colour, plain)
		}
		words := func(s string) string { return strings.Join(strings.Fields(strings.ReplaceAll(s, "│", "")), "") }
		all := parse(src, func(string) bool { return false }, columns)
		if words(plain) != words(all.Plain) {
			t.Errorf("%q has other words than %q", plain, all.Plain)
		}
		for row := range strings.SplitSeq(plain, "\n") {
			code := slices.ContainsFunc(all.Spans, func(s Span) bool { return s.Kind == Pre })
			if !code && width(row) > columns && len(row) > 8 {
				t.Errorf("%q is wider than %d columns", row, columns)
			}
		}
	})
}

var sgr = regexp.MustCompile("\x1b\\[[0-9;]*m")

func TestFinished(t *testing.T) {
	for src, want := range map[string]string{
		"":                               "",
		"Words that go on":               "",
		"One.\n\n":                       "",
		"One.\n\nTwo":                    "One.\n\n",
		"One.\n\n\nTwo":                  "One.\n\n\n",
		"- one\n\n  of it":               "",
		"- one\n\n  of it\n\nTwo":        "- one\n\n  of it\n\n",
		"```go\na\n\nb\n":                "",
		"```go\na\n\nb\n```\n\nTwo":      "```go\na\n\nb\n```\n\n",
		"# One\nTwo":                     "# One\n",
		"#One\nTwo":                      "",
		"```\na\n```\nTwo":               "```\na\n```\n",
		"- ```\n  a\n  ```\n  b":         "",
		"````\n```\n\nb":                 "",
		"~~~\na\n```\n\nb":               "",
		"One.\n\n```\na\n\nb":            "One.\n\n",
		"Three.\n\n| a | b |\n|---|---|": "Three.\n\n",
	} {
		if got := src[:Finished(src)]; got != want {
			t.Errorf("of %q %q is finished, want %q", src, got, want)
		}
	}
}

// A long line takes no more than its length.
func BenchmarkTerminal(b *testing.B) {
	for _, n := range []int{8_000, 64_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				Terminal(strings.Repeat("a ", n/2), 10, true)
			}
		})
	}
}
