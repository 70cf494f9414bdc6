package discordtest

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
)

// What Discord's app takes for markup, by the rules of its parser of Markdown.
var (
	fenceForm   = regexp.MustCompile("(?s)^```(?:[A-Za-z0-9_+.#-]+\n)?\n*(.*?[^\n])\n*```")
	codeForm    = regexp.MustCompile("(?s)^(`+)(.+?)(`+)")
	escapeForm  = regexp.MustCompile(`^\\([^0-9A-Za-z\s])`)
	linkForm    = regexp.MustCompile(`^\]\(https?://[^)\s]*\)`)
	urlForm     = regexp.MustCompile(`^(?:https?)://[^\s<]+[^<.,:;"'\]\s]`)
	starForm    = regexp.MustCompile(`(?s)^\*(\S|\S.*?\S)\*(?:[^*]|$)`)
	lineForm    = regexp.MustCompile(`(?s)^_((?:__|\\.|[^\\_])+?)_(?:[^0-9A-Za-z_]|$)`)
	strongForm  = regexp.MustCompile(`(?s)^\*\*((?:\\.|[^\\])+?)\*\*(?:[^*]|$)`)
	underForm   = regexp.MustCompile(`(?s)^__((?:\\.|[^\\])+?)__(?:[^_]|$)`)
	strikeForm  = regexp.MustCompile(`(?s)^~~(.+?)~~(?:[^_]|$)`)
	spoilerForm = regexp.MustCompile(`(?s)^\|\|(.+?)\|\|`)
	starInside  = regexp.MustCompile(`(?s)^(?:\*\*|\\.|\s+(?:\\.|[^\s*\\]|\*\*)|[^\s*\\])+$`)
	itemForm    = regexp.MustCompile(`^( *)(\d+)(\. .*)$`)
)

// markLengths are the lengths of the marks on either side.
var markLengths = map[*regexp.Regexp]int{
	starForm: 1, lineForm: 1, strongForm: 2, underForm: 2, strikeForm: 2, spoilerForm: 2,
}

// Shown returns the words of a message as Discord's app shows them: without the
// marks it knows, and with the numbers it gives to lists.
func Shown(content string) string {
	var lines []string
	next, within := 0, false
	for line := range strings.SplitSeq(content, "\n") {
		line = strings.TrimPrefix(strings.TrimPrefix(line, ">>> "), "> ")
		item := itemForm.FindStringSubmatch(line)
		switch {
		case item == nil:
			within = within && strings.TrimSpace(line) == ""
		case !within:
			next, _ = strconv.Atoi(item[2])
			within = true
		}
		if item != nil {
			line = item[1] + strconv.Itoa(next) + item[3]
			next++
		}
		lines = append(lines, line)
	}
	return words(strings.Join(lines, "\n"))
}

// words is Shown without lists and quotes.
func words(s string) string {
	var out strings.Builder
	for s != "" {
		shown, size := showNext(s)
		out.WriteString(shown)
		s = s[size:]
	}
	return out.String()
}

// showNext returns what the beginning of s is shown as, and how long it is.
func showNext(s string) (shown string, size int) {
	if m := fenceForm.FindStringSubmatch(s); m != nil {
		return m[1], len(m[0])
	}
	if m := codeForm.FindStringSubmatch(s); m != nil && m[1] == m[3] {
		return m[2], len(m[0])
	}
	if m := escapeForm.FindStringSubmatch(s); m != nil {
		return m[1], len(m[0])
	}
	if m := cmp.Or(linkForm.FindString(s), urlForm.FindString(s)); m != "" {
		return m, len(m)
	}
	best := ""
	for form, length := range markLengths {
		m := form.FindStringSubmatch(s)
		if m == nil || form == starForm && !starInside.MatchString(m[1]) {
			continue
		}
		if whole := s[:len(m[1])+2*length]; len(whole) > len(best) {
			best, shown = whole, words(m[1])
		}
	}
	if best != "" {
		return shown, len(best)
	}
	return s[:1], 1
}
