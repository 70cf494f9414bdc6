package telegramtest

import (
	"reflect"
	"testing"
)

func TestParseHTML(t *testing.T) {
	for _, test := range []struct {
		name, html, text string
		entities         []Entity
	}{
		{"words", "a &lt;b&gt; &amp;amp; &quot;c&quot; &#100;&#x65; >", `a <b> &amp; "c" de >`, nil},
		{"UTF-16", "😀<b>ä😀</b>", "😀ä😀", []Entity{{Type: "bold", Offset: 2, Length: 3}}},
		{"every tag", `<b>a</b><STRONG>a</STRONG><i>b</i><em >b</em ><u>c</u><ins>c</ins><s>d</s><strike>d</strike><del>d</del><tg-spoiler>e</tg-spoiler><span class="tg-spoiler">e</span><code>f</code><pre>g</pre>`,
			"aabbccdddeefg", []Entity{{Type: "bold", Offset: 0, Length: 1}, {Type: "bold", Offset: 1, Length: 1}, {Type: "italic", Offset: 2, Length: 1}, {Type: "italic", Offset: 3, Length: 1},
				{Type: "underline", Offset: 4, Length: 1}, {Type: "underline", Offset: 5, Length: 1}, {Type: "strikethrough", Offset: 6, Length: 1}, {Type: "strikethrough", Offset: 7, Length: 1}, {Type: "strikethrough", Offset: 8, Length: 1},
				{Type: "spoiler", Offset: 9, Length: 1}, {Type: "spoiler", Offset: 10, Length: 1}, {Type: "code", Offset: 11, Length: 1}, {Type: "pre", Offset: 12, Length: 1}}},
		{"language", `<pre><code class="language-go">a&lt;b</code></pre>`, "a<b", []Entity{{Type: "pre", Length: 3, Language: "go"}}},
		{"links", `<a href="https://a.b/?c&amp;d">e</a><a href='tg://user?id=1'>f</a>`, "ef", []Entity{{Type: "text_link", Length: 1, URL: "https://a.b/?c&d"}, {Type: "text_link", Offset: 1, Length: 1, URL: "tg://user?id=1"}}},
		{"links nobody opens", `<a href="http://localhost:1/">a</a><a href="mailto:b@c.d">e</a><a href="javascript:f">g</a>`, "aeg", nil},
		{"quotes", "<blockquote>a</blockquote><blockquote expandable>b</blockquote>", "ab", []Entity{{Type: "blockquote", Length: 1}, {Type: "expandable_blockquote", Offset: 1, Length: 1}}},
		{"space around", " \n <b> a </b> \n", "a", []Entity{{Type: "bold", Length: 1}}},
		{"only space", "a<b> </b>c", "a c", nil},
		{"nothing", "a<b></b>c", "ac", nil},
		{"control characters", "a\tb\r\n\u2028c\u202e", "a b\nc", nil},
		{"styles nest", "<b>a<i>b</i></b>", "ab", []Entity{{Type: "bold", Length: 2}, {Type: "italic", Offset: 1, Length: 1}}},
		{"not in code", "<code>a<b>b</b></code> <b>c<code>d</code>e</b>", "ab cde", []Entity{{Type: "code", Length: 2}, {Type: "bold", Offset: 3, Length: 1}, {Type: "code", Offset: 4, Length: 1}, {Type: "bold", Offset: 5, Length: 1}}},
		{"no quote in a quote", "<blockquote>a<blockquote>b</blockquote></blockquote>", "ab", []Entity{{Type: "blockquote", Length: 2}}},
		{"a quote of code", "<blockquote><pre>a</pre></blockquote>", "a", []Entity{{Type: "blockquote", Length: 1}, {Type: "pre", Length: 1}}},
		{"no code in a link", `<a href="https://a.b">a<code>b</code></a>`, "ab", []Entity{{Type: "text_link", Length: 2, URL: "https://a.b"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			text, entities, err := ParseHTML(test.html)
			if err != nil || text != test.text || !reflect.DeepEqual(append([]Entity{}, entities...), append([]Entity{}, test.entities...)) {
				t.Errorf("ParseHTML(%q) = %q, %+v, %v;\nwant %q, %+v", test.html, text, entities, err, test.text, test.entities)
			}
		})
	}
}

func TestParseHTMLRefuses(t *testing.T) {
	for html, want := range map[string]string{
		"abc<x>d</x>":              `Unsupported start tag "x" at byte offset 3`,
		"1 < 2 >":                  `Unsupported start tag "" at byte offset 2`,
		"1 <2":                     `Unclosed start tag at byte offset 2`,
		"<b>a":                     `Can't find end tag corresponding to start tag "b"`,
		"<b>ab</i>":                `Unmatched end tag at byte offset 5, expected "</b>", found "</i>"`,
		"<b><i>a</b></i>":          `Unmatched end tag at byte offset 7, expected "</i>", found "</b>"`,
		"a</b>":                    `Unexpected end tag at byte offset 1`,
		"<b>a</b":                  `Unclosed end tag at byte offset 4`,
		"a<br/>b":                  `Unsupported start tag "br/" at byte offset 1`,
		"<p>a</p>":                 `Unsupported start tag "p" at byte offset 0`,
		"<b x>a</b>":               `Expected equal sign in declaration of an attribute of the tag "b" at byte offset 0`,
		`<a href=a/b>c</a>`:        `Unexpected end of name token at byte offset 8`,
		`<a href="b>c</a>`:         `Unclosed start tag at byte offset 0`,
		`<span class="x">a</span>`: `Tag "span" must have class "tg-spoiler" at byte offset 0`,
		"a&nbsp;b":                 `Unsupported character reference "&nbsp" at byte offset 1`,
		"a & b":                    `Unsupported character reference "&" at byte offset 2`,
		"&#xd800;":                 `Unsupported character reference "&#xd800" at byte offset 0`,
	} {
		_, _, err := ParseHTML(html)
		if err == nil || err.Error() != want {
			t.Errorf("ParseHTML(%q): got %v, want %s", html, err, want)
		}
	}
	for _, html := range []string{"", " \n", "<b></b>", "\u200b", "&#8203;\u3000"} {
		if text, entities, err := ParseHTML(html); text != "" || entities != nil || err != nil {
			t.Errorf("ParseHTML(%q) = %q, %v, %v", html, text, entities, err)
		}
	}
}

func FuzzParseHTML(f *testing.F) {
	f.Add(`<b>a <i>b</i></b> &lt; <a href="https://a.b">c</a><pre><code class="language-go">d</code></pre>`)
	f.Fuzz(func(t *testing.T, html string) {
		text, entities, err := ParseHTML(html)
		units := 0
		for _, r := range text {
			units++
			if r > 0xffff {
				units++
			}
		}
		for _, e := range entities {
			if err != nil || e.Length <= 0 || e.Offset < 0 || e.end() > units {
				t.Fatalf("ParseHTML(%q) = %q, %+v, %v", html, text, e, err)
			}
		}
	})
}
