package tools

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	"parley/llm"
	"parley/tools/arguments"
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
	schema, err := arguments.SchemaOf(reflect.TypeFor[In]())
	if err != nil {
		panic(fmt.Sprintf("tool %s: %v", name, err))
	}
	t := Tool{ToolSpec: llm.ToolSpec{Name: name, Description: description, Schema: schema.Source()}, args: schema}
	t.shown = sync.OnceValue(schema.Shown) // many tools are never listed
	var usual In
	if defaults := t.args.Defaults(); len(defaults) > 0 {
		if err := json.Unmarshal(defaults, &usual); err != nil {
			panic(fmt.Sprintf("tool %s: %v", name, err))
		}
	}
	t.Run = func(ctx context.Context, c Call) (Result, error) {
		in := usual
		if problem := arguments.Fill(name, c.Input, &in); problem != "" {
			return Failf(CodeInvalid, "%s", problem), nil
		}
		return fn(ctx, c, in)
	}
	return t
}

// Spec returns t as models are shown it.
func (t Tool) Spec() llm.ToolSpec {
	spec := t.ToolSpec
	if t.shown == nil || !t.args.IsOf(t.Schema) { // it was replaced
		return spec
	}
	spec.Schema = t.shown()
	return spec
}

// parsed returns t with its Schema parsed.
func (t Tool) parsed() Tool {
	if !t.args.IsOf(t.Schema) {
		t.args = arguments.ParseSchema(t.Schema)
	}
	return t
}

// prepare returns the arguments of a call of t: parsed, repaired and checked. If they
// are wrong, it returns a text for the model, and the tool must not run.
func (t Tool) prepare(args string) (in map[string]any, problem string) {
	in, problem = t.args.Prepare(t.Name, args, t.Aliases)
	if problem != "" && t.Invalid != nil {
		problem = cmp.Or(t.Invalid(arguments.Partial(args)), problem)
	}
	return in, problem
}
