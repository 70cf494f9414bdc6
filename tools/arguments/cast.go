package arguments

import (
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// repair returns in with common mistakes of models repaired: wrong names, by
// aliases (E-002), wrong types, by the schema (D-011, C-037), nulls that mean
// nothing (E-037), and names with a leading "_", which are reserved. check
// reports what cannot be repaired (D-012).
func (s *Schema) repair(aliases map[string]string, in map[string]any) map[string]any {
	if s.schema != nil && s.schema.Type == "object" { // D-013
		return s.castArgs(aliases, in)
	}
	settle(in)
	return in
}

func (s *Schema) castArgs(aliases map[string]string, in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for name, v := range in {
		if s.schema.Properties[name] != nil || !strings.HasPrefix(name, "_") {
			out[name] = v
		}
	}
	if len(aliases) > 0 {
		rename(s.schema, aliases, out)
	}
	left := maxSteps
	cast, _ := s.cast(s.schema, out, &left).(map[string]any)
	settle(cast)
	return cast
}

// rename replaces aliases among the names in args. If several stand for the same
// name, the first in alphabetical order counts.
func rename(s *jsonschema.Schema, aliases map[string]string, args map[string]any) {
	for _, wrong := range slices.Sorted(maps.Keys(aliases)) {
		v, has := args[wrong]
		if has && args[aliases[wrong]] == nil && s.Properties[wrong] == nil {
			delete(args, wrong)
			args[aliases[wrong]] = v
		}
	}
}

// maxSteps limits how many values are compared with a schema in one call: nested
// alternatives could take forever.
const maxSteps = 200_000

// cast returns v converted to what js wants, or v itself. It never changes v in
// place, and takes at most the steps that are left.
func (s *Schema) cast(js *jsonschema.Schema, v any, left *int) any {
	js = s.follow(js)
	if *left--; js == nil || *left < 0 {
		return v
	}
	types := typesOf(js)
	if len(types) > 0 && !fits(types, v) {
		cast := false
		for _, want := range types {
			if w, ok := castTo(want, v); ok {
				v, cast = w, true
				break
			}
		}
		if !cast {
			return v
		}
	}
	v = s.castWithin(js, wholeNumber(types, v), left)
	for _, all := range js.AllOf {
		v = s.cast(all, v, left)
	}
	v = s.castToOne(js.AnyOf, v, left)
	return s.castToOne(js.OneOf, v, left)
}

// castToOne converts v to the first alternative that accepts it as it is or, if
// none does, to the first that accepts it after conversion.
func (s *Schema) castToOne(alternatives []*jsonschema.Schema, v any, left *int) any {
	for _, js := range alternatives {
		if len(s.checkValue(js, v, "", left)) == 0 {
			return v
		}
	}
	for _, js := range alternatives {
		if w := s.cast(js, v, left); len(s.checkValue(js, w, "", left)) == 0 {
			return w
		}
	}
	return v
}

// follow returns the schema that js stands for: the target of its $ref, if that is
// a definition in the same schema.
func (s *Schema) follow(js *jsonschema.Schema) *jsonschema.Schema {
	for js != nil && js.Ref != "" {
		target := s.target(js.Ref)
		if target == nil {
			break
		}
		js = target
	}
	return js
}

// Prefixes of references to the definitions in a schema.
const (
	defsPrefix        = "#/$defs/"
	definitionsPrefix = "#/definitions/"
)

// target returns the schema that ref leads to, or nil.
func (s *Schema) target(ref string) *jsonschema.Schema {
	if ref == "#" {
		return s.schema
	}
	if name, ok := strings.CutPrefix(ref, defsPrefix); ok {
		return s.schema.Defs[unescapePointer(name)]
	}
	if name, ok := strings.CutPrefix(ref, definitionsPrefix); ok {
		return s.schema.Definitions[unescapePointer(name)]
	}
	return nil
}

// unescapePointer decodes one part of a JSON pointer in a URL.
func unescapePointer(part string) string {
	plain, err := url.PathUnescape(part)
	if err != nil {
		plain = part
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(plain)
}

// wholeNumber returns a number without point and exponent if an integer is wanted:
// the receiver may read "1e30" as a float and lose digits.
func wholeNumber(types []string, v any) any {
	n, ok := v.(json.Number)
	if !ok || !slices.Contains(types, "integer") {
		return v
	}
	if d, ok := parseDecimal(n.String()); ok {
		if whole, ok := d.whole(); ok {
			return whole
		}
	}
	return v
}

// castWithin converts the elements of a list or the members of an object.
func (s *Schema) castWithin(js *jsonschema.Schema, v any, left *int) any {
	switch v := v.(type) {
	case map[string]any:
		return s.castObject(js, v, left)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = s.cast(js.Items, e, left)
		}
		return out
	}
	return v
}

func (s *Schema) castObject(js *jsonschema.Schema, in map[string]any, left *int) map[string]any {
	out := make(map[string]any, len(in))
	for name, v := range in {
		p := js.Properties[name]
		if p == nil {
			p = js.AdditionalProperties
		}
		if v == nil && js.Properties[name] != nil && !s.nullable(p, left) {
			continue
		}
		out[name] = s.cast(p, v, left)
	}
	return out
}

// castTo returns v as a value of a JSON Schema type.
func castTo(want string, v any) (any, bool) {
	words, isText := v.(string)
	words = strings.TrimSpace(words)
	switch want {
	case "integer":
		_, err := strconv.ParseInt(words, 10, 64)
		return json.Number(strings.TrimPrefix(words, "+")), isText && err == nil
	case "number":
		f, err := strconv.ParseFloat(words, 64)
		if !isText || err != nil || strings.Trim(words, "+-.0123456789eE") != "" {
			return nil, false
		}
		if json.Valid([]byte(words)) {
			return json.Number(words), true // with all its digits
		}
		return f, true // such as ".5"
	case "boolean":
		switch strings.ToLower(words) {
		case "true", "1", "yes":
			return true, isText
		case "false", "0", "no":
			return false, isText
		}
	case "string":
		if v == nil {
			return nil, false
		}
		_, err := json.Marshal(v)
		return JSON(v), err == nil
	case "array", "object":
		if w, err := decode(words); isText && err == nil && kind(w) == want {
			return w, true
		}
	}
	return nil, false
}

// typesOf returns the types that s allows; an empty list means any.
func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func (s *Schema) nullable(js *jsonschema.Schema, left *int) bool {
	return len(s.checkValue(js, nil, "", left)) == 0
}

// fits reports whether v has one of the types. A boolean is not an integer
// (D-018).
func fits(types []string, v any) bool {
	k := kind(v)
	return slices.Contains(types, k) || k == "integer" && slices.Contains(types, "number")
}
