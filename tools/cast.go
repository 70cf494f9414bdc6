package tools

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// mended returns in without what models get wrong: names by Tool.Aliases
// (E-002), types where the schema says so (D-011, C-037), nulls that mean nothing
// (E-037), and names with a leading "_", which are ours. What cannot be
// mended is left for check to report (D-012).
func (t Tool) mended(in map[string]any) map[string]any {
	if s := t.shape.schema; s != nil && s.Type == "object" { // D-013
		return castArgs(s, t.Aliases, in)
	}
	return in
}

func castArgs(s *jsonschema.Schema, aliases map[string]string, in map[string]any) map[string]any {
	out := make(map[string]any, len(in))
	for name, v := range in {
		if s.Properties[name] != nil || !strings.HasPrefix(name, "_") {
			out[name] = v
		}
	}
	if len(aliases) > 0 {
		rename(s, aliases, out)
	}
	return castObject(s, out, out)
}

// rename puts right the names in args that are aliases; of several for one
// name the first in the alphabet counts.
func rename(s *jsonschema.Schema, aliases map[string]string, args map[string]any) {
	for _, wrong := range slices.Sorted(maps.Keys(aliases)) {
		v, has := args[wrong]
		if has && args[aliases[wrong]] == nil && s.Properties[wrong] == nil {
			delete(args, wrong)
			args[aliases[wrong]] = v
		}
	}
}

// cast returns v as s wants it, or v itself. It never changes v in place.
func cast(s *jsonschema.Schema, v any) any {
	if s == nil {
		return v
	}
	types := typesOf(s)
	if len(types) == 0 || fits(types, v) {
		return castWithin(s, v)
	}
	for _, want := range types {
		if w, ok := castTo(want, v); ok {
			return castWithin(s, w)
		}
	}
	return v
}

// castWithin casts what is inside a list or an object.
func castWithin(s *jsonschema.Schema, v any) any {
	switch v := v.(type) {
	case map[string]any:
		return castObject(s, v, make(map[string]any, len(v)))
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cast(s.Items, e)
		}
		return out
	}
	return v
}

// castObject puts what is in in, cast, into out, which may be the same.
func castObject(s *jsonschema.Schema, in, out map[string]any) map[string]any {
	for name, v := range in {
		p := s.Properties[name]
		if p == nil {
			p = s.AdditionalProperties
		}
		if v == nil && s.Properties[name] != nil && !nullable(p) {
			delete(out, name)
			continue
		}
		out[name] = cast(p, v)
	}
	return out
}

// castTo returns v as a value of a JSON Schema type.
func castTo(want string, v any) (any, bool) {
	words, isText := v.(string)
	words = strings.TrimSpace(words)
	switch want {
	case "integer":
		if f, ok := v.(float64); ok && f == math.Trunc(f) && math.Abs(f) < 1<<53 {
			return int64(f), true
		}
		i, err := strconv.ParseInt(words, 10, 64)
		return i, isText && err == nil
	case "number":
		if _, err := strconv.ParseFloat(words, 64); isText && err == nil && strings.Trim(words, "+-.0123456789eE") == "" {
			return numbers(json.Number(words)), true // as if it had been written as a number
		}
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
		return text(v), err == nil
	case "array", "object":
		if w, err := decode(words); isText && err == nil && kind(w) == want {
			return w, true
		}
	}
	return nil, false
}

// typesOf returns the types that s allows; none means any.
func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func nullable(s *jsonschema.Schema) bool {
	types := typesOf(s)
	return len(types) == 0 || slices.Contains(types, "null")
}

// fits says whether v is of one of the types. A boolean is no integer (D-018).
func fits(types []string, v any) bool {
	k := kind(v)
	return slices.Contains(types, k) || k == "integer" && slices.Contains(types, "number")
}
