// Package policy lets the owner switch categories of tools off, force them on, and
// move tools between categories, for everybody or for some (B-070 to B-074).
//
// The config comes first: a policy only takes away what config and tools allow. It
// gives nobody a tool that tools.rules, or the tool itself, keeps from them (B-017).
package policy

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"

	"parley/chat"
)

// A TargetType is the kind of people or places that a Config is for.
type TargetType string

// The types of targets.
const (
	Global TargetType = "global"
	Role   TargetType = "role"
	// Invite is an invitation to the web page, by the name of the person who was
	// invited. It covers all that they do through it: the page and their API keys.
	Invite  TargetType = "invite"
	User    TargetType = "user"    // a person, such as "telegram:42" or "owner", or a group, such as "telegram:-100"
	Channel TargetType = "channel" // a network, such as "discord" or "telegram:label"
)

// order lists the types in the order in which their Configs are merged (B-072). The
// channel comes last, so that what is off in a place is off for whoever is there.
var order = []TargetType{Global, Role, Invite, User, Channel}

// A Target is whom a Config is for. Value is "" if Type is Global.
type Target struct {
	Type  TargetType `json:"target_type"`
	Value string     `json:"target_value"`
}

// key returns the key under which the Config for t is stored.
func (t Target) key() string {
	if t.Type == Global {
		return string(Global)
	}
	return string(t.Type) + "/" + t.Value
}

// targetOf is the inverse of key.
func targetOf(key string) Target {
	kind, value, _ := strings.Cut(key, "/")
	return Target{TargetType(kind), value}
}

// String returns t for people.
func (t Target) String() string { return strings.TrimSpace(string(t.Type) + " " + t.Value) }

// A UserError is an error of whoever asked for a change. Its text is for them.
type UserError struct{ Text string }

func (e UserError) Error() string { return e.Text }

func userErrorf(format string, args ...any) error { return UserError{fmt.Sprintf(format, args...)} }

// ErrConflict means that somebody else has changed a Config since it was read.
var ErrConflict = errors.New("somebody else changed this policy")

const (
	maxName    = 128 // bytes of a value, category, tool or model
	maxEntries = 500 // of a list or map
)

// check returns t in its canonical form, or a UserError.
func (t Target) check() (Target, error) {
	t.Value = strings.TrimSpace(t.Value)
	switch {
	case !slices.Contains(order, t.Type):
		return t, UserError{"invalid target_type"}
	case t.Type == Global:
		return Target{Type: Global}, nil
	case t.Type == Role && t.Value == "admin":
		t.Value = string(chat.Owner)
	case t.Type == Role && t.Value != string(chat.Owner) && t.Value != string(chat.User):
		return t, UserError{`invalid target_value: a role is "owner" or "user"`}
	}
	if err := checkName("target_value", t.Value); err != nil {
		return t, err
	}
	return t, nil
}

// checkName returns a UserError unless name can be a name.
func checkName(what, name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return userErrorf("%s is empty", what)
	case len(name) > maxName:
		return userErrorf("%s is longer than %d bytes", what, maxName)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }):
		return userErrorf("%s contains a character that cannot be shown", what)
	}
	return nil
}

// A Config is what a policy says for one Target (B-071). What it does not mention
// stays as the Targets before it say.
type Config struct {
	CategoryOverrides map[string]Override `json:"category_overrides"`
	RemoveCategories  []string            `json:"remove_categories"`
	// ForcedCategoryStates says which categories are on or off. nil lifts what an
	// earlier Target forced.
	ForcedCategoryStates map[string]*bool `json:"forced_category_states"`
	DisabledModels       []string         `json:"disabled_models"`
	UIBlocks             map[string]bool  `json:"ui_blocks"`
	UpdatedAt            time.Time        `json:"updated_at,omitzero"`
}

// An Override changes a category, or adds one. What is nil stays as it is.
type Override struct {
	Label *string `json:"label,omitempty"`
	// Tools are moved to the category. Its other tools stay in it, so that no tool is
	// ever out of reach of all switches.
	Tools              []string `json:"tools,omitempty"`
	DefaultEnabled     *bool    `json:"default_enabled,omitempty"`
	SilentWhenDisabled *bool    `json:"silent_when_disabled,omitempty"`
}

// empty reports whether c says nothing.
func (c Config) empty() bool {
	return len(c.CategoryOverrides)+len(c.RemoveCategories)+len(c.ForcedCategoryStates)+
		len(c.DisabledModels)+len(c.UIBlocks) == 0
}

// check returns c with sorted lists in place of missing ones, or a UserError.
func (c Config) check() (Config, error) {
	names := map[string][]string{
		"a category of category_overrides":     slices.Collect(maps.Keys(c.CategoryOverrides)),
		"a category of remove_categories":      c.RemoveCategories,
		"a category of forced_category_states": slices.Collect(maps.Keys(c.ForcedCategoryStates)),
		"a model of disabled_models":           c.DisabledModels,
		"a key of ui_blocks":                   slices.Collect(maps.Keys(c.UIBlocks)),
	}
	for category, o := range c.CategoryOverrides {
		names["a tool of "+category] = o.Tools
		if o.Label != nil {
			names["the label of "+category] = []string{*o.Label}
		}
	}
	for what, all := range names {
		if len(all) > maxEntries {
			return c, userErrorf("%s: more than %d entries", what, maxEntries)
		}
		for _, name := range all {
			if err := checkName(what, name); err != nil {
				return c, err
			}
		}
	}
	for key := range c.UIBlocks {
		if !slices.Contains(UIBlockKeys(), key) {
			return c, userErrorf("there is no ui_blocks key %q; there are %s", key, strings.Join(UIBlockKeys(), ", "))
		}
	}
	return c.filled(), nil
}

// filled returns c with empty lists and maps in place of missing ones, which are []
// and {} in JSON.
func (c Config) filled() Config {
	if c.CategoryOverrides == nil {
		c.CategoryOverrides = map[string]Override{}
	}
	if c.ForcedCategoryStates == nil {
		c.ForcedCategoryStates = map[string]*bool{}
	}
	if c.UIBlocks == nil {
		c.UIBlocks = map[string]bool{}
	}
	c.RemoveCategories = union(c.RemoveCategories)
	c.DisabledModels = union(c.DisabledModels)
	return c
}

// union returns the members of all lists, sorted, each once.
func union(lists ...[]string) []string {
	all := slices.Concat(lists...)
	slices.Sort(all)
	return append([]string{}, slices.Compact(all)...)
}

// merge returns what c and next, which comes after it, say together: for maps the
// later one wins, and lists are joined (B-072).
func (c Config) merge(next Config) Config {
	merged := Config{
		CategoryOverrides:    maps.Clone(c.filled().CategoryOverrides),
		ForcedCategoryStates: maps.Clone(c.filled().ForcedCategoryStates),
		UIBlocks:             maps.Clone(c.filled().UIBlocks),
		RemoveCategories:     union(c.RemoveCategories, next.RemoveCategories),
		DisabledModels:       union(c.DisabledModels, next.DisabledModels),
		UpdatedAt:            c.UpdatedAt,
	}
	for category, o := range next.CategoryOverrides {
		merged.CategoryOverrides[category] = merged.CategoryOverrides[category].merge(o)
	}
	maps.Copy(merged.ForcedCategoryStates, next.ForcedCategoryStates)
	maps.Copy(merged.UIBlocks, next.UIBlocks)
	if next.UpdatedAt.After(merged.UpdatedAt) {
		merged.UpdatedAt = next.UpdatedAt
	}
	return merged
}

func (o Override) merge(next Override) Override {
	if next.Label != nil {
		o.Label = next.Label
	}
	if next.Tools != nil {
		o.Tools = next.Tools
	}
	if next.DefaultEnabled != nil {
		o.DefaultEnabled = next.DefaultEnabled
	}
	if next.SilentWhenDisabled != nil {
		o.SilentWhenDisabled = next.SilentWhenDisabled
	}
	return o
}

// Summary says in one line what c changes, for the audit log.
func (c Config) Summary() string {
	var parts []string
	for _, category := range slices.Sorted(maps.Keys(c.ForcedCategoryStates)) {
		state := "not forced"
		if on := c.ForcedCategoryStates[category]; on != nil {
			state = map[bool]string{true: "on", false: "off"}[*on]
		}
		parts = append(parts, category+" "+state)
	}
	for _, category := range c.RemoveCategories {
		parts = append(parts, category+" removed")
	}
	for _, category := range slices.Sorted(maps.Keys(c.CategoryOverrides)) {
		o := c.CategoryOverrides[category]
		if o.DefaultEnabled != nil {
			parts = append(parts, fmt.Sprintf("%s by default %t", category, *o.DefaultEnabled))
		}
		if len(o.Tools) > 0 {
			parts = append(parts, category+" has "+strings.Join(o.Tools, " "))
		}
	}
	for _, model := range c.DisabledModels {
		parts = append(parts, "model "+model+" off")
	}
	for _, key := range slices.Sorted(maps.Keys(c.UIBlocks)) {
		parts = append(parts, fmt.Sprintf("%s %t", key, c.UIBlocks[key]))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Empty reports whether o changes nothing.
func (o Override) Empty() bool {
	return o.Label == nil && len(o.Tools) == 0 && o.DefaultEnabled == nil && o.SilentWhenDisabled == nil
}
