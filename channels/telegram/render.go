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
	maxText     = 4096     // UTF-16 units of text, once the markup is read
	maxHTML     = 16 << 10 // bytes with markup
	maxEntities = 100      // Telegram drops what is beyond
	maxLink     = 1024     // bytes of an address
)

// Split returns text as messages of Telegram's HTML, of at most 4096 UTF-16 units.
func (c *Channel) Split(text string) []string {
	return render(nil, markdown.Parse(text, opens), maxText)
}

// plain returns the text of a message that Split made, for when Telegram does not take its markup.
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

// opens reports whether Telegram takes link: of others it would show the words
// alone.
func opens(link string) bool {
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

// mark writes t as HTML, and counts its entities.
func mark(t markdown.Text) (message string, entities int) {
	var out strings.Builder
	var written, around []markdown.Span // the tags that are open, and the spans
	within := func(spans []markdown.Span) {
		same := 0
		for same < min(len(written), len(spans)) && written[same] == spans[same] {
			same++
		}
		for _, s := range slices.Backward(written[same:]) {
			_, end := tags(s)
			out.WriteString(end)
		}
		for _, s := range spans[same:] {
			begin, _ := tags(s)
			out.WriteString(begin)
			entities++
		}
		written = spans
	}
	for at, spans := 0, t.Spans; at < len(t.Plain); {
		around = slices.DeleteFunc(around, func(s markdown.Span) bool { return s.End <= at })
		for len(spans) > 0 && spans[0].Start <= at {
			around, spans = append(around, spans[0]), spans[1:]
		}
		end := len(t.Plain)
		if len(around) > 0 {
			end = around[len(around)-1].End
		}
		if len(spans) > 0 {
			end = min(end, spans[0].Start)
		}
		within(nestable(around))
		out.WriteString(html.EscapeString(t.Plain[at:end]))
		at = end
	}
	within(nil)
	return out.String(), entities
}

// nestable returns the spans that Telegram lets be open together: code is only
// code, though it may be quoted, and a link stays a link.
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

// tags returns what begins and what ends s.
func tags(s markdown.Span) (begin, end string) {
	name := [...]string{
		markdown.Bold: "b", markdown.Italic: "i", markdown.Strike: "s", markdown.Code: "code",
		markdown.Pre: "pre", markdown.Link: "a", markdown.Quote: "blockquote",
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
