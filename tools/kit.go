package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"parley/llm"
)

// A Kit is the tools of one session, each behind the pipeline. It never
// changes and is safe for use by several goroutines.
type Kit struct {
	all   []Tool                 // as they were offered, in order
	ready map[string]func() Tool // behind the pipeline, by name: few of them are called in a turn
	mw    []Middleware
}

// NewKit gathers what the sources offer and puts each tool behind mw, the
// first outermost. Sources stand from the lowest layer to the highest: of two
// tools with one name the later source's counts; within a source it is an error.
func NewKit(ctx context.Context, scope Scope, sources []Source, mw ...Middleware) (*Kit, error) {
	k := &Kit{ready: map[string]func() Tool{}, mw: mw}
	for _, s := range sources {
		offered, err := s.Tools(ctx, scope)
		if err != nil {
			return nil, fmt.Errorf("gather tools: %w", err)
		}
		layer := map[string]bool{}
		for _, t := range offered {
			if err := t.complete(); err != nil {
				return nil, err
			}
			if layer[t.Name] {
				return nil, fmt.Errorf("gather tools: Tool %q is already registered", t.Name)
			}
			layer[t.Name] = true
		}
		k.all = slices.DeleteFunc(k.all, func(t Tool) bool { return layer[t.Name] })
		k.all = append(k.all, offered...)
	}
	k.all = slices.DeleteFunc(k.all, func(t Tool) bool {
		return scope.Only != nil && !slices.Contains(scope.Only, t.canonical())
	})
	slices.SortFunc(k.all, func(a, b Tool) int { return bySpec(a.ToolSpec, b.ToolSpec) })
	for i := range k.all {
		t := &k.all[i]
		k.ready[t.Name] = sync.OnceValue(func() Tool { return Chain(t.shaped(), mw...) })
	}
	return k, nil
}

// complete says what t lacks to be a tool (D-001).
func (t Tool) complete() error {
	switch {
	case t.Name == "":
		return errors.New("tool without a name")
	case t.Description == "":
		return fmt.Errorf("tool %s: no description", t.Name)
	case len(t.Schema) == 0:
		return fmt.Errorf("tool %s: no schema", t.Name)
	case t.Run == nil:
		return fmt.Errorf("tool %s: nothing to run", t.Name)
	}
	return nil
}

// listed reports whether models are told of t.
func (t Tool) listed() bool { return t.AliasOf == "" && !t.Hidden }

// bySpec sorts by name, those of MCP servers last: the list's bytes must not
// change, or the provider's prompt cache is lost (D-025).
func bySpec(a, b llm.ToolSpec) int {
	rank := func(s llm.ToolSpec) int {
		if strings.HasPrefix(s.Name, "mcp_") {
			return 1
		}
		return 0
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name))
}

// Specs returns what the model is told, always in the same order (D-025). The
// copy is the caller's (D-010).
func (k *Kit) Specs() (specs []llm.ToolSpec) {
	for _, t := range k.all {
		if t.listed() {
			t.Schema = bytes.Clone(t.Schema)
			specs = append(specs, t.ToolSpec)
		}
	}
	return specs
}

// Tool returns the tool called name, or the one that name must mean; else the
// zero Tool and false.
func (k *Kit) Tool(name string) (Tool, bool) {
	if k.ready[name] == nil {
		name = repair(k.all, name).Name
	}
	if ready := k.ready[name]; ready != nil {
		return ready(), true
	}
	return Tool{}, false
}

// Tools returns all tools as they were offered, those that are not listed too, in order.
func (k *Kit) Tools() []Tool { return slices.Clone(k.all) }

// Asks reports whether a person will be asked before c is run, or by it.
func (k *Kit) Asks(c Call) bool {
	t, ok := k.Tool(c.Name)
	if !ok || !t.may(c.From) {
		return false
	}
	if t.Waits() || !t.Dangerous && t.rule != Ask && t.Guard == nil {
		return t.Waits()
	}
	in, problem := t.prepare(c.Args)
	c.Input = in
	return problem == "" && t.asks(c)
}

// Call runs the tool that c names and returns what the model is to read. A
// failure's text begins with "Error: " and ends with a hint (D-024), that of a
// tool whose Hints say JSON is in its envelope; whether a call failed
// says only Result.Failed (D-040). Of a call whose ctx ended the result has
// CodeCancelled, unless the tool had done its work.
func (k *Kit) Call(ctx context.Context, c Call) Result {
	t, wrong := k.resolve(&c)
	if wrong.Failed {
		return k.refuse(ctx, t, c, wrong)
	}
	r, err := t.Run(ctx, c)
	return t.finish(ctx, r, err)
}

// Check returns c as it would be run, or says in the words for the model why it
// would not be: there is no such tool for who asks, or the arguments are wrong.
func (k *Kit) Check(c Call) (Call, error) {
	if _, wrong := k.resolve(&c); wrong.Failed {
		return c, errors.New(wrong.Text)
	}
	return c, nil
}

// resolve returns the tool that c names, and puts right its name and its Input;
// or else it returns what failed, with the tool if there is one.
func (k *Kit) resolve(c *Call) (Tool, Result) {
	t, ok := k.Tool(c.Name)
	if !ok || !t.may(c.From) {
		return Tool{}, Failf(CodeNotFound, "%s", k.unknown(*c))
	}
	c.Name = t.Name
	in, problem := t.prepare(c.Args)
	if problem != "" {
		return t, Failf(CodeInvalid, "%s", problem)
	}
	c.Input = in
	return t, Result{}
}

// refuse answers c, which was to call asked, with r. The pipeline sees it as any other call.
func (k *Kit) refuse(ctx context.Context, asked Tool, c Call, r Result) Result {
	t := Tool{
		ToolSpec: llm.ToolSpec{Name: c.Name, Description: asked.Description},
		Hints:    Hints{AliasOf: asked.AliasOf, ReadOnly: true},
	}
	t.Run = func(context.Context, Call) (Result, error) { return r, nil }
	r, err := Chain(t.shaped(), k.mw...).Run(ctx, c)
	return asked.finish(ctx, r, err)
}

const (
	prefix = "Error: "
	hint   = "\n\n[Analyze the error above and try a different approach.]"
)

// outcome folds err into r.
func outcome(ctx context.Context, r Result, err error) Result {
	if err != nil {
		r.Text, r.Failed = err.Error(), true
	}
	if r.Failed && r.Code != CodeCancelled && ctx.Err() != nil {
		c := cancelled(ctx)
		r.Text, r.Code = c.Text, c.Code
	}
	if r.Failed && r.Code == "" {
		r.Code = CodeError
	}
	return r
}

// finish makes the model's text of an outcome of t.
func (t Tool) finish(ctx context.Context, r Result, err error) Result {
	r = outcome(ctx, r, err)
	if r.JSON = t.JSON; t.JSON {
		r.Text = envelope(r, true)
	}
	if !r.Failed || t.JSON {
		return r
	}
	r.Text = prefix + strings.TrimPrefix(r.Text, prefix)
	if r.Code != CodeCancelled && r.Code != CodeRefused && !strings.HasSuffix(r.Text, hint) {
		r.Text += hint
	}
	return r
}

// cancelled is the result of a call that ctx ended.
func cancelled(ctx context.Context) Result {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) {
		return Failf(CodeCancelled, "cancelled by the user")
	}
	return Failf(CodeCancelled, "cancelled: %v", cause)
}
