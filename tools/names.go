package tools

import (
	"fmt"
	"strings"
	"unicode"
)

// repair returns the name of the one tool that name must mean: the same
// letters and digits, whatever the case, the punctuation and what models and
// their servers put around it, as in "functions.ReadFile:0" or "read_file<|channel|>".
func (k *Kit) repair(name string) (string, bool) {
	name, _, _ = strings.Cut(name, "<")
	if i := strings.LastIndexByte(name, ':'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	name = letters(name[strings.LastIndexAny(name, "./:")+1:])
	found := ""
	for _, s := range k.specs {
		if name != "" && letters(s.Name) == name {
			if found != "" {
				return "", false
			}
			found = s.Name
		}
	}
	return found, found != ""
}

// letters reduces s to its letters and digits in lower case.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// unknown tells the model that there is no tool called name (D-020).
func (k *Kit) unknown(name string) string {
	names := make([]string, len(k.specs))
	for i, s := range k.specs {
		names[i] = s.Name
	}
	text := fmt.Sprintf("Tool '%s' not found. Available: %s", name, strings.Join(names, ", "))
	if near := nearest(name, names); near != "" {
		text += fmt.Sprintf(". Did you mean '%s'? Tool names must match exactly.", near)
	}
	return text
}

// nearest returns the name that is fewest edits away from what was asked for,
// or "" when none is near.
func nearest(asked string, names []string) string {
	best, least := "", 0
	for _, n := range names {
		a, b := letters(asked), letters(n)
		if d := edits(a, b); 3*d <= max(len(a), len(b)) && (best == "" || d < least) {
			best, least = n, d
		}
	}
	return best
}

// edits counts the letters to insert, delete or change to make b of a.
func edits(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
