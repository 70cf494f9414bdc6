package policy

import (
	"cmp"
	"maps"
	"slices"

	"parley/tools"
)

// Custom is the category of the tools that the owner wrote (B-015).
const Custom = "custom"

// UIBlockKeys lists the keys of Config.UIBlocks: what the chat page hides.
func UIBlockKeys() []string { return []string{"block_delete", "block_steps", "block_upload"} }

// rules is what a policy says for one turn.
type rules struct {
	config   Config
	assigned map[string][]string // categories to which a tool was moved, by its name
	chosen   map[string]bool     // what people chose for themselves, by category
	damaged  bool                // a part of the policy cannot be read
}

// assign sets r.assigned.
func (r *rules) assign() {
	r.assigned = map[string][]string{}
	for _, category := range slices.Sorted(maps.Keys(r.config.CategoryOverrides)) {
		for _, tool := range r.config.CategoryOverrides[category].Tools {
			r.assigned[tool] = append(r.assigned[tool], category)
		}
	}
}

// state reports whether a category is on, and whether the policy forces that.
func (r rules) state(category string) (on, forced bool) {
	if r.damaged || slices.Contains(r.config.RemoveCategories, category) {
		return false, true
	}
	if state := r.config.ForcedCategoryStates[category]; state != nil {
		return *state, true
	}
	if on, known := r.chosen[category]; known {
		return on, false
	}
	byDefault := r.config.CategoryOverrides[category].DefaultEnabled
	return byDefault == nil || *byDefault, false
}

// categories returns the categories of the tool called name, whose own one is kind.
func (r rules) categories(name, kind string) []string {
	if moved := r.assigned[name]; len(moved) > 0 {
		return moved
	}
	return []string{kind}
}

// A member is a tool as categories have it: its name and its own category.
type member struct{ name, kind string }

// membersOf returns what a policy may switch off to keep t from being offered: t and, if it is an alias, its
// tool. kinds has the own categories of tools by name.
func membersOf(t *tools.Tool, kinds map[string]string) []member {
	itself := member{t.Name, t.Kind()}
	if t.AliasOf == "" {
		return []member{itself}
	}
	return []member{itself, {t.AliasOf, cmp.Or(kinds[t.AliasOf], t.Kind())}}
}

// off returns the category that keeps what all are of from being offered, or "".
func (r rules) off(all []member) string {
	for _, m := range all {
		for _, category := range r.categories(m.name, m.kind) {
			if on, _ := r.state(category); !on {
				return category
			}
		}
	}
	return ""
}

// silent reports whether the model is not told that a category is off.
func (r rules) silent(category string) bool {
	if slices.Contains(r.config.RemoveCategories, category) {
		return true
	}
	silent := r.config.CategoryOverrides[category].SilentWhenDisabled
	return silent != nil && *silent
}

// label returns the name of a category for people.
func (r rules) label(category string) string {
	if label := r.config.CategoryOverrides[category].Label; label != nil {
		return *label
	}
	if category == Custom {
		return "Custom tools"
	}
	return category
}

// ownKinds returns the categories of all by the names of the tools.
func ownKinds(all []tools.Tool) map[string]string {
	kinds := make(map[string]string, len(all))
	for i := range all {
		kinds[all[i].Name] = all[i].Kind()
	}
	return kinds
}
