package markdown_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/markdown"
	"parley/timetest"
)

const attrs = ` rel="noopener noreferrer nofollow" target="_blank"`

func TestHTML(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"words", "**bold** and *it* and ~~no~~ and `x<y`", "<p><strong>bold</strong> and <em>it</em> and <del>no</del> and <code>x&lt;y</code></p>\n"},
		{"a line stays a line", "one\ntwo", "<p>one<br>\ntwo</p>\n"},
		{"headings stay below that of the page, and leave out no level", "## a\n##### b\n#### c\n# d\n##### e", "<h2>a</h2><h3>b</h3><h3>c</h3><h2>d</h2><h3>e</h3>"},
		{"there are six levels", "# 1\n## 2\n### 3\n#### 4\n##### 5\n###### 6", "<h2>1</h2><h3>2</h3><h4>3</h4><h5>4</h5><h6>5</h6><h6>6</h6>"},
		{"code has its language", "```go\na < b\n```", "<pre><code class=\"language-go\">a &lt; b\n</code></pre>\n"},
		{"a fence without an end", "```\na", "<pre><code>a\n</code></pre>\n"},
		{"a language that breaks out", "```x\"><b>\na\n```", "<p>x&#34;&gt;&lt;b&gt;</p>\n<pre><code>a\n</code></pre>\n"},
		{"a table without styles", "|a|b|\n|-|-:|\n|1|2|", "<table>\n<thead>\n<tr>\n<th>a</th>\n<th align=\"right\">b</th>\n</tr>\n</thead>\n<tbody>\n<tr>\n<td>1</td>\n<td align=\"right\">2</td>\n</tr>\n</tbody>\n</table>\n"},
		{"tasks", "- [x] done", `<ul>
<li><input type="checkbox" aria-label="Done" checked disabled> done</li>
</ul>
`},
		{"a link", "[here](https://e.org/?a=1&b=2)", `<p><a href="https://e.org/?a=1&amp;b=2"` + attrs + ">here</a></p>\n"},
		{"an address by itself", "see https://e.org/x now", `<p>see <a href="https://e.org/x"` + attrs + ">https://e.org/x</a> now</p>\n"},
		{"mail", "a@e.org", `<p><a href="mailto:a@e.org"` + attrs + ">a@e.org</a></p>\n"},
		{"an image is a link (R-S13)", "![cat](https://e.org/c.png)", `<p><a href="https://e.org/c.png"` + attrs + ">cat</a></p>\n"},
		{"an image without words", "![](https://e.org/c.png)", `<p><a href="https://e.org/c.png"` + attrs + ">https://e.org/c.png</a></p>\n"},
		{"an image in a link", "[![cat](https://e.org/c.png)](https://e.org)", `<p><a href="https://e.org"` + attrs + ">cat (https://e.org/c.png)</a></p>\n"},
		{"an image in data", "![cat](data:image/png;base64,AAAA)", "<p>cat</p>\n"},
		{"a script is no address", "[click](javascript:alert(1))", "<p>click (javascript:alert(1))</p>\n"},
		{"nor in disguise", "[click](JaVa&#115;cript:alert(1)) [c](//e.org) <vbscript:x>", "<p>click (JaVascript:alert(1)) c (//e.org) vbscript:x</p>\n"},
		{"a quote in an address", `[a](<https://e.org/"onclick="x>)`, `<p><a href="https://e.org/%22onclick=%22x"` + attrs + ">a</a></p>\n"},
		{"a title is left out", `[a](https://e.org "><script>")`, `<p><a href="https://e.org"` + attrs + ">a</a></p>\n"},
		{"HTML is text", "<script>alert(1)</script>\n\n<img src=x onerror=alert(1)>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>\n<p>&lt;img src=x onerror=alert(1)&gt;</p>\n"},
		{"what turns the direction of text around", "a\u202eb\x00c", "<p>abc</p>\n"},
		{"nothing", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := markdown.HTML(c.src); got != c.want {
				t.Errorf("HTML(%q)\n got %s\nwant %s", c.src, got, c.want)
			}
		})
	}
}

// What goldmark would take long for is shown as it is written.
func TestHTMLExcessive(t *testing.T) {
	got := markdown.HTML(strings.Repeat("<b>\n", 64<<10))
	if !strings.HasPrefix(got, "<p>&lt;b&gt;<br>\n") || strings.Contains(got, "<b>") {
		t.Errorf("got %.60q", got)
	}
	for _, s := range []string{"http://a ", "www.", "a@b.", "http://", "[", "![](", "*a_", "<a@", "`", "~~", "(http://a(", "www.a_*", "$a ", "$$", "$$\n", "$ ", "\\(", "\\[", "\\[\n", "$a\n\n"} {
		start := timetest.CPUTime(t)
		markdown.HTML(strings.Repeat(s, (64<<10)/len(s)))
		if took := timetest.CPUTime(t) - start; took > 3*time.Second {
			t.Errorf("64 KiB of %q take %v", s, took)
		}
	}
}

// R-S5: whatever is said, there are only tags that mean words, with attributes that do nothing.
func FuzzHTML(f *testing.F) {
	for _, s := range []string{"<script>", "[a](javascript:x)", "![a](http://b.c)", "```a\"b\nc", "|a|\n|-|\n|<b>|", "<http://a.b/\">", "# a\n- [ ] b\n> c", "http://a.b/<x>\"'", "$x<y$", "$$\n<a>\n$$", `\(<b>\)`, "- \\[\n  x\n  \\]"} {
		f.Add(s)
	}
	allowed := strings.Fields("p br strong em del code pre h2 h3 h4 h5 h6 span div ul ol li blockquote hr table thead tbody tr th td a input")
	f.Fuzz(func(t *testing.T, src string) {
		out := markdown.HTML(src)
		d := xml.NewDecoder(bytes.NewReader([]byte("<x>" + out + "</x>")))
		d.Strict, d.AutoClose, d.Entity = false, []string{"br", "hr", "input"}, xml.HTMLEntity
		for {
			token, err := d.Token()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				if strings.Contains(err.Error(), "invalid UTF-8") || strings.Contains(err.Error(), "illegal character") {
					return
				}
				t.Fatalf("%q -> %q: %v", src, out, err)
			}
			tag, ok := token.(xml.StartElement)
			if !ok || tag.Name.Local == "x" {
				continue
			}
			if !slices.Contains(allowed, tag.Name.Local) {
				t.Fatalf("%q -> %q has <%s>", src, out, tag.Name.Local)
			}
			for _, a := range tag.Attr {
				good := slices.Contains(strings.Fields("class start align rel target checked disabled type aria-label value"), a.Name.Local) ||
					a.Name.Local == "href" && (slices.Contains([]string{"http", "https", "mailto"}, strings.ToLower(strings.SplitN(a.Value, ":", 2)[0])))
				if !good {
					t.Fatalf("%q -> %q has %s=%q", src, out, a.Name.Local, a.Value)
				}
			}
		}
	})
}
