package custom

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/lazyregexp"
	"parley/texts"
	"parley/tools"
	"parley/tools/custom/template"
	"parley/tools/sandbox"
)

// runner is the Python program that runs the program of a tool. It reads the program and its
// variables from stdin (R-S21).
//
//go:embed run.py
var runner string

// A job is what runner reads.
type job struct {
	Source    string              `json:"source"`
	Template  string              `json:"template"` // which tracebacks show
	Variables []template.Variable `json:"variables"`
}

// schemaParts is what the arguments of a tool's program depend on in its schema.
type schemaParts struct {
	Properties map[string]json.RawMessage
	Required   []string
}

// parameters returns the parameters of d as its template needs them.
func (d *Definition) parameters() map[string]template.Parameter {
	var schema schemaParts
	_ = json.Unmarshal(d.Parameters, &schema) // it was checked
	all := map[string]template.Parameter{}
	for name, raw := range schema.Properties {
		var property struct {
			Default any
			Enum    []any
		}
		_ = json.Unmarshal(raw, &property) // "true" is a schema, too
		all[name] = template.Parameter{Default: property.Default, Choices: property.Enum}
	}
	for _, name := range schema.Required {
		p := all[name]
		p.Required = true
		all[name] = p
	}
	return all
}

// lint returns what the author of a tool should mend although it is offered.
func lint(d Definition) (warnings []string) {
	complete := map[string]any{}
	for name := range d.parameters() {
		complete[name] = nil
	}
	if _, err := template.Render(d.Code, d.parameters(), complete); err != nil {
		warnings = append(warnings, explainRender(err))
	}
	if evaluates.MatchString(d.Code) { // B-040
		warnings = append(warnings, "execution.py calls eval or exec: never give them what a model wrote")
	}
	return warnings
}

var evaluates = lazyregexp.New(`(?m)^[^#\n]*\b(eval|exec)\s*\(`)

// explainRender says why a template makes no program, and what helps.
func explainRender(err error) string {
	missing, ok := errors.AsType[*template.MissingError](err)
	if !ok || missing.Declared {
		return err.Error()
	}
	return fmt.Sprintf("%v\nNo argument has this name. Braces of Python's own must be doubled: {{ and }} "+
		"(execution.py, line %d)", err, missing.Line)
}

// run runs d for c, and returns the program that was made of its template.
func (s *Source) run(ctx context.Context, d Definition, c tools.Call) (o Outcome, rendered string) {
	o = s.begin(d)
	defer func() { o.finish(d) }()
	if strings.TrimSpace(d.Code) == "" {
		o.Error = "the custom tool has no code in execution.py" // B-045
		return o, ""
	}
	program, err := template.Render(d.Code, d.parameters(), c.Input)
	if missing, ok := errors.AsType[*template.MissingError](err); ok {
		o.Missing = missing.Key
	}
	if err != nil {
		o.Error = explainRender(err)
		return o, ""
	}
	visit, err := s.visit(ctx, d, c)
	if err != nil {
		o.Error = fmt.Sprintf("the program was not run, for want of the workspace: %v", err)
		return o, program.Source
	}
	defer visit.End()
	o.sources = visit.Sources
	s.execute(ctx, d, program, visit, &o)
	return o, program.Source
}

// visit returns what the program of d sees of the workspace.
func (s *Source) visit(ctx context.Context, d Definition, c tools.Call) (sandbox.Visit, error) {
	if d.Workspace != WorkspaceRead && d.Workspace != WorkspaceWrite {
		return sandbox.Visit{End: func() {}}, nil
	}
	if s.Visit == nil {
		return sandbox.Visit{}, errors.New("there is none")
	}
	return s.Visit(ctx, c, d.Workspace == WorkspaceWrite, s.isOnline(d))
}

// execute runs a program in the sandbox.
func (s *Source) execute(
	ctx context.Context, d Definition, program template.Program, visit sandbox.Visit, o *Outcome,
) {
	stdout := sandbox.Ends{Max: maxOutput}
	stderr := sandbox.Ends{Max: maxOutput}
	done, err := s.Runner.Run(ctx, sandbox.Spec{
		Args:    []string{"python3", "-I", "-u", "-B", "-c", runner},
		Stdin:   bytes.NewReader(encode(job{program.Source, d.Code, program.Variables})),
		Stdout:  &stdout,
		Stderr:  &stderr,
		Dir:     visit.Work,
		Folders: visit.Folders,
		Network: s.network(d),
		Limits:  sandbox.Limits{Wall: s.limit(d)},
	})
	o.ElapsedMS = done.Took.Milliseconds()
	if err != nil {
		o.Error = s.explainSandbox(err)
		return
	}
	o.read(&stdout, &stderr)
	o.Truncated = o.Truncated || done.Dropped > 0
	o.ReturnCode = done.Exit
	o.Refused = done.Refused
	o.WithoutHosts = done.WithoutHosts
	switch done.End {
	case sandbox.Exited:
		o.Status = statusCompleted
		o.Success = done.Exit == 0
	case sandbox.TimedOut:
		o.Status = statusTimeout
	case sandbox.Exceeded:
		o.Error = "the program was stopped because it used more memory, time or processes than a custom tool may"
	case sandbox.Cancelled:
		o.Error = "the program was stopped"
	}
}

// explainSandbox says why a program did not run.
func (s *Source) explainSandbox(err error) string {
	switch {
	case errors.Is(err, sandbox.ErrNoSandbox):
		return "no sandbox works on this machine: custom tools are disabled" // B-046
	}
	return fmt.Sprintf("the program could not be started: %v", err)
}

// networkKey is the config key of Source.Hosts.
const networkKey = "tools.custom.network"

// network returns what d may connect to: nothing, unless it asks for the network and the config
// grants it.
func (s *Source) network(d Definition) sandbox.Network {
	switch {
	case !d.Network:
		return sandbox.Network{}
	case s.HostNetwork:
		return sandbox.Network{All: true}
	}
	return sandbox.Network{Hosts: s.Hosts, Key: networkKey}
}

// consequence tells a person who is asked about d what it may reach.
func (s *Source) consequence(say texts.Approval, d Definition) string {
	n := s.network(d)
	switch {
	case n.All:
		return say.WholeNetwork
	case len(n.Hosts) == 0 || !sandbox.ConfinesHosts(context.Background(), s.Runner):
		return ""
	case slices.Contains(n.Hosts, "*"):
		return say.PublicNetwork
	}
	return say.Hosts.With(strings.Join(n.Hosts, ", "))
}

// limit returns how long d may run (B-025).
func (s *Source) limit(d Definition) time.Duration {
	limit := time.Duration(d.Timeout * float64(time.Second))
	if s.MaxTimeout > 0 {
		limit = min(limit, s.MaxTimeout)
	}
	return limit
}

// begin returns the Outcome of a run that has not begun.
func (s *Source) begin(d Definition) Outcome {
	return Outcome{
		Status: statusError, ReturnCode: -1, CustomTool: true, ToolID: d.ID, Timeout: s.limit(d).Seconds(),
	}
}
