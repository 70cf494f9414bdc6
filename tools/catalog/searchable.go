package catalog

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"unicode"

	"parley/search"
	"parley/tools"
)

const (
	// maxKept is how many lists of tools are kept ready to be searched. People with the same rights
	// have the same list.
	maxKept = 4

	// nameWeight is how often a tool's name counts among its words.
	nameWeight = 3

	maxDepth = 4 // of arguments within arguments whose names are searched
)

// A searchable is a list of tools, ready to be searched. It has what models read of them, and nothing that
// belongs to a turn.
type searchable struct {
	known []entry
	words search.Index
}

// An entry is what is searched of a tool.
type entry struct {
	name, display, description string
	schema                     []byte
}

// isOf reports whether e is what is searched of t.
func (e entry) isOf(t tools.Tool) bool {
	return e.name == t.Name && e.display == t.Display && e.description == t.Description &&
		bytes.Equal(e.schema, t.Schema)
}

// searchableOf returns the searchable of offered.
func (c *Catalog) searchableOf(offered []tools.Tool) *searchable {
	c.mu.Lock()
	defer c.mu.Unlock()
	isSame := func(s *searchable) bool { return slices.EqualFunc(s.known, offered, entry.isOf) }
	i := slices.IndexFunc(c.kept, isSame)
	if i < 0 {
		i = len(c.kept)
		c.kept = append(c.kept, newSearchable(offered))
	}
	found := c.kept[i]
	c.kept = slices.Insert(slices.Delete(c.kept, i, i+1), 0, found)
	c.kept = c.kept[:min(len(c.kept), maxKept)]
	return found
}

func newSearchable(offered []tools.Tool) *searchable {
	s := &searchable{}
	for _, t := range offered {
		s.known = append(s.known, entry{t.Name, t.Display, t.Description, t.Schema})
		var schema any
		_ = json.Unmarshal(t.Schema, &schema) // the arguments of one that cannot be read are not searched
		parts := append(
			slices.Repeat([]string{shortName(&t)}, nameWeight),
			strings.TrimPrefix(t.Category, prefix), t.Display, t.Description,
		)
		s.words.Add(normalize(strings.Join(append(parts, argumentNames(schema, maxDepth)...), " ")))
	}
	return s
}

// argumentNames returns the names of arguments in a schema.
func argumentNames(schema any, depth int) (names []string) {
	if depth == 0 {
		return nil
	}
	switch schema := schema.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			names = append(names, name)
			names = append(names, argumentNames(properties[name], depth-1)...)
		}
		names = append(names, argumentNames(schema["items"], depth-1)...)
	}
	return names
}

// normalize returns the words of text in a form that differs less, so that "createIssues" is found by
// "issue", and "issues" as well.
func normalize(text string) string {
	var b strings.Builder
	for start, end := range search.Words(text) {
		word := text[start:end]
		b.WriteString(singular(search.Fold(word)) + " ")
		if parts := splitCamelCase(word); len(parts) > 1 {
			for _, part := range parts {
				b.WriteString(singular(search.Fold(part)) + " ")
			}
		}
	}
	return b.String()
}

// splitCamelCase splits word before each capital letter that follows a small one.
func splitCamelCase(word string) (parts []string) {
	first := 0
	before := ' '
	for i, r := range word {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			parts = append(parts, word[first:i])
			first = i
		}
		before = r
	}
	return append(parts, word[first:])
}

// singular returns an English word without the ending of its plural.
func singular(word string) string {
	switch {
	case len(word) > 4 && strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case len(word) > 3 && strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss"):
		return strings.TrimSuffix(word, "s")
	}
	return word
}

// search returns those of offered, the tools of the searchable, that are usable and that query finds: first
// those that it names, and then those that have some of its words, the best first.
func (s *searchable) search(query string, offered []tools.Tool, usable func(tools.Tool) bool) (found []tools.Tool) {
	taken := make([]bool, len(offered))
	take := func(i int) {
		if !taken[i] && usable(offered[i]) {
			taken[i] = true
			found = append(found, offered[i])
		}
	}
	whole := tools.Letters(query)
	named := map[string]bool{whole: true}
	isBetween := func(r rune) bool { return unicode.IsSpace(r) || r == ',' || r == '`' }
	for _, word := range strings.FieldsFunc(query, isBetween) {
		named[tools.Letters(word)] = true
	}
	for i, t := range offered {
		if named[tools.Letters(t.Name)] {
			take(i)
		}
	}
	for i, t := range offered {
		if tools.Letters(shortName(&t)) == whole {
			take(i)
		}
	}
	for _, m := range search.Best(search.Terms(normalize(query)), len(offered), &s.words) {
		take(m.Text)
	}
	return found
}
