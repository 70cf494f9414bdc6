package telegram

import (
	"html"
	"net/url"
	"slices"
	"strings"
	"unicode/utf16"

	"parley/channels/markdown"
)

// What one message may hold.
const (
	maxText     = 4096     // UTF-16 units of text, without the markup
	maxHTML     = 16 << 10 // bytes with markup
	maxEntities = 100      // Telegram drops the rest
	maxLink     = 1024     // bytes of an address

	minMarkupText = 16 // UTF-16 units: a shorter part with too much markup loses it
)

// plainText returns the text of a message that Split made, for when Telegram
// cannot parse its markup.
func plainText(message string) string {
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

// utf16Len counts s as Telegram does, in UTF-16 units.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// render appends t to messages, split to limit. A message with too much markup is
// split again; if it is already short, it loses the markup.
func render(messages []string, t markdown.Text, limit int) []string {
	for _, part := range t.Split(limit, utf16Len) {
		message, entities := toHTML(part)
		switch {
		case entities <= maxEntities && len(message) <= maxHTML:
			messages = append(messages, message)
		case limit > minMarkupText:
			messages = render(messages, part, limit/2)
		default:
			messages = append(messages, html.EscapeString(part.Plain))
		}
	}
	return messages
}

// isLinkable reports whether Telegram opens link: of others it would show only the
// text.
func isLinkable(link string) bool {
	u, err := url.Parse(link)
	if err != nil || u.User != nil || len(link) > maxLink || strings.ContainsAny(link, " \n\t") {
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

// toHTML writes t as HTML, and counts its entities.
func toHTML(t markdown.Text) (message string, entities int) {
	var w htmlWriter
	var around []markdown.Span // the spans that the text is in
	ahead := t.Spans
	for at := 0; at < len(t.Plain); {
		around = slices.DeleteFunc(around, func(s markdown.Span) bool { return s.End <= at })
		for len(ahead) > 0 && ahead[0].Start <= at {
			around = append(around, ahead[0])
			ahead = ahead[1:]
		}
		end := len(t.Plain)
		if len(around) > 0 {
			end = around[len(around)-1].End
		}
		if len(ahead) > 0 {
			end = min(end, ahead[0].Start)
		}
		w.switchTo(nestable(around))
		w.out.WriteString(html.EscapeString(t.Plain[at:end]))
		at = end
	}
	w.switchTo(nil)
	return w.out.String(), w.entities
}

// An htmlWriter opens and closes the tags of spans.
type htmlWriter struct {
	out      strings.Builder
	open     []markdown.Span // whose tags are open, outermost first
	entities int             // opened so far
}

// switchTo closes and opens tags so that those of spans are open.
func (w *htmlWriter) switchTo(spans []markdown.Span) {
	common := 0
	for common < min(len(w.open), len(spans)) && w.open[common] == spans[common] {
		common++
	}
	for _, s := range slices.Backward(w.open[common:]) {
		_, end := tagsOf(s)
		w.out.WriteString(end)
	}
	for _, s := range spans[common:] {
		begin, _ := tagsOf(s)
		w.out.WriteString(begin)
		w.entities++
	}
	w.open = spans
}

// nestable returns those of the spans that Telegram allows to be nested: code
// contains nothing else and is in nothing but a quote, and a link stays a link.
func nestable(around []markdown.Span) (open []markdown.Span) {
	for _, s := range around {
		if s.Kind == markdown.Code || s.Kind == markdown.Pre {
			if slices.ContainsFunc(open, func(t markdown.Span) bool { return t.Kind == markdown.Link }) {
				continue
			}
			open = slices.DeleteFunc(open, func(t markdown.Span) bool { return t.Kind != markdown.Quote })
		}
		open = append(open, s)
	}
	return open
}

// tagsOf returns the tags that begin and end s.
func tagsOf(s markdown.Span) (begin, end string) {
	name := [...]string{
		markdown.Bold:   "b",
		markdown.Italic: "i",
		markdown.Strike: "s",
		markdown.Code:   "code",
		markdown.Pre:    "pre",
		markdown.Link:   "a",
		markdown.Quote:  "blockquote",
	}[s.Kind]
	arg := html.EscapeString(s.Arg)
	switch {
	case s.Kind == markdown.Link:
		return `<a href="` + arg + `">`, "</a>"
	case s.Kind == markdown.Pre && arg != "":
		return `<pre><code class="language-` + arg + `">`, "</code></pre>"
	}
	return "<" + name + ">", "</" + name + ">"
}
