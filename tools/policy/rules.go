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

// off returns the category that keeps t from being offered, or "". For an alias, that may be
// one of the tool that it stands for, whose own category is in aliased by the name of the alias.
func (r rules) off(t *tools.Tool, aliased map[string]string) string {
	category := r.offNamed(t.Name, t.Kind())
	if category != "" || t.AliasOf == "" {
		return category
	}
	return r.offNamed(t.AliasOf, cmp.Or(aliased[t.Name], t.Kind()))
}

// offNamed returns the category that keeps the tool called name, whose own one is kind, from
// being offered, or "".
func (r rules) offNamed(name, kind string) string {
	if len(r.assigned[name]) == 0 { // most are
		if on, _ := r.state(kind); !on {
			return kind
		}
		return ""
	}
	for _, category := range r.assigned[name] {
		if on, _ := r.state(category); !on {
			return category
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
