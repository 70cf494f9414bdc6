package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"parley/chat"
	"parley/tools"
)

// A Category is a group of tools that are switched on and off together.
type Category struct {
	ID                 string   `json:"id"`
	Label              string   `json:"label"`
	Tools              []string `json:"tools"`
	DefaultEnabled     bool     `json:"default_enabled"`
	SilentWhenDisabled bool     `json:"silent_when_disabled"`
}

// Defaults is what a policy chooses from: what owners have without one (B-071).
type Defaults struct {
	Categories  map[string]Category `json:"categories"`
	Models      []string            `json:"models"`
	UIBlockKeys []string            `json:"ui_block_keys"`
}

// Defaults returns what there is to choose from. The category of custom tools is
// there even if there are none (B-015).
func (b *Book) Defaults(ctx context.Context) (Defaults, error) {
	none := rules{config: Config{}.filled()}
	none.assign()
	scope := tools.Scope{From: chat.Sender{Role: chat.Owner}}
	categories, err := b.categories(ctx, scope, none)
	return Defaults{
		Categories:  categories,
		Models:      union(b.offer.Load().Models),
		UIBlockKeys: UIBlockKeys(),
	}, err
}

// categories returns the categories of the tools that are offered in s, as r groups
// them. For owners it includes those without tools.
func (b *Book) categories(ctx context.Context, s tools.Scope, r rules) (map[string]Category, error) {
	members := map[string][]string{}
	if s.From.Role == chat.Owner {
		members[Custom] = nil
		for category := range r.config.CategoryOverrides {
			members[category] = nil
		}
	}
	for _, source := range b.offer.Load().Sources {
		all, err := source.Tools(ctx, s)
		if err != nil {
			return nil, fmt.Errorf("list tools: %w", err)
		}
		for _, t := range all {
			if t.AliasOf != "" || t.Hidden {
				continue
			}
			for _, category := range r.categories(t.Name, t.Kind()) {
				members[category] = append(members[category], t.Name)
			}
		}
	}
	all := map[string]Category{}
	for category, names := range members {
		byDefault := r.config.CategoryOverrides[category].DefaultEnabled
		all[category] = Category{
			ID:                 category,
			Label:              r.label(category),
			Tools:              union(names),
			DefaultEnabled:     byDefault == nil || *byDefault,
			SilentWhenDisabled: r.silent(category),
		}
	}
	return all, nil
}

// Effective is what holds for one person in one place (B-074).
type Effective struct {
	Categories           map[string]CategoryState `json:"categories"`
	ForcedCategoryStates map[string]bool          `json:"forced_category_states"`
	DisabledModels       []string                 `json:"disabled_models"`
	UIBlocks             map[string]bool          `json:"ui_blocks"`
	UpdatedAt            time.Time                `json:"updated_at,omitzero"`
}

// A CategoryState is a Category and whether it is on.
type CategoryState struct {
	Category
	Enabled bool `json:"enabled"`
	Locked  bool `json:"locked"` // the policy forces it on or off
}

// Effective returns what holds in s.
func (b *Book) Effective(ctx context.Context, s tools.Scope) (Effective, error) {
	r, err := b.rules(ctx, s)
	if err != nil {
		return Effective{}, err
	}
	all, err := b.categories(ctx, s, r)
	if err != nil {
		return Effective{}, err
	}
	maps.DeleteFunc(all, func(id string, _ Category) bool { return slices.Contains(r.config.RemoveCategories, id) })
	e := Effective{
		Categories:           map[string]CategoryState{},
		ForcedCategoryStates: map[string]bool{},
		DisabledModels:       r.config.DisabledModels,
		UIBlocks:             r.config.UIBlocks,
		UpdatedAt:            r.config.UpdatedAt,
	}
	for id, category := range all {
		on, forced := r.state(id)
		e.Categories[id] = CategoryState{Category: category, Enabled: on, Locked: forced}
		if forced {
			e.ForcedCategoryStates[id] = on
		}
	}
	return e, nil
}
