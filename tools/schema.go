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

// New makes a Tool of a function whose arguments are the fields of In, a
// struct. A field is required unless its json tag says omitempty; its
// jsonschema tag describes it; its limit tag holds what else it must keep to,
// in this notation:
//
//	limit:"min=1 max=600 default=60"    a number, or the length of a string or list; what is left out is the default
//	limit:"enum=replace|insert|delete"  a string
//
// New panics when no schema can be made of In.
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

// unmarshalExact is [json.Unmarshal] that keeps the digits of numbers in fields of any type.
func unmarshalExact(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return d.Decode(v)
}

// schemaOf returns the schema of a struct, in bytes that are always the same.
func schemaOf(t reflect.Type) (json.RawMessage, error) {
	s, err := jsonschema.ForType(t, nil)
	if err != nil {
		return nil, err
	}
	if s.Type != "object" {
		return nil, fmt.Errorf("%v is no struct", t)
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{} // some vendors insist on it
	}
	if err := limit(s, t); err != nil {
		return nil, err
	}
	plain(s)
	return json.Marshal(s)
}

// plain replaces type lists such as ["null", "array"], which some vendors reject.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if i := slices.Index(s.Types, "null"); i >= 0 && len(s.Types) == 2 {
		s.Type, s.Types = s.Types[1-i], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	plain(s.Items)
	plain(s.AdditionalProperties)
}

// limit adds to s what the limit tags of t's fields say.
func limit(s *jsonschema.Schema, t reflect.Type) error {
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		for _, word := range strings.Fields(f.Tag.Get("limit")) {
			if err := limitBy(s.Properties[name], word); err != nil {
				return fmt.Errorf("%s: limit %s: %w", name, word, err)
			}
		}
	}
	return nil
}

// limitBy adds one word of a limit tag to s.
func limitBy(s *jsonschema.Schema, word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "default":
		s.Default = json.RawMessage(value)
		if s.Type == "string" {
			s.Default, _ = json.Marshal(value)
		}
		return nil
	case "enum":
		for v := range strings.SplitSeq(value, "|") {
			s.Enum = append(s.Enum, v)
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

// A shape is a schema, parsed.
type shape struct {
	source json.RawMessage
	schema *jsonschema.Schema   // nil when source is broken
	rest   *jsonschema.Resolved // nil when it cannot be resolved, or says no more than check looks at
}

// shaped returns t with the shape of its schema.
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

// resolve returns js, which it changes, ready to validate with. What the library
// cannot read is left out, as patterns with a look-ahead and references to other
// documents are: the tool judges these itself, and all else is still checked.
func resolve(js *jsonschema.Schema) *jsonschema.Resolved {
	dropUnreadable(js)
	if resolved, err := js.Resolve(nil); err == nil {
		return resolved
	}
	eachSchema(js, func(js *jsonschema.Schema) { js.Ref = "" }) // maybe one leads nowhere
	resolved, _ := js.Resolve(nil)
	return resolved
}

// dropUnreadable leaves out, in js and all schemas within, patterns that the
// regexp package cannot read, and references that shape.follow does not know.
func dropUnreadable(js *jsonschema.Schema) {
	eachSchema(js, func(js *jsonschema.Schema) {
		if !readable(js.Pattern) {
			js.Pattern = ""
		}
		for pattern := range js.PatternProperties {
			if !readable(pattern) {
				delete(js.PatternProperties, pattern)
				js.AdditionalProperties, js.UnevaluatedProperties = nil, nil // they were for what no pattern names
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

// breakCircles leaves out the references by which a schema of root refers to
// itself for the same value: to check that would never come to an end.
func breakCircles(root *jsonschema.Schema) {
	s := &shape{schema: root}
	done, open := map[*jsonschema.Schema]bool{}, map[*jsonschema.Schema]bool{}
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

// eachSchema calls do for js and for all schemas within.
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

// defaults returns the arguments that s has a default for.
func (s *shape) defaults() []byte {
	usual := map[string]json.RawMessage{}
	for name, p := range s.schema.Properties {
		if p.Default != nil {
			usual[name] = p.Default
		}
	}
	return []byte(text(usual))
}

// usual reports whether check looks at all that s says.
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
	if rest.AdditionalProperties = nil; text(rest) != "true" {
		return false
	}
	for _, p := range s.Properties {
		if !usual(p) {
			return false
		}
	}
	return usual(s.Items) && (closed(s) || usual(s.AdditionalProperties))
}
