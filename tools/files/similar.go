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
	maxDiff     = 40      // lines of a diff (D-066)
	maxDiffLine = 300     // characters of a line of a diff
	maxNear     = 4 << 20 // bytes of a file that are searched for similar text
)

// diff returns a unified diff of the edits to text, cut if it is too long.
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

// notFound says that old does not occur in text, and shows the most similar text (D-062).
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

// misindented says that old occurs in text only with another indentation (D-061).
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

// unlike shows how old differs from best, the text in the file that begins at line.
func unlike(path, cause, old, best string, line int, alike float64) error {
	if strings.HasSuffix(best, "\n") && !strings.HasSuffix(old, "\n") {
		old += "\n"
	}
	return fail("old_text not found in %s. Possible cause: %s.\nBest match (%.0f%% similar) at line %d:\n%s", path,
		cause, 100*alike, line, diff("old_text", fmt.Sprintf("%s (line %d)", path, line), old, udiff.Lines(old, best)))
}

// closest returns the lines of text that are most similar to old, as many as old has,
// the number of the first, and their similarity, from 0 to 1.
func closest(old, text string) (best string, line int, alike float64) {
	lines := slices.Collect(strings.Lines(text[:min(len(text), maxNear)]))
	wanted := slices.Collect(strings.Lines(old))
	l := newLikeness(3, wanted...)
	size := min(len(wanted), len(lines))
	first := 0
	for i, line := range lines {
		if l.count(line, l.have, 1); i >= size {
			l.count(lines[i-size], l.have, -1)
		}
		if v := l.value(); i >= size-1 && v > alike {
			first = i - size + 1
			alike = v
		}
	}
	return strings.Join(lines[first:first+size], ""), first + 1, alike
}

// nearest returns the names of at most three entries that are similar to name, the
// most similar first (D-063).
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

// A likeness measures how similar two texts are: it counts the pieces of n bytes that
// both have.
type likeness struct {
	n    int            // bytes of a piece
	all  int            // pieces in both texts together
	both int            // pieces that the texts have in common
	want map[string]int // number of occurrences of each piece in the wanted text
	have map[string]int // the same in the text that it is compared with
}

func newLikeness(n int, lines ...string) *likeness {
	l := &likeness{n: n, want: map[string]int{}, have: map[string]int{}}
	for _, line := range lines {
		l.count(line, l.want, 1)
	}
	return l
}

// count adds the pieces of a line to one side, or removes them if by is -1. It ignores
// letter case and indentation.
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

// value returns the similarity, from 0 to 1.
func (l *likeness) value() float64 { return 2 * float64(l.both) / float64(max(1, l.all)) }
