package toolpages

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/response"
	"parley/tools/policy"
)

// savePolicyForm stores what the form of the policy page says. What it does not show
// stays.
func (a *Admin) savePolicyForm(w http.ResponseWriter, r *http.Request, who chat.Sender) error {
	var form map[string]string
	if err := response.ReadJSON(w, r, maxBody, &form); err != nil {
		return err
	}
	t := policy.Target{Type: policy.TargetType(form["type"]), Value: form["value"]}
	s, err := a.loadSheet(r, t)
	if err != nil {
		return err
	}
	c := s.apply(form)
	c.UpdatedAt = time.Time{}
	if form["overwrite"] == "" {
		if base := form["updated_at"]; base != "" {
			c.UpdatedAt, err = time.Parse(time.RFC3339Nano, base)
		}
		if err != nil || c.UpdatedAt.IsZero() && !s.config.UpdatedAt.IsZero() {
			return explain(policy.ErrConflict)
		}
	}
	if err := a.storePolicy(r, who, t, c); err != nil {
		return err
	}
	return answer(w, nil)
}

// apply returns the Config of s as form changes it.
func (s sheet) apply(form map[string]string) policy.Config {
	c := policy.Config{
		CategoryOverrides:    maps.Clone(s.config.CategoryOverrides),
		ForcedCategoryStates: maps.Clone(s.config.ForcedCategoryStates),
		RemoveCategories:     slices.Clone(s.config.RemoveCategories),
		DisabledModels:       slices.Clone(s.config.DisabledModels),
		UIBlocks:             maps.Clone(s.config.UIBlocks),
	}
	for _, category := range s.categories() {
		state, shown := form[fieldState+category]
		if !shown {
			continue
		}
		o := c.CategoryOverrides[category]
		if state != s.state(category) {
			delete(c.ForcedCategoryStates, category)
			c.RemoveCategories = without(c.RemoveCategories, category)
			o.DefaultEnabled = nil
		}
		switch state {
		case s.state(category):
		case stateRemoved:
			c.RemoveCategories = append(c.RemoveCategories, category)
		case stateOn, stateOff:
			c.ForcedCategoryStates[category] = new(state == stateOn)
		case stateLifted:
			c.ForcedCategoryStates[category] = nil
		case stateOpenOn, stateOpenOff:
			o.DefaultEnabled = new(state == stateOpenOn)
		}
		if label, given := form[fieldLabel+category]; given {
			o.Label = nil
			if label = strings.TrimSpace(label); label != "" {
				o.Label = &label
			}
		}
		o.SilentWhenDisabled = nil
		if form[fieldSilent+category] != "" {
			o.SilentWhenDisabled = new(true)
		}
		c.CategoryOverrides[category] = o
	}
	for tool := range s.own() {
		if wanted, shown := form[fieldTool+tool]; shown && wanted != s.placed(tool) {
			s.move(c, tool, strings.Split(wanted, ","))
		}
	}
	maps.DeleteFunc(c.CategoryOverrides, func(_ string, o policy.Override) bool { return o.Empty() })
	for _, model := range s.defaults.Models {
		c.DisabledModels = without(c.DisabledModels, model)
		if form[fieldModel+model] != "" {
			c.DisabledModels = append(c.DisabledModels, model)
		}
	}
	for _, key := range s.defaults.UIBlockKeys {
		if form[fieldBlock+key] != "" {
			c.UIBlocks[key] = true
		} else if c.UIBlocks[key] {
			delete(c.UIBlocks, key)
		}
	}
	return c
}

// move changes c so that tool is in these categories. Its own one needs no entry,
// unless the tool is in others, too.
func (s sheet) move(c policy.Config, tool string, to []string) {
	for category, o := range c.CategoryOverrides {
		o.Tools = without(o.Tools, tool)
		c.CategoryOverrides[category] = o
	}
	var wanted []string
	for _, category := range to {
		if category = strings.TrimSpace(category); category != "" && !slices.Contains(wanted, category) {
			wanted = append(wanted, category)
		}
	}
	if len(wanted) == 1 && wanted[0] == s.own()[tool] {
		return
	}
	for _, category := range wanted {
		o := c.CategoryOverrides[category]
		o.Tools = append(slices.Clone(o.Tools), tool)
		c.CategoryOverrides[category] = o
	}
}

// without returns list without name.
func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}
