package files

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// A swap puts one text in the place of another.
type swap struct {
	old, new string
	blanks   bool // blanks at the ends of lines mean something, as in Markdown
}

// A span is a part of a text: from its first byte to the one behind its last.
type span struct{ from, to int }

// edits returns what s changes in text, at each place where old is. An old
// that is there exactly is changed exactly there; else new is made to look
// like what is there (D-061). Lines end as in text (D-065).
func (s swap) edits(text string) (edits []udiff.Edit) {
	dos := 2*strings.Count(text, "\r\n") > strings.Count(text, "\n")
	for i, find := range []func(text, old string) []span{
		exactly, func(text, old string) []span { return exactly(text, crlf(old)) }, byLines, byQuotes,
	} {
		for _, at := range find(text, s.old) {
			found, rest, new := text[at.from:at.to], text[at.to:], s.new
			if i >= 2 {
				new = curl(reindent(new, s.old, found), s.old, found)
			}
			if new = s.tidy(new, rest); dos {
				new = crlf(new)
			}
			if s.new == "" && (at.from == 0 || text[at.from-1] == '\n') && !strings.HasSuffix(found, "\n") {
				at.to += newline(rest) // no empty line is left of whole ones
			}
			edits = append(edits, udiff.Edit{Start: at.from, End: at.to, New: new})
		}
		if edits != nil {
			break
		}
	}
	return edits
}

var blanks = regexp.MustCompile(`[ \t]+(\r?\n)`)

// tidy returns new, which rest follows, without blanks at the ends of lines.
func (s swap) tidy(new, rest string) string {
	if s.blanks {
		return new
	}
	new = blanks.ReplaceAllString(new, "$1")
	if rest == "" || newline(rest) > 0 {
		new = strings.TrimRight(new, " \t")
	}
	return new
}

// newline returns how many bytes of s are the end of a line.
func newline(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	return min(1, len(s)-len(strings.TrimPrefix(s, "\n")))
}

func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

func exactly(text, old string) (spans []span) {
	for from := 0; old != ""; {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		spans = append(spans, span{from + i, from + i + len(old)})
		from += i + len(old)
	}
	return spans
}

// byLines finds the lines of old, whatever their indentation and quotes.
func byLines(text, old string) (spans []span) {
	want, _ := linesOf(old)
	if strings.Join(want, "") == "" {
		return nil
	}
	have, at := linesOf(text)
	for i := 0; i+len(want) <= len(have); i++ {
		if !slices.Equal(have[i:i+len(want)], want) {
			continue
		}
		s := span{at[i].from, at[i+len(want)-1].to}
		if strings.HasSuffix(old, "\n") {
			s.to += newline(text[s.to:])
		}
		spans = append(spans, s)
		i += len(want) - 1
	}
	return spans
}

// linesOf returns what counts of the lines of a text, and where they are
// without their ends.
func linesOf(text string) (lines []string, at []span) {
	from := 0
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		lines, at = append(lines, straight(strings.TrimSpace(body))), append(at, span{from, from + len(body)})
		from += len(line)
	}
	return lines, at
}

// reindent moves new as far as found is from old.
func reindent(new, old, found string) string {
	was, is := indent(old), indent(found)
	var b strings.Builder
	for line := range strings.Lines(new) {
		if rest, ok := strings.CutPrefix(line, was); ok && strings.TrimSpace(line) != "" {
			line = is + rest
		}
		b.WriteString(line)
	}
	return b.String()
}

// indent returns what the first line that is not blank begins with.
func indent(text string) string {
	body := strings.TrimLeftFunc(text, unicode.IsSpace)
	before := text[:len(text)-len(body)]
	return before[strings.LastIndexByte(before, '\n')+1:]
}

const curly = "‘’“”"

var straight = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`).Replace

// byQuotes finds old whatever the shape of its quotes.
func byQuotes(text, old string) (spans []span) {
	i, j := 0, 0 // the same place in text and in what is straight of it
	reach := func(end int) int {
		for j < end {
			r, n := utf8.DecodeRuneInString(text[i:])
			i += n
			if strings.ContainsRune(curly, r) {
				n = 1
			}
			j += n
		}
		return i
	}
	for _, s := range exactly(straight(text), straight(old)) {
		from := reach(s.from)
		spans = append(spans, span{from, reach(s.to)})
	}
	return spans
}

// curl gives the quotes of new the shape that they have in found, if that is
// another than in old.
func curl(new, old, found string) string {
	single, double := strings.ContainsAny(found, "‘’"), strings.ContainsAny(found, "“”")
	if !single && !double && strings.ContainsAny(old, curly) {
		return straight(new)
	}
	before := ' '
	return strings.Map(func(r rune) rune {
		closes := 1
		if unicode.IsSpace(before) || strings.ContainsRune("([{—–‘“", before) {
			closes = 0
		}
		before = r
		switch {
		case r == '\'' && single:
			return []rune("‘’")[closes]
		case r == '"' && double:
			return []rune("“”")[closes]
		}
		return r
	}, new)
}
