package files

import (
	"strings"
	"unicode"
)

// A move is a line of an old text, and what its indentation is in the file.
type move struct{ content, from, to string }

// of returns line moved as m is, if that can be.
func (m move) of(line string) (moved string, ok bool) {
	from, to := m.from, m.to
	for from != "" && to != "" && from[len(from)-1] == to[len(to)-1] {
		from, to = from[:len(from)-1], to[:len(to)-1]
	}
	rest, ok := strings.CutPrefix(line, from)
	return to + rest, ok
}

// moves are those of all lines of a text. Blank ones have no content.
type moves []move

// newMoves returns the moves from old to found, which has the same lines but for blanks.
func newMoves(old, found string) (ms moves) {
	is := strings.Split(found, "\n")
	for i, line := range splitLines(old) {
		m := move{content: strings.TrimSpace(line)}
		if m.content != "" {
			m.from, m.to = indent(line), indent(is[i])
		}
		ms = append(ms, m)
	}
	return ms
}

// reindent moves new as the lines of old are moved in found (D-061): all alike
// if those are; else each to where the one is that it replaces, if they are as
// many. It is not ok if neither can be.
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

// common returns a move that is that of all lines.
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

// inPlace gives line the indentation of the i-th, unless it is another of them.
func (ms moves) inPlace(i int, line string) (string, bool) {
	to, content := ms[i].to, strings.TrimSpace(line)
	for _, m := range ms {
		if content == m.content && content != ms[i].content && m.to != to {
			return "", false
		}
	}
	return to + strings.TrimLeftFunc(line, unicode.IsSpace), ms[i].content != ""
}

// each does a thing to the lines of text that are not blank, if it can be done to all.
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

// indent returns what line begins with.
func indent(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, unicode.IsSpace))]
}
