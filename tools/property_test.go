package tools

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
	"parley/tools/arguments"
)

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
		calls = append(calls, callNo(i, "a", arguments.JSON(map[string]int{"i": i})))
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
