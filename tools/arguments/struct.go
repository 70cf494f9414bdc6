package arguments

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// SchemaOf returns the schema of a struct. The same struct always gives the same bytes.
func SchemaOf(t reflect.Type) (*Schema, error) {
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
	source := write(s, true)
	if !json.Valid(source) {
		return nil, fmt.Errorf("the schema of %v is no JSON: %s", t, source)
	}
	return &Schema{source: source, schema: s}, nil
}

// Shown returns the part of the schema of a struct that models are shown: not the limits of numbers and lengths,
// of which a call that exceeds them is told.
func (s *Schema) Shown() json.RawMessage { return write(s.schema, false) }

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
