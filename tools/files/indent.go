package files

import (
	"strings"
	"unicode"
)

// A move is a line of old_text: its content, its indentation there, and the
// indentation of the same line in the file.
type move struct{ content, from, to string }

// of returns line with its indentation changed as that of m is, if possible.
func (m move) of(line string) (moved string, ok bool) {
	from, to := m.from, m.to
	for from != "" && to != "" && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	rest, ok := strings.CutPrefix(line, from)
	return to + rest, ok
}

// moves are the moves of all lines of a text. Blank lines have no content.
type moves []move

// newMoves returns the moves from old to found, which differ only in white space.
func newMoves(old, found string) (ms moves) {
	is := strings.Split(found, "\n")
	for i, line := range splitLines(old) {
		m := move{content: strings.TrimSpace(line)}
		if m.content != "" {
			m.from = indent(line)
			m.to = indent(is[i])
		}
		ms = append(ms, m)
	}
	return ms
}

// reindent indents new as the lines of old are indented in found (D-061). If all lines
// of old were moved alike, so are those of new. Otherwise, if new has as many lines
// as old, each gets the indentation of the line it replaces. ok is false if neither
// is possible.
func reindent(new, old, found string) (text string, ok bool) {
	ms := newMoves(old, found)
	if m, alike := ms.common(); alike {
		text, ok = each(new, func(_ int, line string) (string, bool) { return m.of(line) })
	}
	if !ok && len(splitLines(new)) == len(ms) {
		text, ok = each(new, ms.inPlace)
	}
	return text, ok
}

// common returns a move that applies to all lines, if there is one.
func (ms moves) common() (first move, ok bool) {
	for _, m := range ms {
		if m.content == "" {
			continue
		}
		if first.content == "" {
			first = m
		}
		if to, ok := first.of(m.from); to != m.to || !ok {
			return first, false
		}
	}
	return first, true
}

// inPlace gives line the indentation of the i-th old line, unless it is equal to
// another one of them.
func (ms moves) inPlace(i int, line string) (string, bool) {
	to := ms[i].to
	content := strings.TrimSpace(line)
	for _, m := range ms {
		if content == m.content && content != ms[i].content && m.to != to {
			return "", false
		}
	}
	return to + strings.TrimLeftFunc(line, unicode.IsSpace), ms[i].content != ""
}

// each applies do to the lines of text that are not blank. It fails if do fails for
// any of them.
func each(text string, do func(i int, line string) (string, bool)) (string, bool) {
	all := strings.Split(text, "\n")
	for i, line := range all {
		if strings.TrimSpace(line) == "" {
			continue
		}
		var ok bool
		if all[i], ok = do(i, line); !ok {
			return "", false
		}
	}
	return strings.Join(all, "\n"), true
}

func splitLines(text string) []string { return strings.Split(strings.TrimSuffix(text, "\n"), "\n") }

// indent returns the white space at the beginning of line.
func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, unicode.IsSpace))]
}
