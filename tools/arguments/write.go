package arguments

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
)

// write returns s, a schema of a struct, as JSON, in the order of its fields. It writes what package jsonschema
// would, in a fraction of the time: a start makes the schemas of all tools. Limits are those of numbers, lengths
// and lists, and which other arguments there may be.
func write(s *jsonschema.Schema, limits bool) []byte {
	w := writer{out: make([]byte, 0, usualLength), limits: limits}
	w.schema(s)
	return w.out
}

const usualLength = 1024 // bytes of a schema

type writer struct {
	out    []byte
	limits bool
}

// schema writes s, which has no other keywords than SchemaOf makes.
func (w *writer) schema(s *jsonschema.Schema) {
	start := len(w.out)
	w.out = append(w.out, '{')
	w.members(s)
	if len(w.out) == start+1 {
		w.out = append(w.out[:start], "true"...)
		return
	}
	w.out = append(w.out, '}')
}

func (w *writer) members(s *jsonschema.Schema) {
	switch {
	case s.Type != "":
		w.member("type", s.Type)
	case s.Types != nil:
		w.member("type", s.Types)
	}
	if s.Properties != nil {
		w.properties(s)
	}
	if s.Items != nil {
		w.name("items")
		w.schema(s.Items)
	}
	if s.Description != "" {
		w.member("description", s.Description)
	}
	if s.Default != nil {
		w.member("default", s.Default)
	}
	if len(s.Enum) > 0 {
		w.member("enum", s.Enum)
	}
	if w.limits {
		writeLimit(w, "minimum", s.Minimum)
		writeLimit(w, "maximum", s.Maximum)
		writeLimit(w, "minLength", s.MinLength)
		writeLimit(w, "maxLength", s.MaxLength)
		writeLimit(w, "minItems", s.MinItems)
		writeLimit(w, "maxItems", s.MaxItems)
	}
	if len(s.Required) > 0 {
		w.member("required", s.Required)
	}
	if w.limits && s.AdditionalProperties != nil {
		w.name("additionalProperties")
		if s.AdditionalProperties.Not != nil { // nothing is allowed
			w.out = append(w.out, "false"...)
		} else {
			w.schema(s.AdditionalProperties)
		}
	}
}

// properties writes those of s in the order of the fields of the struct.
func (w *writer) properties(s *jsonschema.Schema) {
	w.name("properties")
	w.out = append(w.out, '{')
	names := s.PropertyOrder
	if len(names) != len(s.Properties) {
		names = slices.Sorted(maps.Keys(s.Properties))
	}
	for _, name := range names {
		w.name(name)
		w.schema(s.Properties[name])
	}
	w.out = append(w.out, '}')
}

func writeLimit[T any](w *writer, name string, limit *T) {
	if limit != nil {
		w.member(name, *limit)
	}
}

// name begins a member of an object.
func (w *writer) name(name string) {
	if w.out[len(w.out)-1] != '{' {
		w.out = append(w.out, ',')
	}
	w.out = strconv.AppendQuote(w.out, name) // a name in a tag has nothing that JSON quotes in another way
	w.out = append(w.out, ':')
}

func (w *writer) member(name string, value any) {
	w.name(name)
	text, _ := json.Marshal(value) // only a default can fail, and then SchemaOf does
	w.out = append(w.out, text...)
}
