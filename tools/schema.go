package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"parley/llm"
)

// New makes a Tool from a function whose arguments are the fields of In, a struct. A
// field is required unless its json tag has omitempty or it has a default. Its
// jsonschema tag describes it, and its limit tag restricts its values:
//
//	limit:"min=1 max=600 default=60"      a number, or the length of a string or list
//	limit:"enum=code|markdown"            a string
//	limit:"choice=replace|insert|delete"  a string, by default the first
//
// New panics if no schema can be made for In.
func New[In any](name, description string, fn func(context.Context, Call, In) (Result, error)) Tool {
	schema, err := schemaOf(reflect.TypeFor[In]())
	t := Tool{ToolSpec: llm.ToolSpec{Name: name, Description: description, Schema: schema}}.shaped()
	var usual In
	if err == nil {
		err = json.Unmarshal(t.shape.defaults(), &usual)
	}
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	t.Run = func(ctx context.Context, c Call) (Result, error) {
		in := usual
		args, err := json.Marshal(c.Input)
		if err == nil {
			err = unmarshalExact(args, &in)
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && strings.HasPrefix(wrong.Value, "number ") {
			return Failf(CodeInvalid, "Invalid parameters for tool '%s': %s does not fit: %s is out of range",
				name, wrong.Field, strings.TrimPrefix(wrong.Value, "number ")), nil
		}
		if err != nil {
			return Failf(CodeInvalid, "Invalid parameters for tool '%s': %v", name, err), nil
		}
		return fn(ctx, c, in)
	}
	return t
}

// unmarshalExact is like [json.Unmarshal], but keeps all digits of numbers in fields of
// type any.
func unmarshalExact(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// schemaOf returns the schema of a struct. The same struct always gives the same bytes.
func schemaOf(t reflect.Type) (json.RawMessage, error) {
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("%v is no struct", t)
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{} // required by some vendors
	}
	if err := limit(s, t); err != nil {
		return nil, err
	}
	dropNull(s)
	return json.Marshal(s)
}

// dropNull replaces type lists such as ["null", "array"], which some vendors reject.
func dropNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type = s.Types[1-i]
		s.Types = nil
	}
	for _, p := range s.Properties {
		dropNull(p)
	}
	dropNull(s.Items)
	dropNull(s.AdditionalProperties)
}

// limit adds to s the limits from the tags of t's fields.
func limit(s *jsonschema.Schema, t reflect.Type) error {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for _, word := range strings.Fields(f.Tag.Get("limit")) {
			if err := limitBy(s.Properties[name], word); err != nil {
				return fmt.Errorf("%s: limit %s: %w", name, word, err)
			}
		}
		if p := s.Properties[name]; p != nil && p.Default != nil {
			s.Required = slices.DeleteFunc(s.Required, func(required string) bool { return required == name })
		}
	}
	return nil
}

// limitBy adds one item of a limit tag to s.
func limitBy(s *jsonschema.Schema, word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "default":
		setDefault(s, value)
		return nil
	case "enum", "choice":
		for v := range strings.SplitSeq(value, "|") {
			s.Enum = append(s.Enum, v)
		}
		if key == "choice" {
			first, _, _ := strings.Cut(value, "|")
			setDefault(s, first)
		}
		return nil
	}
	n, err := strconv.ParseFloat(value, 64)
	whole := int(n)
	switch {
	case err != nil:
		return err
	case key == "min" && s.Type == "string":
		s.MinLength = &whole
	case key == "max" && s.Type == "string":
		s.MaxLength = &whole
	case key == "min" && s.Items != nil:
		s.MinItems = &whole
	case key == "max" && s.Items != nil:
		s.MaxItems = &whole
	case key == "min":
		s.Minimum = &n
	case key == "max":
		s.Maximum = &n
	default:
		return fmt.Errorf("no such limit")
	}
	return nil
}

// setDefault makes value the default of s.
func setDefault(s *jsonschema.Schema, value string) {
	s.Default = json.RawMessage(value)
	if s.Type == "string" {
		s.Default, _ = json.Marshal(value)
	}
}

// A shape is a parsed schema.
type shape struct {
	source json.RawMessage
	schema *jsonschema.Schema   // nil if source is broken
	rest   *jsonschema.Resolved // nil if it cannot be resolved, or has nothing that check does not cover
}

// shaped returns t with its schema parsed.
func (t Tool) shaped() Tool {
	if t.shape != nil && bytes.Equal(t.shape.source, t.Schema) {
		return t
	}
	t.shape = &shape{source: t.Schema}
	var js jsonschema.Schema
	if json.Unmarshal(t.Schema, &js) == nil {
		breakCircles(&js)
		t.shape.schema = &js
		if !usual(&js) {
			t.shape.rest = resolve(js.CloneSchemas())
		}
	}
	return t
}

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
// package cannot compile and references that shape.follow does not support.
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
	s := &shape{schema: root}
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

// defaults returns the default arguments of s, as a JSON object.
func (s *shape) defaults() []byte {
	usual := map[string]json.RawMessage{}
	for name, p := range s.schema.Properties {
		if p.Default != nil {
			usual[name] = p.Default
		}
	}
	return []byte(text(usual))
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
	if text(rest) != "true" {
		return false
	}
	for _, p := range s.Properties {
		if !usual(p) {
			return false
		}
	}
	return usual(s.Items) && (closed(s) || usual(s.AdditionalProperties))
}
