package arguments

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

// schemas draws a schema, and values a value that it allows.
func schemas(t *rapid.T, depth int) map[string]any {
	kinds := []string{"integer", "number", "string", "boolean", "enum", "null"}
	if depth > 0 {
		kinds = append(kinds, "array", "object")
	}
	switch k := rapid.SampledFrom(kinds).Draw(t, "kind"); k {
	case "integer", "number":
		return map[string]any{"type": k, "minimum": -1000, "maximum": 1000}
	case "string":
		return map[string]any{"type": k, "minLength": 1, "maxLength": 8}
	case "enum":
		return map[string]any{"type": "string", "enum": []any{"a", "5", "true"}}
	case "null":
		return map[string]any{"type": []any{"string", "null"}}
	case "array":
		return map[string]any{"type": k, "items": schemas(t, depth-1), "maxItems": 3}
	case "object":
		return objects(t, depth-1)
	default:
		return map[string]any{"type": k}
	}
}

func objects(t *rapid.T, depth int) map[string]any {
	names := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "path", "_own", ""}), 0, 4, rapid.ID[string]).Draw(t, "names")
	properties := map[string]any{}
	for _, name := range names {
		properties[name] = schemas(t, depth)
	}
	s := map[string]any{"type": "object", "properties": properties}
	if rapid.Bool().Draw(t, "closed") {
		s["additionalProperties"] = false
	}
	if len(names) > 0 && rapid.Bool().Draw(t, "required") {
		s["required"] = []any{names[0]}
	}
	return s
}

func values(t *rapid.T, s map[string]any) any {
	if enum, ok := s["enum"].([]any); ok {
		return rapid.SampledFrom(enum).Draw(t, "one of")
	}
	switch s["type"] {
	case "integer":
		return rapid.Int64Range(-1000, 1000).Draw(t, "integer")
	case "number":
		return rapid.Float64Range(-1000, 1000).Draw(t, "number") + 0
	case "string":
		return rapid.SampledFrom([]string{"x", "true", "5", "null", "{}", "[1]", " 7 ", "äöü"}).Draw(t, "string")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "array":
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "items"))
		for i := range list {
			list[i] = values(t, s["items"].(map[string]any))
		}
		return list
	case "object":
		m := map[string]any{}
		properties, _ := s["properties"].(map[string]any)
		required, _ := s["required"].([]any)
		for _, name := range sorted(properties) {
			if slices.Contains(required, any(name)) || rapid.Bool().Draw(t, "with "+name) {
				m[name] = values(t, properties[name].(map[string]any))
			}
		}
		return m
	default: // nullable
		return rapid.SampledFrom([]any{nil, "x", "null"}).Draw(t, "nullable")
	}
}

func sorted(m map[string]any) (names []string) {
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// muddle returns v as a model may get it wrong.
func muddle(t *rapid.T, v any) any {
	switch rapid.IntRange(0, 5).Draw(t, "muddle") {
	case 0:
		return JSON(v)
	case 1:
		return rapid.SampledFrom([]any{nil, "", "yes", 1.5, true, []any{}, map[string]any{"a": nil}}).Draw(t, "instead")
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, name := range sorted(v) {
			out[name] = muddle(t, v[name])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = muddle(t, v[i])
		}
		return out
	}
	return v
}

// D-011, D-014: what is valid is never changed; what was cast is cast, and judged the same again; and what
// passes is valid for the library too, which is asked only about unusual schemas.
func TestCastOfAny(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		js := objects(rt, 2)
		s := parsed(t, JSON(js))
		if s.rest != nil {
			rt.Fatalf("%s is unusual", JSON(js))
		}
		good := object(t, JSON(values(rt, js)))
		if wrong := s.check(good); len(wrong) > 0 {
			rt.Fatalf("%s for %s: %s", JSON(good), JSON(js), wrong)
		}
		if got := s.castArgs(nil, good); !reflect.DeepEqual(got, good) {
			rt.Fatalf("%s was valid for %s and becomes %s", JSON(good), JSON(js), JSON(got))
		}
		bad, ok := muddle(rt, good).(map[string]any)
		if !ok {
			return
		}
		before := JSON(bad)
		once := s.castArgs(nil, object(t, before))
		twice := s.castArgs(nil, once)
		if !reflect.DeepEqual(once, twice) || !slices.Equal(s.check(once), s.check(twice)) {
			rt.Fatalf("%s becomes %s and then %s for %s", before, JSON(once), JSON(twice), JSON(js))
		}
		rest, err := s.schema.CloneSchemas().Resolve(nil)
		if err != nil {
			rt.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal([]byte(JSON(once)), &plain); err != nil {
			rt.Fatal(err)
		}
		if wrong, err := s.check(once), rest.Validate(plain); (len(wrong) == 0) != (err == nil) {
			rt.Fatalf("%s for %s: %q, but the library says %v", JSON(once), JSON(js), wrong, err)
		}
	})
}

// What check does not look at is left to the library.
func TestUsual(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object"}`: true, wide: false, `{"type":"object","additionalProperties":false}`: true,
		`{"type":"object","properties":{"a":{"type":"string","description":"x","default":"y","maxLength":3}}}`: true,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^a"}}}`:                                false,
		`{"type":"object","properties":{"a":{"items":{"anyOf":[{}]}}}}`:                                        false,
		`{"type":"object","additionalProperties":{"multipleOf":2}}`:                                            false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"$defs":{"x":{"type":"string"}}}`:            false,
		`{"type":"object","minProperties":1}`:                                                                  false,
	} {
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(schema), &s); err != nil || usual(&s) != want {
			t.Errorf("usual(%s) is not %v, %v", schema, want, err)
		}
	}
}
