package markdown

import (
	"html"
	"slices"
	"strings"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

func (w *writer) inlines(parent ast.Node) {
	for n := parent.FirstChild(); n != nil; n = n.NextSibling() {
		w.inline(n)
	}
}

func (w *writer) inline(n ast.Node) {
	switch n := n.(type) {
	case *ast.Text:
		w.out = append(w.out, unescape(n.Segment.Value(w.src))...)
		if n.SoftLineBreak() || n.HardLineBreak() {
			w.newline()
		}
	case *ast.CodeSpan:
		w.codeSpan(n)
	case *ast.Emphasis:
		k := Italic
		if n.Level > 1 {
			k = Bold
		}
		w.within(k, n)
	case *extast.Strikethrough:
		w.within(Strike, n)
	case *ast.Link:
		w.link(n, unescape(n.Destination))
	case *ast.Image:
		w.link(n, unescape(n.Destination))
	case *ast.AutoLink:
		w.out = append(w.out, n.Label(w.src)...)
	case *extast.TaskCheckBox:
		if n.IsChecked {
			w.out = append(w.out, "☑ "...)
		} else {
			w.out = append(w.out, "☐ "...)
		}
	default:
		w.inlines(n)
	}
}

func (w *writer) within(k Kind, n ast.Node) {
	i := w.begin(k, "")
	w.inlines(n)
	w.end(i)
}

func (w *writer) codeSpan(n ast.Node) {
	i := w.begin(Code, "")
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			s := strings.ReplaceAll(string(t.Segment.Value(w.src)), "\t", " ")
			w.out = append(w.out, strings.ReplaceAll(s, "\n", " ")...)
		}
	}
	w.end(i)
}

// link writes a link or an image. An address that a chat cannot open, or whose
// words are the address, is written out.
func (w *writer) link(n ast.Node, url string) {
	start, i := len(w.out), -1
	if opens(url) {
		i = w.begin(Link, url)
	}
	w.inlines(n)
	label := strings.TrimSpace(string(w.out[start:]))
	switch {
	case !visible(label):
		w.out = append(w.out, url...)
		label = url
	case w.open[Link], url == "", label == url, strings.HasPrefix(url, "data:"):
	default:
		w.out = append(append(append(w.out, " ("...), url...), ')')
	}
	w.end(i)
	if i >= 0 && strings.TrimPrefix(url, "mailto:") == label {
		w.spans[i].End = w.spans[i].Start
	}
}

// opens reports whether a chat can be trusted to open url.
func opens(url string) bool {
	scheme, rest, _ := strings.Cut(url, ":")
	known := slices.Contains([]string{"http", "https", "tg", "mailto", "tel"}, strings.ToLower(scheme))
	return known && len(rest) > 2 && len(url) <= 1024 && !strings.ContainsAny(url, " \n\t")
}

// unescape resolves the backslashes and entities of Markdown.
func unescape(b []byte) string {
	s := string(b)
	if !strings.ContainsAny(s, "\\&\t") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && util.IsPunct(s[i+1]):
			i++
			out.WriteByte(s[i])
		case c == '&':
			r, n := entity(s[i:])
			out.WriteString(r)
			i += n - 1
		case c == '\t':
			out.WriteByte(' ')
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// entity returns what the entity at the beginning of s stands for, and its length.
func entity(s string) (string, int) {
	if n := strings.IndexByte(s[:min(len(s), 34)], ';') + 1; n > 0 {
		if r := html.UnescapeString(s[:n]); !strings.HasSuffix(r, ";") || r == ";" {
			return strings.ReplaceAll(strings.Map(clean, r), "\t", " "), n
		}
	}
	return "&", 1
}
