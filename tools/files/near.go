package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"parley/chat"
)

const (
	maxDiff     = 40      // lines of a diff that a model is shown (D-066)
	maxDiffLine = 300     // characters of one
	maxNear     = 4 << 20 // bytes of a file in which something similar is looked for
)

// diff returns what the edits change in text, as far as it is not too long.
func diff(from, to, text string, edits []udiff.Edit) string {
	all, err := udiff.ToUnified(from, to, text, edits, 3)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSuffix(all, "\n"), "\n")
	if n := len(lines) - maxDiff + 1; n > 1 {
		lines = append(lines[:maxDiff-1], fmt.Sprintf("... (%d more lines)", n))
	}
	for i, line := range lines {
		lines[i] = chat.Clip(strings.TrimSuffix(line, "\r"), maxDiffLine, "…")
	}
	return strings.Join(lines, "\n")
}

// notFound says that old is not in text, and what is there that is most like it (D-062).
func notFound(path, old, text string) error {
	best, line, alike := closest(old, text)
	if alike <= 0.5 {
		return fail("old_text not found in %s. No similar text found. Verify the file content.", path)
	}
	cause := "old_text is not what the file holds now"
	switch a, b := strings.Join(strings.Fields(old), " "), strings.Join(strings.Fields(best), " "); {
	case a == b:
		cause = "whitespace differs"
	case strings.EqualFold(a, b):
		cause = "letter case differs"
	}
	return unlike(path, cause, old, best, line, alike)
}

// misindented says that old is in text, but indented otherwise (D-061).
func misindented(path, old, text string, at []int) error {
	return unlike(
		path,
		"the indentation of old_text does not match the file, so it is not clear how to indent new_text. "+
			"Copy the lines exactly as they are in the file",
		old,
		strings.TrimSuffix(text[at[0]:at[1]], "\n")+"\n",
		1+strings.Count(text[:at[0]], "\n"),
		1,
	)
}

// unlike says how old is not as best, which is in the file from line on.
func unlike(path, cause, old, best string, line int, alike float64) error {
	if strings.HasSuffix(best, "\n") && !strings.HasSuffix(old, "\n") {
		old += "\n"
	}
	return fail("old_text not found in %s. Possible cause: %s.\nBest match (%.0f%% similar) at line %d:\n%s", path,
		cause, 100*alike, line, diff("old_text", fmt.Sprintf("%s (line %d)", path, line), old, udiff.Lines(old, best)))
}

// closest returns the lines of text that are most like old, as many as old
// has, the number of the first and how much they are like it, from 0 to 1.
func closest(old, text string) (best string, line int, alike float64) {
	lines, wanted := slices.Collect(strings.Lines(text[:min(len(text), maxNear)])), slices.Collect(strings.Lines(old))
	l := newLikeness(3, wanted...)
	size := min(len(wanted), len(lines))
	first := 0
	for i, line := range lines {
		if l.count(line, l.have, 1); i >= size {
			l.count(lines[i-size], l.have, -1)
		}
		if v := l.value(); i >= size-1 && v > alike {
			first, alike = i-size+1, v
		}
	}
	return strings.Join(lines[first:first+size], ""), first + 1, alike
}

// nearest returns the names of at most three of the entries that are much
// like name, the most alike first (D-063).
func nearest(name string, entries []fs.DirEntry) (names []string) {
	alike := map[string]float64{}
	for _, e := range entries {
		l := newLikeness(2, name)
		l.count(e.Name(), l.have, 1)
		if v := l.value(); v >= 0.6 && !e.IsDir() {
			alike[e.Name()] = v
			names = append(names, e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(alike[b], alike[a]) })
	return names[:min(3, len(names))]
}

// A likeness tells how much of some lines, piece by piece of n bytes, is in others.
type likeness struct {
	n, all, both int            // all: pieces of all lines; both: those that are in both
	want, have   map[string]int // how many of each piece
}

func newLikeness(n int, lines ...string) *likeness {
	l := &likeness{n: n, want: map[string]int{}, have: map[string]int{}}
	for _, line := range lines {
		l.count(line, l.want, 1)
	}
	return l
}

// count adds the pieces of a line, whatever its case and indentation, to one
// side, or with by -1 takes them out.
func (l *likeness) count(line string, side map[string]int, by int) {
	line = "\n" + strings.ToLower(strings.TrimSpace(line)) + "\n"
	for i := 0; i+l.n <= len(line); i++ {
		piece := line[i : i+l.n]
		before := min(l.want[piece], l.have[piece])
		side[piece] += by
		l.both += min(l.want[piece], l.have[piece]) - before
		l.all += by
	}
}

func (l *likeness) value() float64 { return 2 * float64(l.both) / float64(max(1, l.all)) }
