package pins

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"
)

// A Change is an item that a server offers and nobody has approved. All texts in it have been made
// visible: see [Visible].
type Change struct {
	Kind   string   `json:"kind"` // Tool, Resource, Template, Prompt or Instructions
	Name   string   `json:"name"`
	What   string   `json:"what"`             // Added, Changed or Renamed
	Was    string   `json:"was,omitempty"`    // of what is renamed, the name that was approved
	Fields []string `json:"fields,omitempty"` // of what is changed, the fields that differ
	Diff   string   `json:"diff"`             // a unified diff
}

// What can have become of an item.
const (
	Added   = "new"
	Changed = "changed"
	Renamed = "renamed" // it is the same as an approved one but for its name
)

// changes returns what waits, sorted by kind and name.
func (r *record) changes() (all []Change) {
	for _, key := range slices.Sorted(maps.Keys(r.Waiting)) {
		all = append(all, r.change(key))
	}
	return all
}

func (r *record) change(key string) Change {
	kind, name, _ := strings.Cut(key, " ")
	c := Change{Kind: kind, Name: VisibleName(name), What: Added}
	now := r.Waiting[key]
	before, known := r.Approved[key]
	if known {
		c.What = Changed
		c.Fields = differing(before, now)
	} else if was := r.sameBut(kind, now); was != "" {
		c.What = Renamed
		c.Was = VisibleName(was)
		before = r.Approved[keyOf(kind, was)]
	}
	c.Diff = udiff.Unified("approved", "now", readable(before), readable(now))
	return c
}

// VisibleName returns a name as one line of text that nobody takes for another: of two letters that
// look the same, the one that is not ASCII is shown by its number.
func VisibleName(name string) string {
	const most = 100 // characters
	var b strings.Builder
	for i, r := range []rune(strings.ToValidUTF8(name, "\ufffd")) {
		switch {
		case i == most:
			b.WriteString("…")
			return b.String()
		case r < utf8.RuneSelf && unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

// fieldsOf returns the fields of an item.
func fieldsOf(text string) (fields map[string]any) {
	_ = json.Unmarshal([]byte(text), &fields) // "" has none, and anything else was written by canonical
	return fields
}

// differing returns the fields in which two items differ, sorted.
func differing(before, now string) (names []string) {
	was, is := fieldsOf(before), fieldsOf(now)
	for name := range is {
		if !reflect.DeepEqual(was[name], is[name]) {
			names = append(names, name)
		}
	}
	for name := range was {
		if _, stays := is[name]; !stays {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// sameBut returns the name of the approved item that is the same as text but for the name; "" if there
// is none.
func (r *record) sameBut(kind, text string) string {
	is := fieldsOf(text)
	delete(is, "name")
	for _, key := range slices.Sorted(maps.Keys(r.Approved)) {
		other, name, _ := strings.Cut(key, " ")
		if other != kind || kind == Instructions {
			continue
		}
		was := fieldsOf(r.Approved[key])
		delete(was, "name")
		if reflect.DeepEqual(was, is) {
			return name
		}
	}
	return ""
}

// firstFields are shown before the others, in this order.
var firstFields = []string{"name", "title", "description", "text"}

// readable returns an item, or what the config says about a server, as lines that people can compare.
func readable(text string) string {
	fields := fieldsOf(text)
	names := slices.Sorted(maps.Keys(fields))
	rank := func(name string) int {
		if i := slices.Index(firstFields, name); i >= 0 {
			return i
		}
		return len(firstFields)
	}
	slices.SortStableFunc(names, func(a, b string) int { return rank(a) - rank(b) })
	var b strings.Builder
	for _, name := range names {
		value, isText := fields[name].(string)
		if !isText {
			value = indented(fields[name])
		}
		if name == "name" {
			value = VisibleName(value)
		}
		writeField(&b, name, value)
	}
	return b.String()
}

// indented returns JSON for people: texts are as they are.
func indented(value any) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(value) // it was decoded from JSON
	return strings.TrimSpace(b.String())
}

// maxLine is how long a line of a difference may be, in characters: what is beyond the edge of a
// screen is not read.
const maxLine = 100

// writeField writes a field with each line of its value below it.
func writeField(b *strings.Builder, name, value string) {
	value = Visible(value)
	if !strings.Contains(value, "\n") && utf8.RuneCountInString(value) <= maxLine {
		fmt.Fprintf(b, "%s: %s\n", name, value)
		return
	}
	fmt.Fprintf(b, "%s:\n", name)
	for line := range strings.SplitSeq(strings.TrimSuffix(value, "\n"), "\n") {
		for {
			part, rest := cutLine(line)
			fmt.Fprintf(b, "  %s\n", part)
			if rest == "" {
				break
			}
			line = rest
		}
	}
}

// cutLine cuts a line that is too long, between two words if there are any.
func cutLine(line string) (part, rest string) {
	count, space := 0, 0
	for i, r := range line {
		if count == maxLine {
			if space > 0 {
				i = space
			}
			return line[:i], line[i:]
		}
		if r == ' ' && strings.TrimSpace(line[:i]) != "" {
			space = i + 1
		}
		count++
	}
	return line, ""
}

// Visible returns text with everything shown that people would not see, such as ⟨U+200B⟩ for a space
// without width: descriptions of tools can carry instructions that only a model reads. Lines stay lines.
func Visible(text string) string {
	var b strings.Builder
	for _, r := range strings.ToValidUTF8(text, "\ufffd") {
		if isVisible(r) {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		}
	}
	return b.String()
}

// blank are characters that count as printable and show nothing.
var blank = []rune{
	0x00ad, 0x034f, 0x115f, 0x1160, 0x17b4, 0x17b5, 0x2800, 0x3164, 0xffa0, 0x1d159,
}

func isVisible(r rune) bool {
	switch {
	case r == '\n', r == ' ':
		return true
	case unicode.Is(unicode.Variation_Selector, r), slices.Contains(blank, r):
		return false
	}
	return unicode.IsPrint(r) // not: control and format characters, other spaces, private use
}
