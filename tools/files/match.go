package files

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"

	"parley/lazyregexp"
)

// A replacement replaces one text by another.
type replacement struct {
	old, new   string
	keepSpaces bool // at the ends of lines, where they have a meaning, as in Markdown
}

// edits returns the edits that replace old in text, one for each occurrence. If old
// does not occur exactly, text that differs only in indentation or quotes counts as an
// occurrence, and new is adapted to it (D-061). Line ends become those of text (D-065).
// If it is not clear how to indent new at an occurrence, edits returns no edits, and
// the offsets of that occurrence.
func (s replacement) edits(text string) (edits []udiff.Edit, ambiguousIndent []int) {
	dos := 2*strings.Count(text, "\r\n") > strings.Count(text, "\n")
	for i, find := range []func(text, old string) [][]int{
		exactly, func(text, old string) [][]int { return exactly(text, crlf(old)) }, byLines, byQuotes,
	} {
		for _, at := range find(text, s.old) {
			from := at[0]
			to := at[1]
			new := s.new
			found := text[from:to]
			rest := text[to:]
			if i >= 2 {
				clear := false
				if new, clear = reindent(new, s.old, found); !clear {
					return nil, at
				}
				new = adaptQuotes(new, s.old, found)
			}
			new = s.trimLineEnds(new, rest)
			if dos {
				new = crlf(new)
			}
			if s.new == s.old {
				new = found
			}
			if s.new == "" && (from == 0 || text[from-1] == '\n') && !strings.HasSuffix(found, "\n") {
				to += newline(rest) // deleting whole lines leaves no empty line behind
			}
			edits = append(edits, udiff.Edit{Start: from, End: to, New: new})
		}
		if edits != nil {
			break
		}
	}
	return edits, nil
}

var blanks = lazyregexp.New(`[ \t]+(\r?\n)`)

// trimLineEnds returns new without white space at the ends of lines. rest is the text
// that follows it in the file.
func (s replacement) trimLineEnds(new, rest string) string {
	if s.keepSpaces {
		return new
	}
	new = blanks.ReplaceAllString(new, "$1")
	if rest == "" || newline(rest) > 0 {
		new = strings.TrimRight(new, " \t")
	}
	return new
}

// newline returns the length of the line end at the beginning of s, or 0.
func newline(s string) int {
	if strings.HasPrefix(s, "\r\n") {
		return 2
	}
	return min(1, len(s)-len(strings.TrimPrefix(s, "\n")))
}

func crlf(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "\r\n")
}

// exactly finds the places where old occurs.
func exactly(text, old string) (places [][]int) {
	for from, i := 0, 0; old != ""; from += i + len(old) {
		if i = strings.Index(text[from:], old); i < 0 {
			break
		}
		places = append(places, []int{from + i, from + i + len(old)})
	}
	return places
}

// byLines finds the lines of old, with any indentation and any shape of quotes.
func byLines(text, old string) (places [][]int) {
	const blank = `[\t\v\f\pZ]*`
	var lines []string
	for line := range strings.Lines(old) {
		lines = append(lines, anyQuotes(strings.TrimSpace(line)))
	}
	re, err := regexp.Compile(`(?m)^(` + blank + strings.Join(lines, blank+`\r?\n`+blank) + blank + `)\r?$`)
	if err != nil || strings.Join(lines, "") == "" {
		return nil // an error means that old is not valid UTF-8
	}
	for _, at := range re.FindAllStringSubmatchIndex(text, -1) {
		if strings.HasSuffix(old, "\n") {
			at[3] += newline(text[at[3]:])
		}
		places = append(places, at[2:])
	}
	return places
}

// byQuotes finds old with any shape of quotes.
func byQuotes(text, old string) [][]int {
	re, err := regexp.Compile(anyQuotes(old))
	if err != nil || old == "" {
		return nil
	}
	return re.FindAllStringIndex(text, -1)
}

// anyQuotes returns a pattern that matches text with any shape of quotes.
func anyQuotes(text string) string {
	return strings.NewReplacer("'", "['‘’]", `"`, `["“”]`).Replace(regexp.QuoteMeta(straight(text)))
}

const curly = "‘’“”"

var straight = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`).Replace

// adaptQuotes gives the quotes of new the shape that they have in found, if that
// differs from their shape in old.
func adaptQuotes(new, old, found string) string {
	single := strings.ContainsAny(found, "‘’")
	double := strings.ContainsAny(found, "“”")
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
