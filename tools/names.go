package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Canonical returns the name under which models are told of the tool that name
// means, of those in all: its own name, an alias, or either misspelt as repair
// allows. It returns "" if there is none, or several.
func Canonical(all []Tool, name string) string {
	if i := slices.IndexFunc(all, func(t Tool) bool { return t.Name == name }); i >= 0 {
		return all[i].canonical()
	}
	return repair(all, name).canonical()
}

// canonical returns the name that stands for t in lists, statistics and caches.
func (t Tool) canonical() string { return cmp.Or(t.AliasOf, t.Name) }

// repair returns the one tool that name must mean: the same letters and digits,
// whatever the case, the punctuation and what models and their servers put around
// it, as in "functions.ReadFile:0" or "read_file<|channel|>". Hidden tools are
// not guessed. It returns the zero Tool if there is none, or several.
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

// unknown tells the model that there is no tool of c's name, and which there
// are for who asked (D-020).
func (k *Kit) unknown(c Call) string {
	var names []string
	for _, t := range k.all {
		if t.listed() && t.may(c.From) {
			names = append(names, t.Name)
		}
	}
	return fmt.Sprintf("Tool '%s' not found. Available: %s", c.Name, strings.Join(names, ", "))
}
