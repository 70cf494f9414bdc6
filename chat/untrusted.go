package chat

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Bounds of what is kept of where untrusted content came from.
const (
	maxSources = 4   // of one message, result or turn
	maxSource  = 160 // characters of each
)

// JoinSources adds to all the sources in more that are new, shortened. Sources say
// where untrusted content came from, for people who have to approve something:
// they contain parts of addresses and names that others chose.
func JoinSources(all []string, more ...string) []string {
	for _, s := range more {
		if s = Clip(s, maxSource, "…"); s != "" && len(all) < maxSources && !slices.Contains(all, s) {
			all = append(slices.Clip(all), s)
		}
	}
	return all
}

// UntrustedSources says where the untrusted content in m comes from; nil if there
// is none (R-S12).
func (m Message) UntrustedSources() (sources []string) {
	if m.Tainted {
		sources = JoinSources(m.Sources)
	}
	if m.Tainted && sources == nil {
		sources = []string{"what came with this task"}
	}
	if m.Media != "" && !wordless(m.Media) {
		sources = JoinSources(sources, "the "+m.Media)
	}
	for _, f := range m.Files { // whoever made it may have named it
		if f.Name != "" && !f.Voice {
			sources = JoinSources(sources, fmt.Sprintf("the name of the file %q", f.Name))
		}
	}
	switch q := m.Quote; {
	case q == nil || q.From == "you" && !q.Forwarded:
	case q.Forwarded && q.From == "you":
		sources = JoinSources(sources, "an earlier answer that was passed on")
	case q.Forwarded:
		sources = JoinSources(sources, fmt.Sprintf("a message of %q that was passed on", q.From))
	default:
		sources = JoinSources(sources, fmt.Sprintf("a message of %q that was quoted", q.From))
	}
	return sources
}

// wordless reports whether media contains no words of other people: a location, or
// a sticker with only an emoji. Another person may have chosen the name of a
// sticker.
func wordless(media string) bool {
	if strings.HasPrefix(media, "location") {
		return true
	}
	name, isSticker := strings.CutPrefix(media, "sticker")
	return isSticker && !strings.ContainsFunc(name, unicode.IsLetter)
}
