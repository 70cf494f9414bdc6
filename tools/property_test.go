package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"parley/llm"
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
		return text(v)
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
		s := parsed(t, text(js))
		if s.rest != nil {
			rt.Fatalf("%s is unusual", text(js))
		}
		good := object(t, text(values(rt, js)))
		if wrong := s.check(good); len(wrong) > 0 {
			rt.Fatalf("%s for %s: %s", text(good), text(js), wrong)
		}
		if got := s.castArgs(nil, good); !reflect.DeepEqual(got, good) {
			rt.Fatalf("%s was valid for %s and becomes %s", text(good), text(js), text(got))
		}
		bad, ok := muddle(rt, good).(map[string]any)
		if !ok {
			return
		}
		before := text(bad)
		once := s.castArgs(nil, object(t, before))
		twice := s.castArgs(nil, once)
		if !reflect.DeepEqual(once, twice) || !slices.Equal(s.check(once), s.check(twice)) {
			rt.Fatalf("%s becomes %s and then %s for %s", before, text(once), text(twice), text(js))
		}
		rest, err := s.schema.CloneSchemas().Resolve(nil)
		if err != nil {
			rt.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal([]byte(text(once)), &plain); err != nil {
			rt.Fatal(err)
		}
		if wrong, err := s.check(once), rest.Validate(plain); (len(wrong) == 0) != (err == nil) {
			rt.Fatalf("%s for %s: %q, but the library says %v", text(once), text(js), wrong, err)
		}
	})
}

// What check does not look at is left to the library.
func TestUsual(t *testing.T) {
	for schema, want := range map[string]bool{
		anything: true, wide: false, `{"type":"object","additionalProperties":false}`: true,
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

// A sign is a Source that says what hangs on it today.
type sign struct{ description, schema string }

func (s *sign) Tools(context.Context, Scope) ([]Tool, error) {
	t := echo("query", s.schema)
	t.Description = s.description
	return []Tool{t}, nil
}

// C-001, C-002, C-003, C-025: what a source says counts from the next turn on, for what the model is told and what is checked.
func TestSourceChanges(t *testing.T) {
	s := &sign{"Tables: a.", `{"type":"object","properties":{"table":{"enum":["a"]}}}`}
	turn := func() *Kit {
		k, err := NewKit(t.Context(), Scope{}, []Source{s}, Standard(StandardConfig{})...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := turn()
	*s = sign{"Tables: a, b.", `{"type":"object","properties":{"table":{"enum":["a","b"]}}}`}
	for _, c := range []struct {
		kit         *Kit
		description string
		want        string
	}{{first, "Tables: a.", `Error: Invalid parameters for tool 'query': table must be one of ["a"]` + hint}, {turn(), "Tables: a, b.", `{"table":"b"}`}} {
		if r := c.kit.Call(t.Context(), callTo("query", `{"table":"b"}`)); r.Text != c.want || c.kit.Specs()[0].Description != c.description {
			t.Errorf("%s: %s, want %s", c.kit.Specs()[0].Description, r.Text, c.want)
		}
	}
}

// C-025, C-035, C-036: of a name in two layers the higher one's tool is the one that is listed, and the one that runs;
// D-025: whatever the order of registration within the layers, the list's bytes are the same.
func TestLayersOfAny(t *testing.T) {
	layer := func(says string, names ...string) Fixed {
		var f Fixed
		for _, name := range names {
			u := answering(Hints{}, Result{Text: says}, nil)
			u.Name, u.Description = name, says
			f = append(f, u)
		}
		rand.Shuffle(len(f), func(i, j int) { f[i], f[j] = f[j], f[i] })
		return f
	}
	var before []llm.ToolSpec
	for range 100 {
		sources := []Source{layer("system", "attempt_completion", "new_task"), layer("built-in", "exec", "read_file", "web_search"),
			layer("mcp", "mcp_b_x", "mcp_a_y", "exec"), layer("user", "attempt_completion", "calc", "exec")}
		k, err := NewKit(t.Context(), Scope{}, sources, Standard(StandardConfig{})...)
		if err != nil {
			t.Fatal(err)
		}
		specs := k.Specs()
		if before != nil && !reflect.DeepEqual(specs, before) {
			t.Fatalf("%v, and before %v", specs, before)
		}
		before = specs
		if r := k.Call(t.Context(), callTo("attempt_completion", "{}")); r.Text != "user" {
			t.Fatalf("C-035: %+v", r)
		}
	}
	var list []string
	for _, s := range before {
		list = append(list, s.Name+"="+s.Description)
	}
	if got, want := strings.Join(list, " "), "attempt_completion=user calc=user exec=user new_task=system read_file=built-in web_search=built-in mcp_a_y=mcp mcp_b_x=mcp"; got != want {
		t.Errorf("C-036: %s", got)
	}
}

// C-046, C-047, A-086: a working calculator in one expression, whose value is its result.
func TestNew(t *testing.T) {
	sum := New("sum", "Adds two numbers.", func(_ context.Context, _ Call, in struct {
		A float64 `json:"a"`
		B float64 `json:"b"`
	}) (Result, error) {
		return Result{Data: in.A + in.B}, nil
	})
	k := kitOf(t, sum)
	for args, want := range map[string]string{
		`{"a":1,"b":"2.5"}`: "3.5", `{"a":1}`: "Error: Invalid parameters for tool 'sum': b is required" + hint,
	} {
		if r := k.Call(t.Context(), callTo("sum", args)); r.Text != want {
			t.Errorf("%s: %s", args, r.Text)
		}
	}
}

// D-010: an alias is called by its own name, and not listed.
func TestUnlisted(t *testing.T) {
	canonical, alias, hidden := echo("read_file", anything), echo("file_read", anything), echo("secret", anything)
	alias.AliasOf, alias.JSON, hidden.Hidden = "read_file", true, true
	k := kitOf(t, canonical, alias, hidden)
	if specs := k.Specs(); len(specs) != 1 || specs[0].Name != "read_file" || len(k.Tools()) != 3 {
		t.Errorf("listed are %v", specs)
	}
	if r := k.Call(t.Context(), callTo("file_read", "{}")); r.Text != `{"success":true,"data":"{}","error":null}` {
		t.Errorf("%+v", r)
	}
	if r := k.Call(t.Context(), callTo("secret", "{}")); r.Text != "{}" {
		t.Errorf("%+v", r)
	}
}

// E-031: whatever faults tools have, in whatever order, each call has one result (C-005, A-010).
func TestFaults(t *testing.T) {
	fault := echo("a", anything)
	fault.Hints.ReadOnly = true
	fault.Run = func(_ context.Context, c Call) (Result, error) {
		switch rand.IntN(5) {
		case 0:
			panic(fmt.Sprint("broken at ", c.ID))
		case 1:
			return Result{}, errors.New("no")
		case 2:
			return Result{Data: map[string]any{"success": false}}, nil
		case 3:
			return Result{}, nil
		}
		return Result{Text: c.ID}, nil
	}
	k := kitOf(t, fault)
	var calls []Call
	for i := range 20 {
		calls = append(calls, callNo(i, "a", text(map[string]int{"i": i})))
	}
	n := 0
	for _, group := range k.Groups(calls) {
		for i, r := range k.Together(t.Context(), group) {
			if r.Text == "" || !r.Failed && r.Text != group[i].ID && !strings.HasPrefix(r.Text, "(a completed") {
				t.Errorf("%s: %+v", group[i].ID, r)
			}
			n++
		}
	}
	if n != 20 {
		t.Errorf("%d results", n)
	}
}
