package tools

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"parley/chat"
	"parley/tools/untrusted"
)

// wanted reports whether the person's own words of this turn ask for just this
// call (R-S12): every text and number in its arguments stands in what an owner
// typed, word for word, whatever its case and white space. What an argument is
// without being given needs not, nor an optional one that is empty; but an empty
// text that the tool needs is not asked for by words: to write nothing into a file
// destroys it. What has no text at all is not asked for by words either.
func (t Tool) wanted(c Call) bool {
	if c.From.Role != chat.Owner {
		return false
	}
	typed := untrusted.NewTyped(c.Typed)
	texts := 0
	for name, v := range c.Input {
		for _, s := range TextsOf(v) {
			switch empty := strings.TrimSpace(s) == ""; {
			case t.isDefault(name, v), empty && !t.needs(name):
				continue
			case !typed.Contains(s):
				return false
			}
			if !t.listsValues(name) { // "remove" alone names nothing
				texts++
			}
		}
	}
	return texts > 0
}

// property returns the schema of an argument, nil if there is none.
func (t Tool) property(name string) *jsonschema.Schema {
	if t.shape == nil || t.shape.schema == nil {
		return nil
	}
	return t.shape.schema.Properties[name]
}

// listsValues reports whether the schema lists the values of an argument.
func (t Tool) listsValues(name string) bool {
	p := t.property(name)
	return p != nil && len(p.Enum) > 0
}

// isDefault reports whether v is what an argument is without being given.
func (t Tool) isDefault(name string, v any) bool {
	p := t.property(name)
	return p != nil && len(p.Default) > 0 && string(p.Default) == text(v)
}

// needs reports whether a call must give an argument.
func (t Tool) needs(name string) bool {
	return t.shape != nil && t.shape.schema != nil && slices.Contains(t.shape.schema.Required, name)
}

// TextsOf returns the texts and numbers in an argument, also the names in objects.
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
	default: // a number may name a chat
		return []string{text(v)}
	}
	return all
}
