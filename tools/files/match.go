package files

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/aymanbagabas/go-udiff"
)

// A swap puts one text in the place of another.
type swap struct {
	old, new string
	blanks   bool // blanks at the ends of lines mean something, as in Markdown
}

// edits returns what s changes in text, at each place where old is. An old
// that is there exactly is changed exactly there; else new is made to look
// like what is there (D-061). Lines end as in text (D-065).
// Where it is not clear how to indent new is odd: there are no edits then.
func (s swap) edits(text string) (edits []udiff.Edit, odd []int) {
	dos := 2*strings.Count(text, "\r\n") > strings.Count(text, "\n")
	for i, find := range []func(text, old string) [][]int{
		exactly, func(text, old string) [][]int { return exactly(text, crlf(old)) }, byLines, byQuotes,
	} {
		for _, at := range find(text, s.old) {
			from := at[0]
			to := at[1]
			new := s.new
			found, rest := text[from:to], text[to:]
			if i >= 2 {
				clear := false
				if new, clear = reindent(new, s.old, found); !clear {
					return nil, at
				}
				new = curl(new, s.old, found)
			}
			if new = s.tidy(new, rest); dos {
				new = crlf(new)
			}
			if s.new == s.old {
				new = found
			}
			if s.new == "" && (from == 0 || text[from-1] == '\n') && !strings.HasSuffix(found, "\n") {
				to += newline(rest) // no empty line is left of whole ones
			}
			edits = append(edits, udiff.Edit{Start: from, End: to, New: new})
		}
		if edits != nil {
			break
		}
	}
	return edits, nil
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

func exactly(text, old string) (places [][]int) {
	for from, i := 0, 0; old != ""; from += i + len(old) {
		if i = strings.Index(text[from:], old); i < 0 {
			break
		}
		places = append(places, []int{from + i, from + i + len(old)})
	}
	return places
}

// byLines finds the lines of old, whatever their indentation and quotes.
func byLines(text, old string) (places [][]int) {
	const blank = `[\t\v\f\pZ]*`
	var lines []string
	for line := range strings.Lines(old) {
		lines = append(lines, anyQuotes(strings.TrimSpace(line)))
	}
	re, err := regexp.Compile(`(?m)^(` + blank + strings.Join(lines, blank+`\r?\n`+blank) + blank + `)\r?$`)
	if err != nil || strings.Join(lines, "") == "" { // an error: it is no text
		return nil
	}
	for _, at := range re.FindAllStringSubmatchIndex(text, -1) {
		if strings.HasSuffix(old, "\n") {
			at[3] += newline(text[at[3]:])
		}
		places = append(places, at[2:])
	}
	return places
}

// byQuotes finds old whatever the shape of its quotes.
func byQuotes(text, old string) [][]int {
	re, err := regexp.Compile(anyQuotes(old))
	if err != nil || old == "" {
		return nil
	}
	return re.FindAllStringIndex(text, -1)
}

// anyQuotes returns the pattern that text matches whatever the shape of its quotes.
func anyQuotes(text string) string {
	return strings.NewReplacer("'", "['‘’]", `"`, `["“”]`).Replace(regexp.QuoteMeta(straight(text)))
}

const curly = "‘’“”"

var straight = strings.NewReplacer("‘", "'", "’", "'", "“", `"`, "”", `"`).Replace

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
