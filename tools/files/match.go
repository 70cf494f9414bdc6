package files

import (
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

// A manner is a way to find old in a text, and to make new look like what was
// found there.
type manner struct {
	find func(text, old string) []span
	mend func(new, old, found string) string
}

// manners are tried one after the other until one finds something (D-061).
var manners = []manner{
	{exactly, func(new, _, _ string) string { return new }},
	{func(text, old string) []span { return exactly(text, crlf(old)) }, func(new, _, _ string) string { return new }},
	{func(text, old string) []span { return byLines(text, old, strings.TrimSpace) }, reindent},
	{byQuotes, curl},
	{
		func(text, old string) []span {
			return byLines(text, old, func(line string) string { return strings.TrimSpace(straight(line)) })
		},
		func(new, old, found string) string { return curl(reindent(new, old, found), old, found) },
	},
}

// edits returns what s changes in text, at each place where old is. An old
// that is there exactly is changed exactly there. Lines end as in text (D-065).
func (s swap) edits(text string) (edits []udiff.Edit) {
	dos := 2*strings.Count(text, "\r\n") > strings.Count(text, "\n")
	for _, m := range manners {
		for _, at := range m.find(text, s.old) {
			found, rest := text[at.from:at.to], text[at.to:]
			e := udiff.Edit{Start: at.from, End: at.to, New: s.tidy(m.mend(s.new, s.old, found), rest)}
			if dos {
				e.New = crlf(e.New)
			}
			if s.new == "" && (at.from == 0 || text[at.from-1] == '\n') && !strings.HasSuffix(found, "\n") {
				e.End += newline(rest) // no empty line is left of whole ones
			}
			edits = append(edits, e)
		}
		if edits != nil {
			return edits
		}
	}
	return nil
}

// tidy returns new, which rest follows, without blanks at the ends of lines.
func (s swap) tidy(new, rest string) string {
	if s.blanks {
		return new
	}
	lines := strings.Split(new, "\n")
	for i, line := range lines {
		if i == len(lines)-1 && rest != "" && newline(rest) == 0 {
			break
		}
		body, dos := strings.CutSuffix(line, "\r")
		if lines[i] = strings.TrimRight(body, " \t"); dos {
			lines[i] += "\r"
		}
	}
	return strings.Join(lines, "\n")
}

func newline(s string) int {
	switch {
	case strings.HasPrefix(s, "\n"):
		return 1
	case strings.HasPrefix(s, "\r\n"):
		return 2
	}
	return 0
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

// byLines finds the lines of old, which are equal when their keys are.
func byLines(text, old string, key func(string) string) (spans []span) {
	want, _ := linesOf(old, key)
	if !slices.ContainsFunc(want, func(k string) bool { return k != "" }) {
		return nil
	}
	have, at := linesOf(text, key)
	for i := 0; i+len(want) <= len(have); i++ {
		if !slices.Equal(have[i:i+len(want)], want) {
			continue
		}
		last := i + len(want) - 1
		s := span{at[i].from, at[last].to}
		if strings.HasSuffix(old, "\n") {
			s.to += newline(text[s.to:])
		}
		spans = append(spans, s)
		i = last
	}
	return spans
}

// linesOf returns the keys of the lines of a text, and where they are without
// their ends.
func linesOf(text string, key func(string) string) (keys []string, at []span) {
	from := 0
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		keys, at = append(keys, key(body)), append(at, span{from, from + len(body)})
		from += len(line)
	}
	return keys, at
}

// reindent moves new as far as found is from old.
func reindent(new, old, found string) string {
	was, is := indent(old), indent(found)
	if was == is {
		return new
	}
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
	for line := range strings.Lines(text) {
		if body := strings.TrimLeftFunc(line, unicode.IsSpace); body != "" {
			return line[:len(line)-len(body)]
		}
	}
	return ""
}

const (
	singles = "‘’"
	doubles = "“”"
)

// straight returns s with straight quotes for curly ones.
var straight = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`).Replace

// byQuotes finds old whatever the shape of its quotes.
func byQuotes(text, old string) (spans []span) {
	i, j := 0, 0 // the same place in text and in what is straight of it
	reach := func(end int) int {
		for j < end {
			r, n := utf8.DecodeRuneInString(text[i:])
			i += n
			if strings.ContainsRune(singles+doubles, r) {
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

// curl gives the quotes of new the shape that they have in found.
func curl(new, _, found string) string {
	single, double := strings.ContainsAny(found, singles), strings.ContainsAny(found, doubles)
	if !single && !double {
		return straight(new)
	}
	before := ' '
	return strings.Map(func(r rune) rune {
		opens := unicode.IsSpace(before) || strings.ContainsRune("([{—–"+singles[:3]+doubles[:3], before)
		before = r
		switch {
		case r == '\'' && single && opens:
			return '‘'
		case r == '\'' && single:
			return '’'
		case r == '"' && double && opens:
			return '“'
		case r == '"' && double:
			return '”'
		}
		return r
	}, new)
}
