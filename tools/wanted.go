package tools

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"parley/chat"
)

// wanted reports whether the person's own words of this turn ask for just this
// call (R-S12): every text and number in its arguments stands in what an owner
// typed, word for word, whatever its case and white space. A text whose values the
// schema lists needs not. What has no text at all is not asked for by words.
func (t Tool) wanted(c Call) bool {
	if c.From.Role != chat.Owner {
		return false
	}
	typed := make([]string, len(c.Typed))
	for i, s := range c.Typed {
		typed[i] = flatten(unquoted(s))
	}
	texts := 0
	for name, v := range c.Input {
		for _, s := range TextsOf(v) {
			if s = flatten(s); s == "" || t.listedValue(name) {
				continue
			}
			if texts++; !standsIn(typed, s) {
				return false
			}
		}
	}
	return texts > 0
}

// listedValue says whether the schema lists the values of an argument.
func (t Tool) listedValue(name string) bool {
	if t.shape == nil || t.shape.schema == nil || t.shape.schema.Properties[name] == nil {
		return false
	}
	return len(t.shape.schema.Properties[name].Enum) > 0
}

// unquoted returns text without the lines that quote others.
func unquoted(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), ">") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// flatten returns text in lower case, with one space for any white space.
func flatten(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

// standsIn says whether s, which is not empty, is in one of all as whole words.
func standsIn(all []string, s string) bool {
	for _, text := range all {
		for from := 0; ; {
			i := strings.Index(text[from:], s)
			if i < 0 {
				break
			}
			i += from
			before, _ := utf8.DecodeLastRuneInString(text[:i])
			after, _ := utf8.DecodeRuneInString(text[i+len(s):])
			first, size := utf8.DecodeRuneInString(s)
			last, _ := utf8.DecodeLastRuneInString(s)
			if !(isWord(before) && isWord(first)) && !(isWord(last) && isWord(after)) {
				return true
			}
			from = i + size
		}
	}
	return false
}

// isWord says whether r is of a word in a script that puts spaces between words.
func isWord(r rune) bool {
	return r == '_' || unicode.IsDigit(r) || unicode.IsLetter(r) && !isDense(r)
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
