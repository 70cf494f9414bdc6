package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
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

// unknown tells the model that no tool has the name of c, and lists those that
// this person may use (D-020).
func (k *Kit) unknown(c Call) string {
	var names []string
	for _, t := range k.all {
		if t.listed() && t.may(c.From) {
			names = append(names, t.Name)
		}
	}
	return fmt.Sprintf("Tool '%s' not found. Available: %s", c.Name, strings.Join(names, ", "))
}
