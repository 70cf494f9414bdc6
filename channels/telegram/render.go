package telegram

import (
	"html"
	"net/url"
	"strings"
	"unicode/utf16"

	"parley/channels/markdown"
)

// What one message may hold.
const (
	maxText     = 4096     // UTF-16 units of text, once the markup is read
	maxHTML     = 16 << 10 // bytes with markup
	maxEntities = 100      // Telegram drops what is beyond
)

// split returns the messages that md has to be sent as, in Telegram's HTML. The
// same md gives the same messages; there are none if md shows nothing.
func split(md string) []string {
	return render(nil, unlink(markdown.Parse(md)), maxText)
}

// plain returns the text of a message that split made, for when Telegram does not take its markup.
func plain(message string) string {
	var out strings.Builder
	for {
		text, rest, found := strings.Cut(message, "<")
		out.WriteString(html.UnescapeString(text))
		if !found {
			return out.String()
		}
		_, message, _ = strings.Cut(rest, ">")
	}
}

// units counts s as Telegram does, in UTF-16.
func units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// render appends t to messages, cut to limit. A message with too much markup
// is cut again, until, at a few characters, the markup goes.
func render(messages []string, t markdown.Text, limit int) []string {
	const few = 16
	for _, part := range t.Split(limit, units) {
		message, entities := mark(part)
		switch {
		case entities <= maxEntities && len(message) <= maxHTML:
			messages = append(messages, message)
		case limit > few:
			messages = render(messages, part, limit/2)
		default:
			messages = append(messages, html.EscapeString(part.Plain))
		}
	}
	return messages
}

// unlink puts the address of a link behind its words where Telegram would show
// the words alone.
func unlink(t markdown.Text) markdown.Text {
	for i := 0; i < len(t.Spans); i++ {
		link := t.Spans[i]
		if link.Kind != markdown.Link || opens(link.Arg) {
			continue
		}
		_, address, _ := strings.Cut(link.Arg, ":")
		if strings.HasPrefix(address, "//") {
			address = link.Arg
		}
		t = insert(t, link.End, " ("+address+")")
		t.Spans = append(t.Spans[:i], t.Spans[i+1:]...)
		i--
	}
	return t
}

// insert puts words into t.
func insert(t markdown.Text, at int, words string) markdown.Text {
	t.Plain = t.Plain[:at] + words + t.Plain[at:]
	for i := range t.Spans {
		s := &t.Spans[i]
		if s.Start >= at {
			s.Start += len(words)
		}
		if s.End > at {
			s.End += len(words)
		}
	}
	return t
}

// opens reports whether Telegram takes link.
func opens(link string) bool {
	u, err := url.Parse(link)
	if err != nil || u.User != nil {
		return false
	}
	switch u.Scheme {
	case "http", "https":
		return strings.Contains(strings.Trim(u.Hostname(), "."), ".")
	case "tg":
		return u.Host != "" && u.Port() == "" && strings.Trim(u.Host, "abcdefghijklmnopqrstuvwxyz_-") == ""
	}
	return false
}

// mark writes t as HTML, and counts its entities.
func mark(t markdown.Text) (message string, entities int) {
	var out strings.Builder
	var open []markdown.Span
	all := runs(t)
	for i, r := range all {
		tags := r.tags
		if !strings.ContainsFunc(r.text, markdown.Visible) { // Telegram drops entities of mere space
			var next []markdown.Span
			if i+1 < len(all) {
				next = all[i+1].tags
			}
			tags = common(open, next)
		}
		same := len(common(open, tags))
		for j := len(open) - 1; j >= same; j-- {
			out.WriteString(closing(open[j]))
		}
		for _, s := range tags[same:] {
			out.WriteString(opening(s))
			entities++
		}
		open = tags
		out.WriteString(html.EscapeString(r.text))
	}
	for j := len(open) - 1; j >= 0; j-- {
		out.WriteString(closing(open[j]))
	}
	return out.String(), entities
}

// A run is a stretch of text that is shown in one way.
type run struct {
	text string
	tags []markdown.Span // outermost first
}

// runs cuts t wherever a span begins or ends.
func runs(t markdown.Text) []run {
	var all []run
	var open []markdown.Span
	at, spans := 0, t.Spans
	for at < len(t.Plain) {
		for len(open) > 0 && open[len(open)-1].End <= at {
			open = open[:len(open)-1]
		}
		for len(spans) > 0 && spans[0].Start <= at {
			open, spans = append(open, spans[0]), spans[1:]
		}
		end := len(t.Plain)
		if len(open) > 0 {
			end = open[len(open)-1].End
		}
		if len(spans) > 0 {
			end = min(end, spans[0].Start)
		}
		all = append(all, run{t.Plain[at:end], nestable(open)})
		at = end
	}
	return all
}

// nestable returns the spans that Telegram lets be open together: code is only
// code, though it may be quoted, and a link stays a link.
func nestable(open []markdown.Span) []markdown.Span {
	var tags []markdown.Span
	linked := false
	for _, s := range open {
		linked = linked || s.Kind == markdown.Link
	}
	for _, s := range open {
		switch {
		case s.Kind == markdown.Code && linked:
			continue
		case s.Kind == markdown.Code, s.Kind == markdown.Pre:
			tags = quotes(tags)
		}
		tags = append(tags, s)
	}
	return tags
}

func quotes(tags []markdown.Span) []markdown.Span {
	if len(tags) > 0 && tags[0].Kind == markdown.Quote {
		return tags[:1]
	}
	return nil
}

// common returns what a and b begin with alike.
func common(a, b []markdown.Span) []markdown.Span {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:n]
}

func opening(s markdown.Span) string {
	switch {
	case s.Kind == markdown.Link:
		return `<a href="` + html.EscapeString(s.Arg) + `">`
	case s.Kind == markdown.Pre && s.Arg != "":
		return `<pre><code class="language-` + html.EscapeString(s.Arg) + `">`
	}
	return "<" + tag(s.Kind) + ">"
}

func closing(s markdown.Span) string {
	if s.Kind == markdown.Pre && s.Arg != "" {
		return "</code></pre>"
	}
	return "</" + tag(s.Kind) + ">"
}

func tag(k markdown.Kind) string {
	switch k {
	case markdown.Bold:
		return "b"
	case markdown.Italic:
		return "i"
	case markdown.Strike:
		return "s"
	case markdown.Code:
		return "code"
	case markdown.Pre:
		return "pre"
	case markdown.Quote:
		return "blockquote"
	}
	return "a"
}
