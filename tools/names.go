package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"parley/chat"
)

// Canonical returns the listed name of the tool in all that name refers to: by its
// own name, by an alias, or by a misspelling that repair accepts. It returns "" if
// no tool matches, or several do.
func Canonical(all []Tool, name string) string {
	if i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return all[i].canonical()
	}
	return repair(all, name).canonical()
}

// canonical returns the name for t in lists, statistics and caches.
func (t Tool) canonical() string { return cmp.Or(t.AliasOf, t.Name) }

// repair returns the only tool that name can mean: its letters and digits are the
// same, without regard to case, punctuation and what models and their servers put
// around names, as in "functions.ReadFile:0" or "read_file<|channel|>". Hidden
// tools do not match. It returns the zero Tool if no tool matches, or several do.
func repair(all []Tool, name string) (found Tool) {
	name, _, _ = strings.Cut(name, "<")
	if i := strings.LastIndexByte(name, ':'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	name = Letters(name[strings.LastIndexAny(name, "./:")+1:])
	for _, t := range all {
		if name == "" || t.Hidden || Letters(t.Name) != name {
			continue
		}
		switch {
		case found.Name == "", found.canonical() == t.Name: // a tool itself goes before its aliases
			found = t
		case found.canonical() != t.canonical():
			return Tool{}
		}
	}
	return found
}

// Letters returns the letters and digits of s in lower case.
func Letters(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}

// How many names an unknown one is answered with.
const (
	maxAvailable = 100
	maxSimilar   = 3
)

// unknown tells the model that no tool has the name of c, and lists those that
// this person may use (D-020).
func (k *Kit) unknown(c Call) string {
	var names []string
	for _, t := range k.all {
		if t.listed() && t.May(c.From) {
			names = append(names, t.Name)
		}
	}
	shown := names[:min(len(names), maxAvailable)]
	similar := k.similar(c, shown)
	if more := len(names) - len(shown); more > 0 {
		names = append(shown, fmt.Sprintf("and %d more", more))
	}
	text := fmt.Sprintf("Tool '%s' not found. Available: %s", c.Name, strings.Join(names, ", "))
	if len(similar) > 0 {
		text += ". Did you mean '" + strings.Join(similar, "', or '") + "'?"
	}
	return text
}

// similar returns the names that the unknown one of c resembles most, of tools that this person may use
// and that are not in shown.
func (k *Kit) similar(c Call, shown []string) (names []string) {
	wanted := Letters(chat.Clip(c.Name, 2*maxShownName, ""))
	if len(wanted) < 3 {
		return nil
	}
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, t := range k.all {
		if t.AliasOf != "" || t.Hidden || !t.May(c.From) || slices.Contains(shown, t.Name) {
			continue
		}
		name := Letters(t.Name)
		distance := EditDistance(wanted, name)
		if strings.Contains(name, wanted) || strings.Contains(wanted, name) {
			distance = 0
		}
		if distance <= 1+len(wanted)/5 {
			found = append(found, candidate{t.Name, distance})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	for _, f := range found[:min(len(found), maxSimilar)] {
		names = append(names, f.name)
	}
	return names
}

// maxShownName is how long the name of a tool may be for model providers.
const maxShownName = 64

// EditDistance returns how many bytes must be inserted, removed or replaced to make b of a.
func EditDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j]+1, row[j+1]+1, diagonal+cost)
			diagonal = row[j+1]
			row[j+1] = next
		}
	}
	return row[len(b)]
}
