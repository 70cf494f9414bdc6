package markdown_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"parley/channels/markdown"
	"parley/timetest"
)

// show writes t with its spans as marks, such as {b:words}.
func show(t markdown.Text) string {
	names := map[markdown.Kind]string{markdown.Bold: "b", markdown.Italic: "i", markdown.Strike: "s",
		markdown.Code: "c", markdown.Pre: "pre", markdown.Link: "a", markdown.Quote: "q"}
	var out strings.Builder
	var open []markdown.Span
	spans := t.Spans
	for i := 0; i <= len(t.Plain); i++ {
		for len(open) > 0 && open[len(open)-1].End == i {
			open = open[:len(open)-1]
			out.WriteByte('}')
		}
		for len(spans) > 0 && spans[0].Start == i {
			out.WriteString("{" + names[spans[0].Kind])
			if spans[0].Arg != "" {
				out.WriteString("=" + spans[0].Arg)
			}
			out.WriteByte(':')
			open = append(open, spans[0])
			spans = spans[1:]
		}
		if i < len(t.Plain) {
			out.WriteByte(t.Plain[i])
		}
	}
	return out.String()
}

// parse is Parse for a chat that opens web pages and mail.
func parse(src string) markdown.Text {
	return markdown.Parse(src, func(url string) bool { return strings.HasPrefix(url, "https://") || strings.HasPrefix(url, "mailto:") })
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ name, src, want string }{
		{"words", "Hello.", "Hello."},
		{"nothing", " \n\t\n", ""},
		{"emphasis", "a **b *c* d** ~~e~~ `f<g>`", "a {b:b {i:c} d} {s:e} {c:f<g>}"},
		{"a newline is a newline", "a\nb  \nc\\\nd", "a\nb\nc\nd"},
		{"paragraphs", "a\n\n\n\nb", "a\n\nb"},
		{"headings", "# One **two**\ntext\n## Three", "{b:One two}\ntext\n\n{b:Three}"},
		{"no underlined headings", "a\n---\nb", "a\n———\nb"},
		{"list", "Do:\n- a\n- b\n  c\n    - d\n", "Do:\n• a\n• b\n  c\n  • d"},
		{"loose list", "- a\n\n- b", "• a\n\n• b"},
		{"numbers", "3. a\n4. b\n   - c", "3. a\n4. b\n   • c"},
		{"tasks", "- [ ] a\n- [x] b\n- c", "☐ a\n☑ b\n• c"},
		{"rule", "a\n\n***\n\nb", "a\n\n———\n\nb"},
		{"quote", "> a\n> b\n>\n> c", "{q:a\nb\n\nc}"},
		{"nested quote", "> a\n> > b\n> > c", "{q:a\n> b\n> c}"},
		{"quote in a list", "- a\n\n  > b\n  > c\n- d", "• a\n\n{q:b\nc}\n• d"},
		{"fence", "x\n```go\nif a {\n\tb()\n}\n```\ny", "x\n{pre=go:if a {\n    b()\n}}\n\ny"},
		{"open fence", "x\n```py\na = 1\n\nb", "x\n{pre=py:a = 1\n\nb}"},
		{"odd language", "```<b>\na\n```", "<b>\n{pre:a}"},
		{"fence in a list", "- a\n\n  ```\n  b\n    c\n  ```\n- d", "• a\n\n{pre:b\n  c}\n• d"},
		{"indented code", "a\n\n    b\n      c", "a\n\n{pre:b\n  c}"},
		{"HTML is text", "<b>x</b> <script>\n\n<div>\ny\n</div>", "<b>x</b> <script>\n\n<div>\ny\n</div>"},
		{"entities", "a &amp; b &lt;c&gt; \\*d\\* &nope; \\& &#65; &copy x", "a & b <c> *d* &nope; & A &copy x"},
		{"not in code", "`&amp; \\*`", "{c:&amp; \\*}"},
		{"link", "see [the **docs**](https://a.b/c?d=1&e=2 \"title\").", "see {a=https://a.b/c?d=1&e=2:the {b:docs}}."},
		{"other links", "[a](#b) [c](javascript:d) [e](mailto:f@g.h) [i](/j k) [i]( /j )", "a (#b) c (javascript:d) {a=mailto:f@g.h:e} [i](/j k) i (/j)"},
		{"links that say their address", "[https://a.b](https://a.b) <https://c.d> [x@y.z](mailto:x@y.z) [](https://e.f)", "https://a.b https://c.d x@y.z https://e.f"},
		{"image", "![a cat](https://a.b/c.png) ![](https://a.b/d.png) ![x](data:image/png;base64,AAAA)", "{a=https://a.b/c.png:a cat} https://a.b/d.png x"},
		{"image in a link", "[![alt](https://a.b/c.png)](https://d.e)", "{a=https://d.e:alt}"},
		{"references stay", "a [b][1]\n\n[1]: https://c.d", "a [b][1]\n\n[1]: https://c.d"},
		{"table", "| Name | Qty |\n|:--|--:|\n| Äpfel | 3 |\n| 日本 | 12 |", "{pre:Name   Qty\n──────────\nÄpfel    3\n日本    12}"},
		{"table after words", "a\n\n|b|\n|-|\n|c|", "a\n\n{pre:b\n─\nc}"},
		{"wide table", "|Name|What it is|Why\n|-|-|-\n|**Go**|a language made for programs that last|`fast`\n|C||old and still everywhere you look", "Name · What it is · Why\n\n{b:Go}\nWhat it is: a language made for programs that last\nWhy: {c:fast}\n\n{b:C}\nWhy: old and still everywhere you look"},
		{"table with links", "|a|b|\n|-|-|\n|c|[d](https://e.f)|", "a · b\n\n{b:c}\nb: {a=https://e.f:d}"},
		{"table being written", "|a|b|\n|-|-|", "{pre:a  b\n────}"},
		{"what would vanish", "[]()", "[]()"},
		{"what would vanish: fence", "```", "```"},
		{"unfinished", "**bold [link](https://a", "**bold [link](https://a"},
		{"control characters (R-S11)", "a\x1b[31mb\x00c\u202e\u2067d\r\ne&#27;f\u2028g", "a[31mbcd\nef\ng"},
		{"not UTF-8", "a\xff\xfeb", "a\ufffd\ufffdb"},
		{"bold in bold", "**a __b__ c**", "{b:a b c}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := show(parse(test.src)); got != test.want {
				t.Errorf("Parse(%q)\n got %q\nwant %q", test.src, got, test.want)
			}
		})
	}
}

// No answer, however odd, may hold up a channel or eat its memory.
func TestParseHostile(t *testing.T) {
	for _, s := range []string{"> ", ">", "- ", "1. ", "[", "]", "![a](", "[a](", "[a](<b", "*", "*a ", "*a_b ", "**a", "***a", "~a ", "`", "`a``b",
		"\\", "\\!", "a||", "http://a*", "<http:", "a|", "|-", "> > a\n", "- a\n  ", "```\n", "~~~\n> ", "[*a](b)", "&#", "|\n", "\t- \n"} {
		src := strings.Repeat(s, 60<<10/len(s))
		start := timetest.CPUTime(t)
		text := parse(src)
		markdown.Escape(src)
		if d := timetest.CPUTime(t) - start; d > 3*time.Second {
			t.Errorf("%d bytes of %q took %v", len(src), s, d)
		}
		check(t, src, text)
	}
	long := strings.Repeat("**a** [b](c\n> ", 10_000)
	check(t, long, parse(long))
	deep := strings.Repeat("> ", 30) + strings.Repeat("a\n", 25_000)
	text := parse(deep)
	check(t, deep, text)
	if len(text.Plain) > 10*len(deep) {
		t.Errorf("%d bytes of quotes became %d", len(deep), len(text.Plain))
	}
	for _, columns := range []int{99, 3000} {
		table := strings.Repeat("a|", columns) + "\n" + strings.Repeat("-|", columns) + "\n" + strings.Repeat("|\n", 20_000)
		check(t, table, parse(table))
	}
}

// check fails if text breaks a promise of Text or Parse.
func check(t *testing.T, src string, text markdown.Text) {
	t.Helper()
	if !utf8.ValidString(text.Plain) || strings.ContainsAny(text.Plain, "\x00\x1b\r\t\u202e\u2067") {
		t.Errorf("Parse(%.200q).Plain is not clean: %.200q", src, text.Plain)
	}
	if strings.ContainsFunc(src, markdown.Visible) != strings.ContainsFunc(text.Plain, markdown.Visible) {
		t.Errorf("Parse(%.200q).Plain is %.200q", src, text.Plain)
	}
	var open []markdown.Span
	last := markdown.Span{}
	for _, s := range text.Spans {
		for len(open) > 0 && open[len(open)-1].End <= s.Start {
			open = open[:len(open)-1]
		}
		switch {
		case s.Start < last.Start || s.Start >= s.End || s.End > len(text.Plain):
			t.Fatalf("Parse(%.200q): span %v after %v", src, s, last)
		case !utf8.RuneStart(text.Plain[s.Start]) || s.End < len(text.Plain) && !utf8.RuneStart(text.Plain[s.End]):
			t.Fatalf("Parse(%.200q): span %v cuts a rune", src, s)
		case len(open) > 0 && open[len(open)-1].End < s.End:
			t.Fatalf("Parse(%.200q): span %v crosses %v", src, s, open[len(open)-1])
		}
		for _, o := range open {
			if o.Kind == s.Kind || o.Kind == markdown.Code || o.Kind == markdown.Pre {
				t.Fatalf("Parse(%.200q): span %v within %v", src, s, o)
			}
		}
		open, last = append(open, s), s
	}
}

func TestSplit(t *testing.T) {
	for _, test := range []struct {
		name, src string
		limit     int
		want      []string
	}{
		{"fits", "**one** two", 7, []string{"{b:one} two"}},
		{"words", "one two three", 9, []string{"one two", "three"}},
		{"sentences", "One. Two! Three four five", 12, []string{"One. Two!", "Three four", "five"}},
		{"lines", "one two\nthree four five", 15, []string{"one two", "three four five"}},
		{"paragraphs", "one two\nthree\n\nfour. five", 22, []string{"one two\nthree", "four. five"}},
		{"a long word", "abcdefghij", 4, []string{"abcd", "efgh", "ij"}},
		{"a span goes on", "a **bb cc** d", 5, []string{"a {b:bb}", "{b:cc} d"}},
		{"a fence goes on", "x\n```go\na()\n  b()\n\n  c()\n```\ny", 12, []string{"x\n{pre=go:a()\n  b()}", "{pre=go:  c()}\n\ny"}},
		{"no half of a pair", "😀😀😀", 3, []string{"😀", "😀", "😀"}},
		{"no lost accent", "e\u0301e\u0301e\u0301", 3, []string{"e\u0301", "e\u0301", "e\u0301"}},
		{"no lost skin", "👍🏽👍🏽", 7, []string{"👍🏽", "👍🏽"}},
		{"no torn family", "👩‍👧👩‍👧", 7, []string{"👩‍👧", "👩‍👧"}},
		{"Chinese", "你好。再见吧", 5, []string{"你好。", "再见吧"}},
		{"a number of spaces", "a" + strings.Repeat("\u00a0", 20) + "b", 4, []string{"a", "b"}},
		{"code that is mostly space", "```\n" + strings.Repeat(" ", 20) + "a\n```", 4, []string{"{pre:a}"}},
		{"a rune too large", "😀", 1, []string{"😀"}},
		{"nothing", "", 4, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got []string
			for _, p := range parse(test.src).Split(test.limit, units) {
				got = append(got, show(p))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q\nwant %q", got, test.want)
			}
		})
	}
}

func units(s string) int { return len(utf16.Encode([]rune(s))) }

func FuzzMarkdown(f *testing.F) {
	for _, s := range []string{answer, "# a\n- [x] *b*\n> ```go\n> c", "|a|b|\n|-|-|\n|[c](https://d.e)|`f`|", "![](a)\n1) b\n\n   c\n```", "a &amp; \\* <b>\u200b\t\x1b"} {
		f.Add(s, 40)
	}
	f.Fuzz(func(t *testing.T, src string, limit int) {
		text := parse(src)
		check(t, src, text)
		limit = 1 + max(limit, -limit, 0)%5000
		var joined strings.Builder
		for _, p := range text.Split(limit, units) {
			check(t, p.Plain, p)
			if n := units(p.Plain); n > max(limit, 2) {
				t.Fatalf("a part of %d over %d: %q", n, limit, p.Plain)
			}
			joined.WriteString(p.Plain)
		}
		if got, want := squeeze(joined.String()), squeeze(text.Plain); got != want {
			t.Fatalf("Split(%d) of %q\n lost %q\n", limit, want, got)
		}
		if fmt.Sprint(text) != fmt.Sprint(parse(src)) {
			t.Fatal("not deterministic")
		}
	})
}

// squeeze keeps of s what is seen.
func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if markdown.Visible(r) {
			return r
		}
		return -1
	}, s)
}

const answer = "## How to read a file in Go\n\nUse `os.ReadFile` when the file is **small**:\n\n" +
	"```go\ndata, err := os.ReadFile(\"notes.txt\")\nif err != nil {\n\treturn fmt.Errorf(\"read notes: %w\", err)\n}\n```\n\n" +
	"For large files, prefer a scanner:\n\n- it needs *little* memory\n- it stops early\n  - also on errors\n\n" +
	"See [the docs](https://pkg.go.dev/os#ReadFile) for more. Anything below a few megabytes is fine to read in one go & costs < 1 ms."

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		parse(answer)
	}
}
