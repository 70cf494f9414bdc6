package manage

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/tools/mcp/pins"
)

// A Parameter is one of a tool or prompt, as its server describes it to models.
type Parameter struct {
	Name        string `json:"name"` // of one within another, with the names of those around it: "filter.tags[]"
	Type        string `json:"type,omitempty"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
}

// String returns p as one line, such as "path (string, required): what to read".
func (p Parameter) String() string {
	kind := p.Type
	if p.Required {
		kind = strings.TrimPrefix(kind+", required", ", ")
	}
	text := p.Name
	if kind != "" {
		text += " (" + kind + ")"
	}
	if p.Description != "" {
		text += ": " + p.Description
	}
	return text
}

// maxGrowth is how many times as long as its schema the parameters of a tool may be. Those of a schema that is nested
// deeply are far longer, because each name has those around it (R-S22).
const maxGrowth = 8

// parametersOf returns the parameters of a tool with that schema, sorted by name. If they are too long, the last
// one says that there are more.
func parametersOf(schema any) []Parameter {
	text, _ := json.Marshal(schema) // it was read from JSON
	var plain any
	_ = json.Unmarshal(text, &plain)
	list := parameterList{room: maxGrowth * len(text)}
	list.addAll("", plain)
	if list.room < 0 {
		list.all = append(list.all, Parameter{Name: "…", Description: "there are more parameters than can be shown"})
	}
	return list.all
}

// A parameterList collects parameters.
type parameterList struct {
	all  []Parameter
	room int // bytes; below 0 nothing is added any more
}

// addAll adds the parameters that schema describes, whose names begin with prefix.
func (l *parameterList) addAll(prefix string, schema any) {
	s, _ := schema.(map[string]any) // others, such as true, describe none
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		at := prefix + pins.VisibleName(name)
		property, _ := properties[name].(map[string]any)
		description, _ := property["description"].(string)
		p := Parameter{
			Name:        at,
			Type:        typeOf(property),
			Required:    slices.Contains(required, any(name)),
			Description: pins.Visible(description),
		}
		if l.room -= len(p.String()); l.room < 0 {
			return
		}
		l.all = append(l.all, p)
		l.addAll(at+".", property)
		l.addAll(at+"[].", property["items"])
	}
}

// typeOf returns the type of a value, and which values are allowed.
func typeOf(schema map[string]any) string {
	var parts []string
	switch kind := schema["type"].(type) {
	case string:
		parts = append(parts, kind)
	case []any:
		parts = append(parts, strings.Trim(fmt.Sprint(kind), "[]"))
	}
	if values, has := schema["enum"]; has {
		text, _ := json.Marshal(values) // it was read from JSON
		parts = append(parts, "one of "+string(text))
	}
	return pins.Visible(strings.Join(parts, ", "))
}
