package telegram

import (
	"html"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"parley/channels/markdown"
	"parley/channels/telegram/telegramtest"
)

var split = (&Channel{}).Split

func TestSplitOne(t *testing.T) {
	for _, test := range []struct{ name, md, want string }{
		{"words", "Is 1 < 2 & \"so\" on?", "Is 1 &lt; 2 &amp; &#34;so&#34; on?"},
		{"nothing", " \n", ""},
		{"only what nobody sees", "\u200b\n\u2060", ""},
		{"styles", "**a *b*** ~~c~~ `d<e>`", "<b>a <i>b</i></b> <s>c</s> <code>d&lt;e&gt;</code>"},
		{"style around code", "**a `b` c**", "<b>a </b><code>b</code><b> c</b>"},
		{"style of nothing but code", "**`b`**", "<code>b</code>"},
		{"heading with code", "# Use `go`\ntext", "<b>Use </b><code>go</code>\ntext"},
		{"fence", "```go\nif a < b {\n```", "<pre><code class=\"language-go\">if a &lt; b {</code></pre>"},
		{"fence without language", "```\na\n```", "<pre>a</pre>"},
		{"fence in a quote", "> **a**\n> ```\n> b\n> ```", "<blockquote><b>a</b>\n<pre>b</pre></blockquote>"},
		{"link", "[a `b`](https://c.d/?e=\"&f)", "<a href=\"https://c.d/?e=&#34;&amp;f\">a b</a>"},
		{"bold link", "**a [b](https://c.d)**", "<b>a <a href=\"https://c.d\">b</a></b>"},
		{"links Telegram does not open", "**[a](http://localhost:8080/b)** [c](mailto:d@e.f) [g](file:///etc/passwd) [h](tel:+491)", "<b>a (http://localhost:8080/b)</b> c (d@e.f) g (file:///etc/passwd) h (+491)"},
		{"HTML", "<a href=\"x\">&lt;b&gt;</a>", "&lt;a href=&#34;x&#34;&gt;&lt;b&gt;&lt;/a&gt;"},
		{"table", "|a|b|\n|-|-|\n|<1|2|", "<pre>a   b\n─────\n&lt;1  2</pre>"},
		{"steps", "> 🔧 web\\_search \\<b\\> &lt; https\\://a.b\n> ✅ x\n\n**So**", "<blockquote>🔧 web_search &lt;b&gt; &lt; https://a.b\n✅ x</blockquote>\n\n<b>So</b>"},
		{"steps alone", "> ✅ x\n\n", "<blockquote>✅ x</blockquote>"},
		{"a bare address", "see https://x.com/pkg/__init__.py and \"https://x.com/*/a_b_c/*\"", "see https://x.com/pkg/__init__.py and &#34;https://x.com/*/a_b_c/*&#34;"},
		{"arithmetic", "5*3*2 = 30, 2**3**2, 3~5元 src/**/*.go C:\\_a\\*.*", "5*3*2 = 30, 2**3**2, 3~5元 src/**/*.go C:\\_a\\*.*"},
		{"Chinese", "**Note：**这是", "<b>Note：</b>这是"},
		{"an escaped entity", "\\&lt; &lt;", "&amp;lt; &lt;"},
		{"cells beyond the header, and numbers that skip", "|a|\n|-|\n|1|2|\n\n3. x\n5. y", "<pre>a\n────\n1  2</pre>\n\n3. x\n5. y"},
		{"list", "1. **a**: b\n   - c", "1. <b>a</b>: b\n   • c"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(split(test.md), "|"); got != test.want {
				t.Errorf("split(%q)\n got %s\nwant %s", test.md, got, test.want)
			}
			checkMessages(t, test.md)
		})
	}
}

func TestSplitMany(t *testing.T) {
	fence := "Here it is:\n\n```go\n" + strings.Repeat("fmt.Println(\"hello, <world>\")\n", 300) + "```\n\nThat is all."
	parts := split(fence)
	if len(parts) != 3 {
		t.Fatalf("got %d messages, want 3", len(parts))
	}
	for i, p := range parts {
		if strings.Count(p, `<pre><code class="language-go">`) != 1 || strings.Count(p, "</code></pre>") != 1 {
			t.Errorf("message %d does not open and close the fence: %.60s … %s", i, p, p[len(p)-60:])
		}
	}
	for _, md := range []string{
		fence,
		strings.Repeat("Ein Satz mit **Fett** und `Code`. ", 1000),
		strings.Repeat("😀", 5000),
		strings.Repeat("👩‍👩‍👧‍👦", 2000),
		strings.Repeat("[a](https://b.c/"+strings.Repeat("&", 500)+") ", 300),
		strings.Repeat("**a** *b* ", 400),
		strings.Repeat("`<` ", 3000),
		strings.Repeat("&", 20000),
		strings.Repeat("> quote **bold**\n", 1000),
		strings.Repeat("x", 100_000),
	} {
		checkMessages(t, md)
	}
}

// Text whose markup Telegram rejects is sent as plain text (P10), and shows the same.
func TestPlain(t *testing.T) {
	md := "# A & B\n**c** <d> `&lt;` [e](https://f.g/?h&i)\n```go\nx < y\n```"
	want, _, err := telegramtest.ParseHTML(split(md)[0])
	if got := plainText(split(md)[0]); err != nil || got != want {
		t.Errorf("got %q, want %q, %v", got, want, err)
	}
	if got := plainText("a &amp;lt; <b"); got != "a &lt; " {
		t.Errorf("got %q of an odd message", got)
	}
}

// checkMessages fails unless Telegram accepts all messages that split makes of md,
// shows all of them, and drops no entity.
func checkMessages(t *testing.T, md string) {
	t.Helper()
	var shown strings.Builder
	messages := split(md)
	for _, m := range messages {
		text, entities, err := telegramtest.ParseHTML(m)
		switch {
		case err != nil || text == "":
			t.Fatalf("split(%.300q): %v in %.2000q", md, err, m)
		case len(utf16.Encode([]rune(plainText(m)))) > 4096:
			t.Fatalf("split(%.300q): a message of %d units", md, len(utf16.Encode([]rune(plainText(m)))))
		case len(m) > maxHTML:
			t.Fatalf("split(%.300q): a message of %d bytes", md, len(m))
		case len(entities) > 100:
			t.Fatalf("split(%.300q): a message of %d entities", md, len(entities))
		case strings.ContainsRune(text, utf8.RuneError) && utf8.ValidString(md) && !strings.ContainsRune(md, utf8.RuneError) && !strings.Contains(md, "&#"):
			t.Fatalf("split(%.300q): half a character in %.2000q", md, m)
		case elements(m) != len(entities):
			t.Fatalf("split(%.300q): of %.2000q Telegram keeps %d entities: %+v", md, m, len(entities), entities)
		}
		shown.WriteString(text)
	}
	if got, want := seen(shown.String()), seen(markdown.Parse(md, isLinkable).Plain); got != want {
		t.Fatalf("split(%.300q) shows\n%.3000q, not\n%.3000q", md, got, want)
	}
	if !slices.Equal(messages, split(md)) {
		t.Fatalf("split(%.300q) is not deterministic", md)
	}
}

// elements counts the elements in message that show something.
func elements(message string) (n int) {
	var inside []bool // of each open element, whether it shows anything
	for i, piece := range strings.Split(strings.NewReplacer("<pre><code", "<pre", "</code></pre>", "</pre>").Replace(message), "<") {
		tag, text := "", piece
		if i > 0 {
			tag, text, _ = strings.Cut(piece, ">")
		}
		if last := len(inside) - 1; strings.HasPrefix(tag, "/") {
			if inside[last] {
				n++
			}
			inside = inside[:last]
		} else if tag != "" {
			inside = append(inside, false)
		}
		if strings.ContainsFunc(html.UnescapeString(text), func(r rune) bool { return r != ' ' && r != '\n' }) {
			for j := range inside {
				inside[j] = true
			}
		}
	}
	return n
}

func seen(s string) string {
	return strings.Map(func(r rune) rune {
		if markdown.Visible(r) {
			return r
		}
		return -1
	}, s)
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{answer, "> **a `b`**\n> ```x\n> c", "[a `b` **c**](http://localhost) [d](https://e.f/?g=&h)", "|a|b|\n|-|-|\n|**c**|d|",
		"<b>&amp;\u200b</b> ~~**` `**~~", "![a](tg://b) [c](tel:1) [](https://x.y)"} {
		f.Add(s, 1)
		f.Add(s, 60)
	}
	f.Fuzz(func(t *testing.T, md string, times int) {
		checkMessages(t, strings.Repeat(md, min(1+max(times, -times, 0)%200, 1+20_000/(len(md)+1))))
	})
}

const answer = "## How to read a file in Go\n\nUse `os.ReadFile` when the file is **small**:\n\n" +
	"```go\ndata, err := os.ReadFile(\"notes.txt\")\nif err != nil {\n\treturn fmt.Errorf(\"read notes: %w\", err)\n}\n```\n\n" +
	"For large files, prefer a scanner:\n\n- it needs *little* memory\n- it stops early\n  - also on errors\n\n" +
	"See [the docs](https://pkg.go.dev/os#ReadFile) for more. Anything below a few megabytes is fine to read in one go & costs < 1 ms."

func TestSplitAnswer(t *testing.T) {
	want := "<b>How to read a file in Go</b>\n\nUse <code>os.ReadFile</code> when the file is <b>small</b>:\n\n" +
		"<pre><code class=\"language-go\">data, err := os.ReadFile(&#34;notes.txt&#34;)\nif err != nil {\n    return fmt.Errorf(&#34;read notes: %w&#34;, err)\n}</code></pre>\n\n" +
		"For large files, prefer a scanner:\n\n• it needs <i>little</i> memory\n• it stops early\n  • also on errors\n\n" +
		"See <a href=\"https://pkg.go.dev/os#ReadFile\">the docs</a> for more. Anything below a few megabytes is fine to read in one go &amp; costs &lt; 1 ms."
	if got := split(answer); len(got) != 1 || got[0] != want {
		t.Errorf("got %q\nwant %q", got, want)
	}
	// While the answer is being streamed, Telegram accepts it at every stage.
	for i := range answer {
		checkMessages(t, answer[:i])
	}
}

func BenchmarkSplit(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		split(answer)
	}
}
