package tools

import (
	"fmt"
	"strings"
	"unicode"
)

// repair returns the name of the one tool that name must mean: the same
// letters and digits, whatever the case, the punctuation and what models and
// their servers put around it, as in "functions.ReadFile:0" or "read_file<|channel|>".
// It returns "" if there is none, or several.
func (k *Kit) repair(name string) (found string) {
	name, _, _ = strings.Cut(name, "<")
	if i := strings.LastIndexByte(name, ':'); i >= 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i]
	}
	name = letters(name[strings.LastIndexAny(name, "./:")+1:])
	for _, t := range k.all {
		if name != "" && t.listed() && letters(t.Name) == name {
			if found != "" {
				return ""
			}
			found = t.Name
		}
	}
	return found
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
