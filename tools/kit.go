package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"

	"parley/llm"
	"parley/tools/arguments"
)

// A Kit has the tools of one session, each wrapped in the pipeline. It never
// changes, and is safe for concurrent use.
type Kit struct {
	all []Tool // as offered by the sources, sorted
	mw  []Middleware

	mu    sync.Mutex
	ready map[string]Tool // wrapped in the pipeline on first use, by name, because a turn calls few of them

	// Short says that the tools of MCP servers are left out of the list because they are too many. Then they
	// stay so while the conversation lasts (see Scope.Short).
	Short bool

	Notice string // tells the model which tools are switched off (B-073), and what MCP servers say of theirs

	// Command returns the call that a message of a person stands for, if that is a command of a tool (see
	// [IsCommand]): "/mcp_notes_prompt_plan city=Paris". If there is no such call, problem says so to the
	// person. It returns neither for other messages, and may be nil.
	Command func(text string) (calls []llm.ToolCall, problem string)
}

// IsCommand reports whether a slash command of this name would be one of a tool: of a prompt of an MCP server.
func IsCommand(name string) bool {
	return strings.HasPrefix(name, "mcp_")
}

// NewKit collects the tools of the sources and wraps each in mw, of which the
// first is the outermost. If two sources offer a tool with the same name, the
// later one wins; within one source that is an error.
func NewKit(ctx context.Context, scope Scope, sources []Source, mw ...Middleware) (*Kit, error) {
	k := &Kit{all: make([]Tool, 0, usualTools), mw: mw}
	begins := make([]int, 0, len(sources)) // where in k.all those of each source begin
	for _, source := range sources {
		begins = append(begins, len(k.all))
		var err error
		if k.all, err = AppendTools(ctx, source, scope, k.all); err != nil {
			return nil, fmt.Errorf("gather tools: %w", err)
		}
	}
	for i := range k.all {
		if err := k.all[i].complete(); err != nil {
			return nil, err
		}
	}
	n, err := arrange(k.all, begins)
	if err != nil {
		return nil, err
	}
	clear(k.all[n:])
	k.all = Keep(k.all[:n], 0, func(t *Tool) bool {
		return scope.Only == nil || slices.Contains(scope.Only, t.canonical())
	})
	return k, nil
}

// arrange brings the tools that a Kit has of all to the front, in its order, and returns how many they are.
// Those of each source begin at one of begins.
func arrange(all []Tool, begins []int) (n int, err error) {
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		return cmp.Or(bySpec(&all[i].ToolSpec, &all[j].ToolSpec), j-i) // of the same name the later one first
	})
	kept := make([]int, 0, len(all))
	var replaced []int
	for n, i := range order {
		if n == 0 || all[i].Name != all[order[n-1]].Name {
			kept = append(kept, i)
			continue
		}
		later := order[n-1]
		if !slices.ContainsFunc(begins, func(begin int) bool { return i < begin && begin <= later }) {
			return 0, fmt.Errorf("gather tools: Tool %q is already registered", all[i].Name)
		}
		replaced = append(replaced, i)
	}
	permute(all, append(kept, replaced...))
	return len(kept), nil
}

// permute puts all in the order that has been given, by number.
func permute(all []Tool, order []int) {
	for place, from := range order {
		for from < place { // it was swapped
			from = order[from]
		}
		all[place], all[from] = all[from], all[place]
	}
}

// usualTools is how many tools a Kit has room for from the beginning: those of Parley itself.
const usualTools = 64

// find returns the tool with this name as it was offered, or nil.
func (k *Kit) find(name string) *Tool {
	for i := range k.all {
		if k.all[i].Name == name {
			return &k.all[i]
		}
	}
	return nil
}

// wrapped returns t, a tool of k, wrapped in the pipeline.
func (k *Kit) wrapped(t *Tool) Tool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if ready, ok := k.ready[t.Name]; ok {
		return ready
	}
	if k.ready == nil {
		k.ready = map[string]Tool{}
	}
	ready := Chain(t.parsed(), k.mw...)
	k.ready[t.Name] = ready
	return ready
}

// Take returns the tools of k without a copy. Whoever changes them must not use k any more, except for With.
func (k *Kit) Take() []Tool { return k.all }

// With returns a Kit that has all instead of the tools of k, in this order, and is the same otherwise. Neither k
// nor all must be changed any more. The tools must be complete, and their names different.
func (k *Kit) With(all []Tool) *Kit { return &Kit{all: all, mw: k.mw, Notice: k.Notice} }

// complete returns an error if t lacks something that a tool needs (D-001).
func (t *Tool) complete() error {
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

// listed reports whether t is in the list that models are given.
func (t Tool) listed() bool { return t.AliasOf == "" && !t.Hidden && t.Through == "" }

// bySpec sorts tools by name, those of MCP servers last. The order must not change
// between requests, or the provider's prompt cache is lost (D-025).
func bySpec(a, b *llm.ToolSpec) int {
	rank := func(s *llm.ToolSpec) int {
		if strings.HasPrefix(s.Name, "mcp_") {
			return 1
		}
		return 0
	}
	return cmp.Or(rank(a)-rank(b), strings.Compare(a.Name, b.Name))
}

// Specs returns the list of tools for the model, always in the same order (D-025).
// The caller may change it (D-010).
func (k *Kit) Specs() (specs []llm.ToolSpec) {
	specs = make([]llm.ToolSpec, 0, len(k.all))
	for i := range k.all {
		if t := &k.all[i]; t.listed() {
			spec := t.Spec()
			spec.Schema = bytes.Clone(spec.Schema)
			specs = append(specs, spec)
		}
	}
	return specs
}

// Lists reports whether specs are the Specs of k.
func (k *Kit) Lists(specs []llm.ToolSpec) bool {
	for i := range k.all {
		t := &k.all[i]
		if !t.listed() {
			continue
		}
		if len(specs) == 0 || !specs[0].Equal(t.Spec()) {
			return false
		}
		specs = specs[1:]
	}
	return len(specs) == 0
}

// Tool returns the tool with this name, or the one that a misspelt name must mean.
// Otherwise it returns the zero Tool and false.
func (k *Kit) Tool(name string) (Tool, bool) {
	t := k.find(name)
	if t == nil {
		t = k.find(repair(k.all, name).Name)
	}
	if t == nil {
		return Tool{}, false
	}
	return k.wrapped(t), true
}

// maxNested is how many calls may stand for one another.
const maxNested = 4

// Inner returns the call that c stands for, which most calls do themselves. If the tool that c names
// takes the name of another one and cannot tell which is meant, that is c.
func (k *Kit) Inner(c llm.ToolCall) llm.ToolCall {
	for range maxNested {
		t, ok := k.Tool(c.Name)
		if !ok || t.Inner == nil {
			return c
		}
		name, args, ok := t.Inner(c.Args)
		if in, problem := t.prepare(c.Args); !ok && problem == "" {
			name, args, ok = t.Inner(arguments.JSON(in))
		}
		if !ok {
			return c
		}
		c = llm.ToolCall{ID: c.ID, Name: name, Args: args, Through: t.Name}
	}
	return c
}

// InnerSoFar is Inner for a call that is coming in. ok is false if it does not yet say what it stands for.
func (k *Kit) InnerSoFar(c llm.ToolCall) (inner llm.ToolCall, ok bool) {
	t, ok := k.Tool(c.Name)
	if !ok || t.Inner == nil {
		return c, true
	}
	name, args, ok := t.Inner(arguments.JSON(arguments.Partial(c.Args)))
	if !ok || k.find(name) == nil {
		return c, false
	}
	return llm.ToolCall{ID: c.ID, Name: name, Args: args, Through: t.Name}, true
}

// Has reports whether Tool returns a tool for name.
func (k *Kit) Has(name string) bool {
	_, ok := k.Tool(name)
	return ok
}

// All yields all tools, including those that are not listed, in order. They must not be changed.
func (k *Kit) All() iter.Seq[*Tool] {
	return func(yield func(*Tool) bool) {
		for i := range k.all {
			if !yield(&k.all[i]) {
				return
			}
		}
	}
}

// Tools returns a copy of all tools, including those that are not listed, in order.
func (k *Kit) Tools() []Tool { return slices.Clone(k.all) }

// Asks reports whether a person will be asked before c runs, or by c itself.
func (k *Kit) Asks(c Call) bool {
	t, ok := k.Tool(c.Name)
	if !ok || !t.May(c.From) {
		return false
	}
	waits := t.Waits(c)
	if waits || !t.Dangerous && t.whoMay() != Ask && t.Guard == nil && t.Risky == nil {
		return waits
	}
	in, problem := t.prepare(c.Args)
	c.Input = in
	return problem == "" && t.asks(c)
}

// Call runs the tool that c names, and returns what the model is to read. The text
// of a failure begins with "Error: " and ends with a hint (D-024); for a tool with
// the hint JSON it is inside the JSON. Only Result.Failed says whether a
// call failed (D-040). If ctx ended before the tool was done, the result has
// CodeCancelled.
func (k *Kit) Call(ctx context.Context, c Call) Result {
	t, wrong := k.resolve(&c)
	if wrong.Failed {
		return k.refuse(ctx, t, c, wrong)
	}
	r, err := t.Run(ctx, c)
	return t.finish(ctx, r, err)
}

// Check returns c as it would be run, or the error that the model would read
// instead: the tool does not exist for this person, or the arguments are wrong.
// c must name the tool itself.
func (k *Kit) Check(c Call) (Call, error) {
	if inner := k.Inner(c.ToolCall); inner.Through != "" {
		return c, fmt.Errorf("name the tool %s itself, with its own arguments, instead of %s", inner.Name, c.Name)
	}
	if _, wrong := k.resolve(&c); wrong.Failed {
		return c, errors.New(wrong.Text)
	}
	return c, nil
}

// resolve returns the tool that c stands for, and makes c a call of it, with Input. If that
// fails, it returns a failure, with the tool if there is one.
func (k *Kit) resolve(c *Call) (Tool, Result) {
	c.ToolCall = k.Inner(c.ToolCall)
	t, ok := k.Tool(c.Name)
	if !ok || !t.May(c.From) {
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

// refuse answers c, a call of the tool asked, with r. It passes through the
// pipeline like any other call.
func (k *Kit) refuse(ctx context.Context, asked Tool, c Call, r Result) Result {
	t := Tool{
		ToolSpec: llm.ToolSpec{Name: c.Name, Description: asked.Description},
		Hints:    Hints{AliasOf: asked.AliasOf, ReadOnly: true},
	}
	t.Run = func(context.Context, Call) (Result, error) { return r, nil }
	r, err := Chain(t.parsed(), k.mw...).Run(ctx, c)
	return asked.finish(ctx, r, err)
}

const (
	prefix = "Error: "
	hint   = "\n\n[Analyze the error above and try a different approach.]"
)

// outcome merges err into r.
func outcome(ctx context.Context, r Result, err error) Result {
	if err != nil {
		r.Text = err.Error()
		r.Failed = true
	}
	if r.Failed && r.Code != CodeCancelled && r.Receipt == "" && ctx.Err() != nil {
		c := cancelled(ctx)
		r.Text = c.Text
		r.Code = c.Code
	}
	if r.Failed && r.Code == "" {
		r.Code = CodeError
	}
	return r
}

// finish makes the text for the model from the outcome of a call.
func (t Tool) finish(ctx context.Context, r Result, err error) Result {
	return t.inWords(outcome(ctx, r, err))
}

// inWords returns r with the text that the model reads.
func (t Tool) inWords(r Result) Result {
	r.JSON = t.JSON
	if t.JSON {
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

// cancelled is the result of a call whose ctx ended.
func cancelled(ctx context.Context) Result {
	cause := context.Cause(ctx)
	if cause == nil || errors.Is(cause, context.Canceled) {
		return Failf(CodeCancelled, "cancelled by the user")
	}
	return Failf(CodeCancelled, "cancelled: %v", cause)
}
