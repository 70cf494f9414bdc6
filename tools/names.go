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

// unknown tells the model that there is no tool of c's name, and which there
// are for who asked (D-020).
func (k *Kit) unknown(c Call) string {
	var names []string
	for _, s := range k.specs {
		if k.tools[s.Name].may(c.From) {
			names = append(names, s.Name)
		}
	}
	return fmt.Sprintf("Tool '%s' not found. Available: %s", c.Name, strings.Join(names, ", "))
}
