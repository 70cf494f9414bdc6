package tools

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"parley/chat"
)

// prepare returns the arguments of a call of t: parsed, mended and checked
// against the schema (D-019). If they are wrong it returns what to tell the
// model, field by field (D-014…D-018, D-021): the tool is not to be run.
func (t Tool) prepare(args string) (in map[string]any, problem string) {
	if in, problem = parse(t.Name, args, t.shape); problem != "" {
		return nil, problem
	}
	in = t.mended(in)
	if wrong := t.shape.check(in); len(wrong) > 0 {
		return nil, fmt.Sprintf("Invalid parameters for tool '%s': %s", t.Name, chat.Clip(strings.Join(wrong, "; "), 4000, "…"))
	}
	return in, ""
}

// check returns what is wrong with in: the usual in words a model
// understands, the rest, such as oneOf, in the library's.
func (s *shape) check(in map[string]any) []string {
	js := s.schema
	if js == nil {
		return nil
	}
	if js.Type != "object" {
		return []string{fmt.Sprintf("Schema must be object type, got '%s'", strings.Join(typesOf(js), "|"))}
	}
	wrong := check(js, in, "")
	if len(wrong) == 0 && s.rest != nil {
		if err := s.rest.Validate(in); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}

// check returns what is wrong with v, which stands at path, such as "a.list[0]".
func check(s *jsonschema.Schema, v any, path string) []string {
	if s == nil {
		return nil
	}
	label := path
	if label == "" {
		label = "parameter"
	}
	if types := typesOf(s); len(types) > 0 && !fits(types, v) {
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
		return []string{label + " should be " + strings.Join(types, " or ")}
	}
	var wrong []string
	say := func(is bool, words string, limit any) {
		if is {
			wrong = append(wrong, label+" "+strings.Replace(words, "#", text(limit), 1))
		}
	}
	say(s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return text(e) == text(v) }), "must be one of #", &s.Enum)
	switch v := v.(type) {
	case int64:
		checkNumber(s, float64(v), say)
	case uint64:
		checkNumber(s, float64(v), say)
	case float64:
		say(math.IsInf(v, 0) || math.IsNaN(v), "must be finite", nil)
		checkNumber(s, v, say)
	case string:
		n := utf8.RuneCountInString(v)
		say(s.MinLength != nil && n < deref(s.MinLength), "must be at least # chars", s.MinLength)
		say(s.MaxLength != nil && n > deref(s.MaxLength), "must be at most # chars", s.MaxLength)
	case []any:
		say(s.MinItems != nil && len(v) < deref(s.MinItems), "must have at least # items", s.MinItems)
		say(s.MaxItems != nil && len(v) > deref(s.MaxItems), "must have at most # items", s.MaxItems)
		for i, e := range v {
			wrong = append(wrong, check(s.Items, e, fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		wrong = append(wrong, checkObject(s, v, path)...)
	}
	return wrong
}

func checkNumber(s *jsonschema.Schema, v float64, say func(is bool, words string, limit any)) {
	say(s.Minimum != nil && v < deref(s.Minimum), "must be >= #", s.Minimum)
	say(s.Maximum != nil && v > deref(s.Maximum), "must be <= #", s.Maximum)
}

func checkObject(s *jsonschema.Schema, v map[string]any, path string) []string {
	var wrong []string
	at := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			wrong = append(wrong, at(name)+" is required")
		}
	}
	names := make([]string, 0, len(v)) // of one piece: each call passes here
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch p := s.Properties[name]; {
		case p != nil:
			wrong = append(wrong, check(p, v[name], at(name))...)
		case closed(s):
			wrong = append(wrong, "unexpected parameter "+at(name))
		case len(s.PatternProperties) == 0:
			wrong = append(wrong, check(s.AdditionalProperties, v[name], at(name))...)
		}
	}
	return wrong
}

// closed says whether s allows only the properties it names.
func closed(s *jsonschema.Schema) bool {
	no := s.AdditionalProperties
	return no != nil && no.Not != nil && text(no) == "false" && len(s.PatternProperties) == 0
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
