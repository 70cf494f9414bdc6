package arguments

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"parley/chat"
)

// Prepare returns the arguments of a call of tool: parsed, repaired and checked
// against the schema (D-019). aliases has wrong names that models use, and the right
// ones. If the arguments are wrong, Prepare returns a text for the model with every
// wrong field (D-014…D-018, D-021), and the tool must not run.
func (s *Schema) Prepare(tool, args string, aliases map[string]string) (in map[string]any, problem string) {
	if in, problem = parse(tool, args, s); problem != "" {
		return nil, problem
	}
	in = s.repair(aliases, in)
	if wrong := s.check(in); len(wrong) > 0 {
		return nil, fmt.Sprintf("Invalid parameters for tool '%s': %s", tool,
			chat.Clip(strings.Join(wrong, "; "), 4000, "…"))
	}
	return in, ""
}

// check returns what is wrong with in: common mistakes in words that models
// understand, and the rest, such as oneOf, in those of the library.
func (s *Schema) check(in map[string]any) []string {
	js := s.schema
	if js == nil {
		return nil
	}
	if js.Type != "object" {
		return []string{fmt.Sprintf("Schema must be object type, got '%s'", strings.Join(typesOf(js), "|"))}
	}
	left := maxSteps
	wrong := s.checkValue(js, in, "", &left)
	if len(wrong) == 0 && s.rest != nil && left >= 0 {
		if err := s.rest.Validate(approximate(in)); err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}

// checkValue returns what is wrong with v, which is at path, such as "a.list[0]".
// It takes at most the steps that are left.
func (s *Schema) checkValue(js *jsonschema.Schema, v any, path string, left *int) []string {
	js = s.follow(js)
	if *left--; js == nil || *left < 0 {
		return nil
	}
	label := path
	if label == "" {
		label = "parameter"
	}
	if types := typesOf(js); len(types) > 0 && !fits(types, v) {
		types = slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
		return []string{label + " should be " + strings.Join(types, " or ")}
	}
	var wrong []string
	say := func(is bool, words string, limit any) {
		if is {
			wrong = append(wrong, label+" "+strings.Replace(words, "#", JSON(limit), 1))
		}
	}
	say(js.Enum != nil && !slices.ContainsFunc(js.Enum, func(e any) bool { return JSON(e) == JSON(v) }),
		"must be one of #", &js.Enum)
	say(js.Const != nil && JSON(js.Const) != JSON(v), "must be #", js.Const)
	switch v := v.(type) {
	case int64:
		checkNumber(js, float64(v), say)
	case uint64:
		checkNumber(js, float64(v), say)
	case json.Number:
		f, _ := v.Float64()
		say(math.IsInf(f, 0), "must be finite", nil)
		checkNumber(js, f, say)
	case float64:
		say(math.IsInf(v, 0) || math.IsNaN(v), "must be finite", nil)
		checkNumber(js, v, say)
	case string:
		n := utf8.RuneCountInString(v)
		say(js.MinLength != nil && n < deref(js.MinLength), "must be at least # chars", js.MinLength)
		say(js.MaxLength != nil && n > deref(js.MaxLength), "must be at most # chars", js.MaxLength)
	case []any:
		say(js.MinItems != nil && len(v) < deref(js.MinItems), "must have at least # items", js.MinItems)
		say(js.MaxItems != nil && len(v) > deref(js.MaxItems), "must have at most # items", js.MaxItems)
		for i, e := range v {
			wrong = append(wrong, s.checkValue(js.Items, e, fmt.Sprintf("%s[%d]", path, i), left)...)
		}
	case map[string]any:
		wrong = append(wrong, s.checkObject(js, v, path, left)...)
	}
	return append(wrong, s.checkCombined(js, v, path, left)...)
}

// checkCombined returns what is wrong with v according to allOf, anyOf and oneOf.
// The library checks that only one of oneOf matches.
func (s *Schema) checkCombined(js *jsonschema.Schema, v any, path string, left *int) []string {
	var wrong []string
	for _, all := range js.AllOf {
		wrong = append(wrong, s.checkValue(all, v, path, left)...)
	}
	for _, alternatives := range [][]*jsonschema.Schema{js.AnyOf, js.OneOf} {
		wrong = append(wrong, s.checkAlternatives(alternatives, v, path, left)...)
	}
	return wrong
}

func (s *Schema) checkAlternatives(alternatives []*jsonschema.Schema, v any, path string, left *int) []string {
	var fewest []string
	for i, js := range alternatives {
		wrong := s.checkValue(js, v, path, left)
		if len(wrong) == 0 {
			return nil
		}
		if i == 0 || len(wrong) < len(fewest) {
			fewest = wrong
		}
	}
	return fewest
}

func checkNumber(s *jsonschema.Schema, v float64, say func(is bool, words string, limit any)) {
	say(s.Minimum != nil && v < deref(s.Minimum), "must be >= #", s.Minimum)
	say(s.Maximum != nil && v > deref(s.Maximum), "must be <= #", s.Maximum)
}

func (s *Schema) checkObject(js *jsonschema.Schema, v map[string]any, path string, left *int) []string {
	var wrong []string
	at := func(name string) string {
		if path == "" {
			return name
		}
		return path + "." + name
	}
	for _, name := range js.Required {
		if _, ok := v[name]; !ok {
			wrong = append(wrong, at(name)+" is required")
		}
	}
	names := make([]string, 0, len(v)) // one allocation, because every call gets here
	for name := range v {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch p := js.Properties[name]; {
		case p != nil:
			wrong = append(wrong, s.checkValue(p, v[name], at(name), left)...)
		case closed(js):
			wrong = append(wrong, "unexpected parameter "+at(name))
		case len(js.PatternProperties) == 0:
			wrong = append(wrong, s.checkValue(js.AdditionalProperties, v[name], at(name), left)...)
		}
	}
	return wrong
}

// closed reports whether s allows only the properties it names.
func closed(s *jsonschema.Schema) bool {
	no := s.AdditionalProperties
	if no == nil || no.Not == nil || len(s.PatternProperties) > 0 {
		return false
	}
	rest := *no
	rest.Not = nil
	return allowsAll(&rest) && allowsAll(no.Not)
}

// allowsAll reports whether s has no keyword.
func allowsAll(s *jsonschema.Schema) bool {
	return reflect.ValueOf(s).Elem().IsZero() || JSON(s) == "true"
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
