package files

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"parley/tools"
)

const (
	maxDiff     = 40      // lines of a diff that a model is shown (D-066)
	maxDiffLine = 300     // characters of one
	maxNear     = 4 << 20 // bytes of a file in which something similar is looked for
)

// compact returns a diff that is not too long.
func compact(diff string) string {
	lines := strings.Split(strings.TrimSuffix(diff, "\n"), "\n")
	if n := len(lines) - maxDiff + 1; n > 1 {
		lines = append(lines[:maxDiff-1], fmt.Sprintf("... (%d more lines)", n))
	}
	for i, line := range lines {
		line = strings.TrimSuffix(line, "\r")
		if r := []rune(line); len(r) > maxDiffLine {
			line = string(r[:maxDiffLine]) + "…"
		}
		lines[i] = line
	}
	return strings.Join(lines, "\n")
}

// notFound says that old is not in text, and what is there that is most like it (D-062).
func notFound(path, old, text string) *tools.Result {
	best, line, alike := closest(old, text)
	if alike <= 0.5 {
		return fail("old_text not found in %s. No similar text found. Verify the file content.", path)
	}
	if strings.HasSuffix(best, "\n") && !strings.HasSuffix(old, "\n") {
		old += "\n"
	}
	diff, err := udiff.ToUnified("old_text", fmt.Sprintf("%s (line %d)", path, line), old, udiff.Lines(old, best), 3)
	if err != nil {
		return fail("%v", err)
	}
	return fail("old_text not found in %s. Possible cause: %s.\nBest match (%.0f%% similar) at line %d:\n%s",
		path, cause(old, best), 100*alike, line, compact(diff))
}

// cause says in what way old is not what is there.
func cause(old, best string) string {
	bare := func(s string) string { return strings.Join(strings.Fields(straight(s)), " ") }
	switch a, b := bare(old), bare(best); {
	case a == b:
		return "whitespace differs"
	case strings.EqualFold(a, b):
		return "letter case differs"
	}
	return "old_text is not what the file holds now"
}

// closest returns the lines of text that are most like old, as many as old
// has, the number of the first and how much they are like it, from 0 to 1.
func closest(old, text string) (best string, line int, alike float64) {
	lines := slices.Collect(strings.Lines(text[:min(len(text), maxNear)]))
	l, size, first := likeness{n: 3}, 0, 0
	for line := range strings.Lines(old) {
		l.expect(line)
		size++
	}
	size = min(size, len(lines))
	for i, line := range lines {
		if l.add(line, 1); i >= size {
			l.add(lines[i-size], -1)
		}
		if v := l.value(); i >= size-1 && v > alike {
			first, alike = i-size+1, v
		}
	}
	return strings.Join(lines[first:first+size], ""), first + 1, alike
}

// nearest returns the names of at most three of the entries that are much
// like name, the most alike first.
func nearest(name string, entries []fs.DirEntry) (names []string) {
	alike := map[string]float64{}
	for _, e := range entries {
		l := likeness{n: 2}
		l.expect(name)
		l.add(e.Name(), 1)
		if v := l.value(); v >= 0.6 && !e.IsDir() {
			alike[e.Name()] = v
			names = append(names, e.Name())
		}
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(alike[b], alike[a]) })
	return names[:min(3, len(names))]
}

// A likeness tells how much of one text, piece by piece of n bytes, is in another.
type likeness struct {
	n          int
	want, have map[string]int // have: only what is wanted
	all, both  int            // pieces of the two texts, and those that they share
}

// pieces calls do for the pieces of a line, whatever its case and indentation.
func (l *likeness) pieces(s string, do func(piece string)) {
	s = "\n" + strings.ToLower(strings.TrimSpace(s)) + "\n"
	for i := 0; i+l.n <= len(s); i++ {
		do(s[i : i+l.n])
		l.all++
	}
}

// expect adds to the text that is looked for.
func (l *likeness) expect(s string) {
	if l.want == nil {
		l.want, l.have = map[string]int{}, map[string]int{}
	}
	l.pieces(s, func(p string) { l.want[p]++ })
}

// add puts s into the other text, or with by -1 takes it out.
func (l *likeness) add(s string, by int) {
	before := l.all
	l.pieces(s, func(p string) {
		if n := l.want[p]; n > 0 {
			l.both -= min(n, l.have[p])
			l.have[p] += by
			l.both += min(n, l.have[p])
		}
	})
	if by < 0 {
		l.all = 2*before - l.all
	}
}

// value returns how much the texts share, from 0 to 1.
func (l *likeness) value() float64 { return 2 * float64(l.both) / float64(max(1, l.all)) }
