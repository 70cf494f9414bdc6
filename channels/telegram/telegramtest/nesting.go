package telegramtest

import (
	"cmp"
	"slices"
	"strings"
)

// isExclusive reports whether e may be within others but contains none of its kind.
func isExclusive(e Entity) bool {
	return slices.Contains([]string{"code", "pre", "text_link", "custom_emoji"}, e.Type)
}

func isQuote(e Entity) bool { return strings.HasSuffix(e.Type, "blockquote") }

// dropForbidden drops what may not be nested: quotes in quotes, links and code in one
// another, a style in the same style, and every style where there is code.
func dropForbidden(found []Entity) []Entity {
	sortEntities(found)
	var kept []Entity
	for _, e := range found {
		if e.Type == "code" {
			e.Language = ""
		}
		if !slices.ContainsFunc(kept, func(o Entity) bool { return e.Offset < o.end() && conflicts(e, o) }) {
			kept = append(kept, e)
		}
	}
	var all []Entity
	for _, e := range kept {
		if isExclusive(e) || isQuote(e) {
			all = append(all, e)
			continue
		}
		for _, o := range kept {
			if (o.Type == "code" || o.Type == "pre") && o.Offset < e.end() && o.end() > e.Offset {
				if o.Offset > e.Offset {
					before := e
					before.Length = o.Offset - e.Offset
					all = append(all, before)
				}
				rest := max(e.end()-o.end(), 0)
				e.Offset, e.Length = o.end(), rest
			}
		}
		if e.Length > 0 {
			all = append(all, e)
		}
	}
	sortEntities(all)
	return all
}

// conflicts reports whether e may not be within o.
func conflicts(e, o Entity) bool {
	if isQuote(e) {
		return e.Type == o.Type || isQuote(o) || isExclusive(o)
	}
	return e.Type == o.Type || isExclusive(e) && isExclusive(o)
}

// sortEntities puts those that begin earlier, of these the longer, and of
// equals the quote, then code, then the link first.
func sortEntities(es []Entity) {
	rank := func(e Entity) int {
		first := []string{"blockquote", "expandable_blockquote", "pre", "code", "text_link", "custom_emoji"}
		return (slices.Index(first, e.Type) + 9) % 9 // others last
	}
	slices.SortStableFunc(es, func(a, b Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length), cmp.Compare(rank(a), rank(b)))
	})
}

func isSpace(u uint16) bool { return u == ' ' || u == '\n' }

// trimEntities moves the beginnings of entities over space, and drops those of nothing else.
func trimEntities(text []uint16, entities []Entity) []Entity {
	for i := range entities {
		e := &entities[i]
		for e.Length > 0 && isSpace(text[e.Offset]) {
			e.Offset, e.Length = e.Offset+1, e.Length-1
		}
	}
	entities = slices.DeleteFunc(entities, func(e Entity) bool { return e.Length == 0 })
	sortEntities(entities)
	return entities
}

// trimText takes the space around text away.
func trimText(text []uint16, entities []Entity) ([]uint16, []Entity) {
	for len(text) > 0 && isSpace(text[len(text)-1]) {
		text = text[:len(text)-1]
	}
	left := 0
	for left < len(text) && isSpace(text[left]) {
		left++
	}
	for i := range entities {
		e := &entities[i]
		e.Length = min(e.end(), len(text)) - e.Offset
		e.Offset -= left
	}
	return text[left:], entities
}
