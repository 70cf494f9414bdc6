package tools

import (
	"strings"

	"parley/chat"
	"parley/tools/arguments"
	"parley/tools/untrusted"
)

// wanted reports whether the person's own words in this turn ask for exactly this
// call (R-S12): every text and number in its arguments occurs in what an owner
// typed, literally except for case and white space. Defaults and empty optional
// arguments need not occur. An empty required text never counts as asked for,
// because writing nothing into a file destroys it, and neither does a call without
// any text.
func (t Tool) wanted(c Call) bool {
	if c.From.Role != chat.Owner {
		return false
	}
	typed := untrusted.NewTyped(c.Typed)
	texts := 0
	for name, v := range c.Input {
		for _, s := range TextsOf(v) {
			switch empty := strings.TrimSpace(s) == ""; {
			case t.args.IsDefault(name, v), empty && !t.args.Requires(name):
				continue
			case !typed.Contains(s):
				return false
			}
			if !t.args.ListsValues(name) { // a value such as "remove" does not say what to remove
				texts++
			}
		}
	}
	return texts > 0
}

// TextsOf returns the texts and numbers in an argument, including the names in
// objects.
func TextsOf(v any) (all []string) {
	switch v := v.(type) {
	case nil, bool:
		return nil
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			all = append(all, TextsOf(e)...)
		}
	case map[string]any:
		for name, e := range v {
			all = append(append(all, name), TextsOf(e)...)
		}
	default: // a number, which may be the ID of a chat
		return []string{arguments.JSON(v)}
	}
	return all
}
