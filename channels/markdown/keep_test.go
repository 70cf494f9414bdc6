package markdown_test

import (
	"html"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"parley/channels/markdown"
)

// ordinary is text that has characters of Markdown and means none of it.
var ordinary = []string{
	"5*3*2 = 30", "2**3**2 = 512", "2*3 and 4*5", "x**2 + y**2", "a*b*c", "(2*3)*4*(5+6)", "4*(2+3)*(1*2)", "5 *3* 2 = 30", "2 * 3 * 4", "x*=2; y*=3",
	"面积=长*宽*高", "长*2*宽", "n*(n-1)*(n-2)", "5*-3*-2", "*p = *q * *r", "char *a, *b, **c;", "f(*args, **kwargs) and x**n",
	"src/**/*.go, test/**/*.go", "*.go and *.md", "*.go,*.md", "**/*.go and **/*.md", "**/node_modules/** and **/dist/**", "/etc/*, /var/*", "a/*/b/*/c",
	"test_*.py and *_test.go", "*_test.go and foo_*", "lib*.so.*", ".*foo.*bar.*", "[a-z]*foo[0-9]*", "*/5 * * * *", "0 0 1,15 * *", "SELECT *, COUNT(*) FROM t; SELECT b.* FROM c",
	"-*- coding: utf-8 -*-", "H*llo w*rld", "s**t and f**k", "a **** hotel", "pa*ss*word and pa**ss**word",
	"pkg/__init__.py", "__init__ and __main__", "a/__pycache__/b", "snake_case_name and _private", "x_1*y_2 + z_3", "$a_{i} + b_{j}$", "foo_ and bar_",
	"https://github.com/a/pkg/__init__.py", "https://x.com/*/a/*/b", `"https://x.com/a/__init__.py"`, "'https://x.com/**/b_c_d'", "见：https://x.com/a/__init__.py", "https://x.com/~~a~~/b",
	"(https://x.com/_a_b_/c)", "https://x.com/a_(b)_c", "www.x.com/__a__/b", "git+ssh://git@x.com/_a_/b.git", "https://x.com/?a=*b*&c=_d_&copy=1",
	"3~5元", "~5 and ~6", "~/a ~/b", "H~2~O", "~ 3 ~", "1~2~3", "a~~b~~c",
	`C:\Users\_me\*.txt`, `C:\_tmp\x`, `C:\*.*`, `\\server\share\_x`, `\d+\.\d+`, `\frac{1}{2}\_x`,
	">50% faster", ">=3 and <=5", ">>> print(x)", "a || b && c", "#hashtag", "AT&T; x &y z", "1.5 2.5", "a [b] (c)", "x[1](2", "<b>x</b>", "$5 *", "C# and F#",
	"__FILE__ and __LINE__", "__VA_ARGS__", ">_<", ">.<", `s/\//\\/g`, `/\/\*.*\*\//`, `%USERPROFILE%\.ssh\_x`, `..\_build\*.obj`, `~\.config\_x`,
	"arr[i](j)", "f[0](x*y)", "handlers[name](event)", "m[a][b](c)", "f(x)[0](y)", "2 ** 3 ** 2",
}

// What is ordinary is shown as it is.
func TestOrdinaryTextIsKept(t *testing.T) {
	for _, src := range ordinary {
		for _, around := range []string{"%", "so % it is", "**Note:** %", "- %", "a % b % c"} {
			if around != "%" && strings.HasPrefix(src, ">") || strings.HasPrefix(around, "**") && src == "f(*args, **kwargs) and x**n" {
				continue
			}
			text := strings.ReplaceAll(around, "%", src)
			want := strings.ReplaceAll(text, "**Note:**", "Note:")
			if strings.HasPrefix(around, "-") {
				want = "• " + strings.TrimPrefix(text, "- ")
			}
			if got := parse(text); got.Plain != want {
				t.Errorf("%q is shown as %q", text, got.Plain)
			}
			page := html.UnescapeString(tag.ReplaceAllString(markdown.HTML(text), ""))
			if got := strings.TrimSpace(page); got != strings.TrimPrefix(want, "• ") {
				t.Errorf("%q is %q on the page", text, got)
			}
		}
	}
}

var tag = regexp.MustCompile(`</?(p|strong|em|del|ul|li|a|br|blockquote|span)( [^>]*)?>`)

// What is meant as a mark is one.
func TestMarks(t *testing.T) {
	for src, want := range map[string]string{
		"**Note：**这是":                     "{b:Note：}这是",
		"这是**重点**内容":                      "这是{b:重点}内容",
		"这是**“引用”**后":                     "这是{b:“引用”}后",
		"**注意**:见**文档**。":                 "{b:注意}:见{b:文档}。",
		"Go**语言**和**Go**语言":               "Go{b:语言}和{b:Go}语言",
		"原价~~99~~元":                       "原价{s:99}元",
		"~~gone~~ and ~~two words~~.":     "{s:gone} and {s:two words}.",
		"**Note:**this":                   "{b:Note:}this",
		"1.**Title**: x":                  "1.{b:Title}: x",
		"(**bold**), *it*, \"*q*\".":      "({b:bold}), {i:it}, \"{i:q}\".",
		"***both*** and **a *b* c**":      "{i:{b:both}} and {b:a {i:b} c}",
		"***a** b*":                       "{i:{b:a} b}",
		"**a *b***":                       "{b:a {i:b}}",
		"**src/**: code":                  "{b:src/}: code",
		"**/start** – begins":             "{b:/start} – begins",
		"**.env**, **$5**, **50%**!":      "{b:.env}, {b:$5}, {b:50%}!",
		"✅**Done**✅ **✅ Yes ✅**":          "✅{b:Done}✅ {b:✅ Yes ✅}",
		"**`code`** and *[a](https://b)*": "{b:{c:code}} and {i:{a=https://b:a}}",
		"_it_ and __two words__":          "{i:it} and {b:two words}",
		"**https://a.b/c_d_e** x":         "{b:https://a.b/c_d_e} x",
		"**https://a.b/c**(x)":            "{b:https://a.b/c}(x)",
		"**https://a.b/c**：说明":            "{b:https://a.b/c}：说明",
		"**a**/**b**":                     "{b:a}/{b:b}",
		"**安装**：`go get`":                 "{b:安装}：{c:go get}",
		"*«x»* and *¿y?*":                 "{i:«x»} and {i:¿y?}",
	} {
		if got := show(parse(src)); got != want {
			t.Errorf("%q: %q, want %q", src, got, want)
		}
	}
}

// Blocks, too, keep what was written.
func TestBlocksKeepWords(t *testing.T) {
	for src, want := range map[string]string{
		"3. a\n5. b\n9. c":               "3. a\n5. b\n9. c",
		"3) a\n   - x\n7) b":             "3) a\n   • x\n7) b",
		"> 1. a\n> 4. b":                 "{q:1. a\n4. b}",
		"1. a\n1. b\n1. c":               "1. a\n1. b\n1. c",
		"007. a":                         "007. a",
		"|a|b|\n|-|-|\n|1|2|3|4|\n|5|6|": "{pre:a  b\n──────────\n1  2  3  4\n5  6}",
		"|a|b|\n|-|-|\n|1|2|3 **x** | | 4 \\| 5 |\n|6|": "{pre:a  b\n──────────────────\n1  2  3 x    4 | 5\n6}",
		"|a|\n|-|\n|1|[x](https://y.z)|":                "a\n\n{b:1}\n{a=https://y.z:x}",
		`\&lt; \&amp;lt; &lt; &amp;lt;`:                 "&lt; &amp;lt; < &lt;",
		`\\&lt;`:                                        `\<`,
		"in C:\\temp\\\nand":                            "in C:\\temp\\\nand",
		"a\\\nb":                                        "a\nb",
		"```go title=\"a.go\"\nx\n```":                  "title=\"a.go\"\n{pre=go:x}",
		"Bye!\n~~~ see you":                             "Bye!\nsee you",
		"~~~later\n\n":                                  "later",
		"> a\n>50% b":                                   "{q:a\n>50% b}",
		"> a\n> b":                                      "{q:a\nb}",
		">a":                                            "{q:a}",
	} {
		if got := show(parse(src)); got != want {
			t.Errorf("%q:\n got %q\nwant %q", src, got, want)
		}
	}
	for src, want := range map[string]string{
		"3. a\n5. b":                   "<ol start=\"3\">\n<li>a</li>\n<li value=\"5\">b</li>\n</ol>\n",
		"|a|\n|-|\n|1|2|":              "<td>2</td>",
		`\&lt; &lt; C:\Users\_me`:      `<p>&amp;lt; &lt; C:\Users\_me</p>`,
		"```go title=\"a.go\"\nx\n```": `title=&#34;a.go&#34;`,
	} {
		if got := markdown.HTML(src); !strings.Contains(got, want) {
			t.Errorf("%q:\n got %q\nwant %q", src, got, want)
		}
	}
}

// Whatever is written, its characters that are no marks are shown, in their order.
func TestNothingIsLost(t *testing.T) {
	marks := regexp.MustCompile("[*_~`#>|\\-+\\\\\\[\\]():.!•—─·☑☐]|\\d|\\s|x|http://a.b")
	bare := func(s string) string { return squeeze(marks.ReplaceAllString(s, "")) }
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"α", "beta", "重点", "这", "é", "9", "7.5", "🙂", "“", "”", "，", "：", "http://a.b/c_d__e*f", "ж"})
		mark := rapid.SampledFrom([]string{"*", "**", "***", "_", "__", "~", "~~", "`", "#", "# ", "> ", ">", "- ", "1. ", "4. ", "|", "|-|-|\n", "\\", "[", "](", ")", "![", "!", ".", ":", "/", "=", "+", "\n", "\n\n", " ", "  ", "\t", "```\n"})
		var src strings.Builder
		for range rapid.IntRange(1, 40).Draw(t, "pieces") {
			if rapid.Bool().Draw(t, "is a word") {
				src.WriteString(word.Draw(t, "word"))
			} else {
				src.WriteString(mark.Draw(t, "mark"))
			}
		}
		got := show(parse(src.String())) // with the languages of code
		want, is := bare(src.String()), bare(got)
		if strings.Contains(src.String(), "```") || strings.Contains(src.String(), "~~~") {
			want, is = inOrder(want), inOrder(is) // a language stands below the other words of its line
		}
		if strings.Contains(src.String(), "](") { // an address that is its own label is shown once
			want, is = string(slices.Compact([]rune(inOrder(want)))), inOrder(is)
		}
		if !subsequence(want, is) {
			t.Fatalf("%q is shown as %q", src.String(), got)
		}
	})
}

// inOrder returns the characters of s by their numbers.
func inOrder(s string) string { return string(slices.Sorted(slices.Values([]rune(s)))) }

// subsequence reports whether the characters of s are in t, in their order.
func subsequence(s, t string) bool {
	rest := []rune(s)
	for _, c := range t {
		if len(rest) > 0 && c == rest[0] {
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}
