package custom

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/sandbox"
)

// A Source offers the tools of a Library to owners, and runs them in a sandbox (B-013, B-046). For
// other people they do not exist, whatever the rules of their category say (B-017).
type Source struct {
	Library    *Library
	Runner     sandbox.Runner
	MaxTimeout time.Duration       // for which a tool may run; 0: as its definition says
	Overrides  map[string]Override // by the name of the built-in tool
	Off        bool                // no tool is offered or run

	// Hosts are those that tools may reach which ask for the network; "*" is all public ones. With
	// HostNetwork they may reach all that the machine reaches.
	Hosts       []string
	HostNetwork bool

	// Visit prepares the workspace for tools that see it; nil: none can.
	Visit func(ctx context.Context, c tools.Call, mayWrite, mayReach bool) (sandbox.Visit, error)
}

// Tools implements [tools.Source].
func (s *Source) Tools(_ context.Context, scope tools.Scope) (all []tools.Tool, err error) {
	if scope.From.Role != chat.Owner {
		return nil, nil
	}
	for _, d := range s.usable() {
		for _, name := range s.names(d.ID) {
			t := s.tool(d)
			t.Name = name
			t.Description = cmp.Or(s.Overrides[name].Description, t.Description)
			all = append(all, t)
		}
	}
	return all, nil
}

// usable returns the tools that can be offered to models.
func (s *Source) usable() []Definition {
	if s.Off {
		return nil
	}
	return s.Library.List().Usable()
}

// stopTime is how long after its time the program of a tool has ended.
const stopTime = 5 * time.Second

// tool returns d as models use it. It runs the files as they are then (B-012).
func (s *Source) tool(d Definition) tools.Tool {
	return s.wrap(d, func(ctx context.Context, c tools.Call) (Outcome, error) {
		now, err := s.Library.Get(d.ID)
		if errors.Is(err, ErrNotFound) {
			return Outcome{Error: err.Error(), Message: err.Error()}, nil
		}
		o, _ := s.run(ctx, now, c)
		return o, err
	})
}

// isOnline reports whether the program of d may reach anything.
func (s *Source) isOnline(d Definition) bool { return d.Network && (s.HostNetwork || len(s.Hosts) > 0) }

// wrap returns d as a Tool that is run by run.
func (s *Source) wrap(d Definition, run func(context.Context, tools.Call) (Outcome, error)) tools.Tool {
	online := s.isOnline(d)
	return tools.Tool{
		ToolSpec: llm.ToolSpec{Name: d.ID, Description: d.Description, Schema: d.Parameters},
		Hints: tools.Hints{
			Category:  d.Category,
			Who:       tools.Owners,
			ReadOnly:  d.ReadOnly,
			Cacheable: d.ReadOnly && d.Workspace == WorkspaceNone, // B-078; files change
			Variant:   d.Revision,
			JSON:      true,
			Untrusted: online, // anybody may have written what it returns
			Timeout:   s.limit(d) + stopTime,
		},
		Guard:  func(tools.Call) bool { return online || !d.ReadOnly },
		Effect: func(tools.Call) string { return "run the custom tool " + d.ID },
		Ask: func(say texts.Asks, _ tools.Call) tools.Sentence {
			return tools.Asking(say.RunOwn, tools.Named(d.ID))
		},
		Consequence: func(say texts.Approval, _ tools.Call) string { return s.consequence(say, d) },
		Precheck:    func(c tools.Call) (tools.Result, error) { return checkOwner(c), nil },
		Run: func(ctx context.Context, c tools.Call) (tools.Result, error) {
			if wrong := checkOwner(c); wrong.Failed {
				return wrong, nil
			}
			o, err := run(ctx, c)
			if err == nil && ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			r := o.result()
			r.Tainted = len(o.sources) > 0
			r.Sources = o.sources
			return r, err
		},
	}
}

// checkOwner returns a failure for somebody who is no owner and has joined the turn of one (B-014).
func checkOwner(c tools.Call) tools.Result {
	if c.From.Role == chat.Owner {
		return tools.Result{}
	}
	return tools.Failf(tools.CodeNotFound, "Tool '%s' not found", c.Name)
}

// maxShown is how many characters of a message people see while the agent works.
const maxShown = 300

// result returns what the model reads, and what people see (B-059).
func (o Outcome) result() tools.Result {
	shown := chat.Clip(o.Message, maxShown, "…")
	if o.Success {
		data := map[string]any{"message": o.Message, "return_code": o.ReturnCode}
		if o.Truncated {
			data["truncated"] = true
		}
		if notes := o.networkNotes(); notes != "" {
			data["network"] = notes
		}
		return tools.Result{Data: data, Shown: shown}
	}
	text := o.Message
	if !strings.Contains(text, strings.TrimSpace(o.Output)) { // B-039, B-042, B-051
		text += "\n" + o.Output
	}
	if o.Status == statusCompleted && !strings.Contains(text, "return code") {
		text += fmt.Sprintf("\n(return code: %d)", o.ReturnCode)
	}
	if notes := o.networkNotes(); notes != "" {
		text += "\n" + notes
	}
	code := tools.CodeError
	if o.Status == statusTimeout {
		code = tools.CodeTimeout
	}
	return tools.Result{Text: text, Failed: true, Code: code, Shown: shown}
}

// networkNotes says which hosts a program did not reach, and by which rule.
func (o Outcome) networkNotes() string {
	switch {
	case o.WithoutHosts:
		return "the sandbox of this machine cannot let a program reach some hosts only, so it reached none"
	case len(o.Refused) > 0:
		return fmt.Sprintf("not reached: %s. A custom tool reaches the hosts of %s in the config, at the ports 80 "+
			`and 443 unless they are listed with another`, sandbox.ShowHosts(o.Refused), networkKey)
	}
	return ""
}

// A Trial is a run that an owner asks for to see whether a tool works (B-018).
type Trial struct {
	ID        string          `json:"id"`
	Draft     *Draft          `json:"draft"` // what is run instead of the tool as it is saved
	Arguments json.RawMessage `json:"arguments"`
}

// A Report is what became of a Trial. It is for owners only: it shows the program.
type Report struct {
	Outcome
	CodeRendered string         `json:"code_rendered"`
	Arguments    map[string]any `json:"arguments"` // as the tool got them; null if they were refused
	Text         string         `json:"text"`      // what a model would read
}

// Test makes a Trial for an owner, through the pipeline of stages. The error is ErrNotFound, or a
// *Refusal for a Draft that cannot be saved.
func (s *Source) Test(
	ctx context.Context,
	scope tools.Scope,
	t Trial,
	stages ...tools.Middleware,
) (r Report, err error) {
	if s.Off {
		return r, refusef("%s", MsgOff)
	}
	d, err := s.Library.trial(t)
	if err != nil {
		return r, err
	}
	ran := false
	tool := s.wrap(d, func(ctx context.Context, c tools.Call) (Outcome, error) {
		ran = true
		r.Arguments = c.Input
		r.Outcome, r.CodeRendered = s.run(ctx, d, c)
		return r.Outcome, nil
	})
	tool.Cacheable = false
	kit, err := tools.NewKit(ctx, scope, []tools.Source{tools.Fixed{tool}}, stages...)
	if err != nil {
		return r, err
	}
	call := llm.ToolCall{ID: "test", Name: d.ID, Args: string(t.Arguments)}
	result := kit.Call(ctx, tools.Call{ToolCall: call, Scope: scope})
	if !ran {
		r.Outcome = s.begin(d)
		r.Missing = firstMissing(d, t.Arguments)
		r.Error = reason(result)
		r.Message = r.Error
	}
	r.Text = result.Text
	return r, nil
}

// reason returns why a call failed, without the JSON that models read it in.
func reason(r tools.Result) string {
	var read struct{ Error string }
	if json.Unmarshal([]byte(r.Text), &read) == nil && read.Error != "" {
		return read.Error
	}
	return r.Text
}

// firstMissing returns the first required argument that a call of d lacks, "" if it has all (B-033).
func firstMissing(d Definition, arguments json.RawMessage) string {
	var given map[string]json.RawMessage
	if json.Unmarshal(arguments, &given) != nil {
		return ""
	}
	for _, name := range d.Required {
		if given[name] == nil || string(given[name]) == "null" {
			return name
		}
	}
	return ""
}

// trial returns the tool that t is about.
func (l *Library) trial(t Trial) (Definition, error) {
	if t.Draft == nil {
		d, err := l.Get(t.ID)
		if err != nil {
			return d, err
		}
		if d.InvalidID {
			return d, refusef("%s", d.ValidationError)
		}
		return d, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	draft := *t.Draft
	draft.Revision = ""
	folder, files, err := l.plan(draft)
	if err != nil {
		return Definition{}, err
	}
	return parse(folder, files)
}
