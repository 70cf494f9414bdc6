package arguments

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A Schema is the parsed schema of a tool's arguments.
type Schema struct {
	source json.RawMessage
	schema *jsonschema.Schema   // nil if source is broken
	rest   *jsonschema.Resolved // nil if it cannot be resolved, or has nothing that check does not cover
}

// ParseSchema parses source. A broken one lets all arguments pass.
func ParseSchema(source json.RawMessage) *Schema {
	var js jsonschema.Schema
	if json.Unmarshal(source, &js) != nil {
		return &Schema{source: source}
	}
	breakCircles(&js)
	return newSchema(source, &js)
}

// newSchema returns the Schema of js, which has no circles and is what source says.
func newSchema(source json.RawMessage, js *jsonschema.Schema) *Schema {
	s := &Schema{source: source, schema: js}
	if !usual(js) {
		s.rest = resolve(js.CloneSchemas())
	}
	return s
}

// Source returns what s was parsed from.
func (s *Schema) Source() json.RawMessage { return s.source }

// IsOf reports whether s was parsed from source. A nil s was not.
func (s *Schema) IsOf(source json.RawMessage) bool { return s != nil && bytes.Equal(s.source, source) }

// resolve prepares js for validation, and changes it: it drops what the library cannot
// read, such as patterns with a look-ahead and references to other documents. The tool
// itself checks these; everything else is still validated.
func resolve(js *jsonschema.Schema) *jsonschema.Resolved {
	dropUnreadable(js)
	if resolved, err := js.Resolve(nil); err == nil {
		return resolved
	}
	eachSchema(js, func(js *jsonschema.Schema) { js.Ref = "" }) // one of them may be dangling
	resolved, _ := js.Resolve(nil)
	return resolved
}

// dropUnreadable removes, from js and all schemas in it, patterns that the regexp
// package cannot compile and references that Schema.follow does not support.
func dropUnreadable(js *jsonschema.Schema) {
	eachSchema(js, func(js *jsonschema.Schema) {
		if !readable(js.Pattern) {
			js.Pattern = ""
		}
		for pattern := range js.PatternProperties {
			if !readable(pattern) {
				delete(js.PatternProperties, pattern)
				js.AdditionalProperties = nil // it was for what no pattern matches
				js.UnevaluatedProperties = nil
			}
		}
		if js.Ref != "#" && !strings.HasPrefix(js.Ref, defsPrefix) && !strings.HasPrefix(js.Ref, definitionsPrefix) {
			js.Ref = ""
		}
		js.DynamicRef = ""
	})
}

func readable(pattern string) bool {
	_, err := regexp.Compile(pattern)
	return err == nil
}

// breakCircles removes references by which a schema in root refers to itself for the
// same value: checking them would never end.
func breakCircles(root *jsonschema.Schema) {
	s := &Schema{schema: root}
	done := map[*jsonschema.Schema]bool{}
	open := map[*jsonschema.Schema]bool{}
	var visit func(js *jsonschema.Schema)
	visit = func(js *jsonschema.Schema) {
		if js == nil || done[js] {
			return
		}
		open[js] = true
		same := slices.Concat(js.AllOf, js.AnyOf, js.OneOf, []*jsonschema.Schema{js.Not, js.If, js.Then, js.Else})
		for _, inner := range slices.AppendSeq(same, maps.Values(js.DependentSchemas)) {
			visit(inner)
		}
		if target := s.target(js.Ref); open[target] {
			js.Ref = ""
		} else {
			visit(target)
		}
		open[js] = false
		done[js] = true
	}
	eachSchema(root, visit)
}

// eachSchema calls do for js and for all schemas in it.
func eachSchema(js *jsonschema.Schema, do func(*jsonschema.Schema)) {
	if js == nil {
		return
	}
	do(js)
	fields := reflect.ValueOf(js).Elem()
	for i := range fields.NumField() {
		if !fields.Type().Field(i).IsExported() {
			continue
		}
		switch field := fields.Field(i).Interface().(type) {
		case *jsonschema.Schema:
			eachSchema(field, do)
		case []*jsonschema.Schema:
			for _, inner := range field {
				eachSchema(inner, do)
			}
		case map[string]*jsonschema.Schema:
			for _, inner := range field {
				eachSchema(inner, do)
			}
		}
	}
}

// Defaults returns the default arguments of s, as a JSON object, or nil if there are none.
func (s *Schema) Defaults() []byte {
	usual := map[string]json.RawMessage{}
	for name, p := range s.schema.Properties {
		if p.Default != nil {
			usual[name] = p.Default
		}
	}
	if len(usual) == 0 {
		return nil
	}
	return []byte(JSON(usual))
}

// property returns the schema of an argument, or nil. s may be nil.
func (s *Schema) property(name string) *jsonschema.Schema {
	if s == nil || s.schema == nil {
		return nil
	}
	return s.schema.Properties[name]
}

// ListsValues reports whether s lists the values of an argument. s may be nil.
func (s *Schema) ListsValues(name string) bool {
	p := s.property(name)
	return p != nil && len(p.Enum) > 0
}

// IsDefault reports whether v is the default of an argument. s may be nil.
func (s *Schema) IsDefault(name string, v any) bool {
	p := s.property(name)
	return p != nil && len(p.Default) > 0 && string(p.Default) == JSON(v)
}

// Requires reports whether an argument is required. s may be nil.
func (s *Schema) Requires(name string) bool {
	return s != nil && s.schema != nil && slices.Contains(s.schema.Required, name)
}

// usual reports whether check covers everything in s.
func usual(s *jsonschema.Schema) bool {
	if s == nil {
		return true
	}
	rest := *s
	rest.Title = ""
	rest.Description = ""
	rest.Default = nil
	rest.Examples = nil
	rest.Type = ""
	rest.Types = nil
	rest.Enum = nil
	rest.Required = nil
	rest.Items = nil
	rest.Properties = nil
	rest.PropertyOrder = nil
	rest.Minimum = nil
	rest.Maximum = nil
	rest.MinLength = nil
	rest.MaxLength = nil
	rest.MinItems = nil
	rest.MaxItems = nil
	rest.AdditionalProperties = nil
	if !allowsAll(&rest) {
		return false
	}
	for _, p := range s.Properties {
		if !usual(p) {
			return false
		}
	}
	return usual(s.Items) && (closed(s) || usual(s.AdditionalProperties))
}
