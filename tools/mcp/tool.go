package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

const (
	// maxSchema is how long the schema of a tool may be, in bytes. A tool with a longer one is left out.
	maxSchema = 64 << 10

	// maxSchemas is how long all schemas of a server may be.
	maxSchemas = 4 << 20

	// maxDescription is how much of a description models are shown, in characters.
	maxDescription = 4000

	// answerTime is what a call has beyond its time limit, so that its own words about that are read.
	answerTime = 2 * time.Second
)

// A toolMaker makes tools of what a server offers.
type toolMaker struct {
	v       *supervisor
	seen    map[string]bool
	schemas int // bytes
	made    []tools.Tool
}

// makeTools returns the tools for what l has, under names that are all different.
func (v *supervisor) makeTools(l Listing) []tools.Tool {
	m := &toolMaker{v: v, seen: map[string]bool{}}
	enabled := v.server.enabled()
	for _, t := range l.Tools {
		if enabled.takes(v.key.server, t.Name) {
			m.addTool(t)
		}
	}
	if !enabled.all { // D-113
		v.warnOfMissing(enabled, l)
		return m.made
	}
	for _, r := range l.Resources {
		m.addResource(r)
	}
	for _, t := range l.Templates {
		m.addTemplate(t)
	}
	for _, p := range l.Prompts {
		m.addPrompt(p)
	}
	return m.made
}

// enabledNames are the names of EnabledTools.
type enabledNames struct {
	all  bool
	want map[string]bool // name -> a tool has it
}

func (s *Server) enabled() enabledNames {
	e := enabledNames{want: map[string]bool{}}
	for _, name := range s.EnabledTools {
		e.all = e.all || name == "*"
		e.want[name] = false
	}
	return e
}

// takes reports whether the tool may be used, and notes that there is one of that name (D-104).
func (e enabledNames) takes(server, name string) bool {
	taken := e.all
	for _, known := range []string{name, WrapName(server, name)} {
		if _, listed := e.want[known]; listed {
			e.want[known] = true
			taken = true
		}
	}
	return taken
}

// warnOfMissing names the enabled tools that the server does not have, and those that it has (D-104).
func (v *supervisor) warnOfMissing(e enabledNames, l Listing) {
	var missing, there []string
	for _, name := range slices.Sorted(maps.Keys(e.want)) {
		if !e.want[name] {
			missing = append(missing, name)
		}
	}
	for _, t := range l.Tools {
		there = append(there, t.Name)
	}
	if len(missing) > 0 {
		v.warnOnce("enabledTools names tools that the MCP server does not have", "missing", missing, "there", there)
	}
}

// add adds a tool, unless there is one of its name or its schema is too long.
func (m *toolMaker) add(name string, t tools.Tool) {
	t.Name = WrapName(m.v.key.server, name)
	m.schemas += len(t.Schema)
	switch {
	case m.seen[t.Name]:
		m.v.warnOnce("MCP tool left out: another one has its name", "tool", t.Name)
		return
	case len(t.Schema) > maxSchema || m.schemas > maxSchemas:
		m.v.warnOnce("MCP tool left out: its schema is too long", "tool", t.Name, "bytes", len(t.Schema))
		return
	}
	m.seen[t.Name] = true
	t.Category = Category(m.v.key.server)
	t.Who = m.v.server.rule()
	t.Untrusted = true
	t.Private = true
	t.Repeatable = t.ReadOnly
	t.Timeout = min(m.v.server.ToolTimeout+answerTime, tools.MaxTimeout)
	if m.v.config.SignIn != nil || m.v.config.Inputs != nil {
		t.Timeout = tools.MaxTimeout // call limits the time, without that in which a person signs in or is asked
	}
	if inputs := m.v.config.Inputs; inputs != nil {
		t.Resumes = inputs.Kept
	}
	t.Guard = m.v.guard(t.ReadOnly)
	t.Ask = askUse(m.v.key.server, t.Name, t.Display)
	t.Description = chat.Clip(strings.ToValidUTF8(t.Description, "\ufffd"), maxDescription, "…")
	m.made = append(m.made, t)
}

// askUse returns what says which tool of the server a call would use. What the server calls it may be a lie:
// the name that Parley knows it by stands beside it.
func askUse(server, name, display string) func(texts.Asks, tools.Call) tools.Sentence {
	return func(say texts.Asks, _ tools.Call) tools.Sentence {
		return tools.Asking(say.UseOf, tools.Named(cmp.Or(display, name)), tools.Quoted(name), tools.Named(server))
	}
}

// addTool adds a tool of the server. What it may do follows from its annotations: one that is not
// said to be read-only has effects, and one that is said to destroy something needs approval.
func (m *toolMaker) addTool(of *sdk.Tool) {
	schema, err := objectSchema(of.InputSchema)
	if err != nil {
		m.v.warnOnce("MCP tool left out: its schema cannot be used", "tool", of.Name, "err", err)
		return
	}
	hints := cmp.Or(of.Annotations, &sdk.ToolAnnotations{})
	title := cmp.Or(of.Title, hints.Title)
	fallback := fmt.Sprintf("The tool %s of the MCP server %s.", cmp.Or(title, of.Name), m.v.key.server)
	t := tools.Tool{
		ToolSpec: llm.ToolSpec{Description: cmp.Or(strings.TrimSpace(of.Description), fallback), Schema: schema},
		Hints:    tools.Hints{ReadOnly: hints.ReadOnlyHint, Display: chat.Clip(chat.OneLine(title), 60, "…")},
		Run:      m.v.runTool(of.Name, hints.ReadOnlyHint),
	}
	if !hints.ReadOnlyHint && hints.DestructiveHint != nil && *hints.DestructiveHint {
		t.Risky = func(tools.Call) bool { return true }
		t.Grantable = func(tools.Call) bool { return true }
	}
	m.add(of.Name, t)
}

// runTool calls the tool by the name that the server knows (D-106).
func (v *supervisor) runTool(name string, readOnly bool) func(context.Context, tools.Call) (tools.Result, error) {
	r := request{what: "tool call", readOnly: readOnly}
	r.send = func(ctx context.Context, c *connection, call tools.Call, a Answers) (tools.Result, Questions, error) {
		token, stop := c.showProgress(call)
		defer stop()
		input := call.Input
		if input == nil {
			input = map[string]any{}
		}
		p := &sdk.CallToolParams{Name: name, Arguments: input, InputResponses: a.All, RequestState: a.State}
		p.SetProgressToken(token)
		got, err := c.session.CallTool(ctx, p)
		if err != nil {
			return tools.Result{}, Questions{}, err
		}
		if got.NeedsInput() {
			return tools.Result{}, asking(got.InputRequests, got.RequestState), nil
		}
		return v.results.OfTool(call, got), Questions{}, nil
	}
	return func(ctx context.Context, call tools.Call) (tools.Result, error) { return v.call(ctx, call, r) }
}

// objectSchema returns the schema of arguments as models take it: of an object.
func objectSchema(of any) (json.RawMessage, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(text, []byte("null")) {
		return json.RawMessage(`{"type":"object","properties":{}}`), nil
	}
	var schema map[string]json.RawMessage
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, errors.New("it is no object")
	}
	kind, has := schema["type"]
	switch {
	case !has:
		schema["type"] = json.RawMessage(`"object"`)
	case string(kind) != `"object"`:
		return nil, fmt.Errorf("its type is %s", kind)
	}
	if _, has := schema["properties"]; !has {
		schema["properties"] = json.RawMessage(`{}`)
	}
	delete(schema, "$schema") // models are told it for nothing
	return json.Marshal(schema)
}

// addResource adds a tool that reads a resource (D-110).
func (m *toolMaker) addResource(of *sdk.Resource) {
	description := strings.TrimSpace(cmp.Or(of.Description, of.Title, of.Name))
	m.add("resource_"+of.Name, tools.Tool{
		ToolSpec: llm.ToolSpec{
			Description: fmt.Sprintf("[MCP Resource] %s\nURI: %s", description, of.URI),
			Schema:      json.RawMessage(`{"type":"object","properties":{}}`),
		},
		Hints: tools.Hints{ReadOnly: true},
		Run:   m.v.readResource(func(tools.Call) (string, error) { return of.URI, nil }),
	})
}

// addTemplate adds a tool that reads the resource that its parameters make of a template.
func (m *toolMaker) addTemplate(of *sdk.ResourceTemplate) {
	template, err := uritemplate.New(of.URITemplate)
	if err != nil {
		m.v.warnOnce("MCP resource left out: its address cannot be used", "resource", of.Name, "err", err)
		return
	}
	properties := map[string]any{}
	for _, name := range template.Varnames() {
		properties[name] = map[string]any{"type": "string"}
	}
	description := strings.TrimSpace(cmp.Or(of.Description, of.Title, of.Name))
	m.add("resource_"+of.Name, tools.Tool{
		ToolSpec: llm.ToolSpec{
			Description: fmt.Sprintf("[MCP Resource] %s\nURI: %s", description, of.URITemplate),
			Schema:      schemaOf(properties, template.Varnames()),
		},
		Hints: tools.Hints{ReadOnly: true},
		Run: m.v.readResource(func(c tools.Call) (string, error) {
			values := uritemplate.Values{}
			for name, value := range c.Input {
				values.Set(name, uritemplate.String(fmt.Sprint(value)))
			}
			return template.Expand(values)
		}),
	})
}

// schemaOf returns the schema of an object.
func schemaOf(properties map[string]any, required []string) json.RawMessage {
	schema := map[string]any{"type": "object", "properties": properties}
	if len(required) > 0 {
		slices.Sort(required)
		schema["required"] = slices.Compact(required)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		panic(err) // it has nothing but maps, lists and texts
	}
	return text
}

// readResource reads the resource that uri says.
func (v *supervisor) readResource(
	uri func(tools.Call) (string, error),
) func(context.Context, tools.Call) (tools.Result, error) {
	r := request{what: "resource read", readOnly: true}
	r.send = func(ctx context.Context, c *connection, call tools.Call, a Answers) (tools.Result, Questions, error) {
		address, err := uri(call)
		if err != nil {
			return tools.Result{}, Questions{}, err
		}
		p := &sdk.ReadResourceParams{URI: address, InputResponses: a.All, RequestState: a.State}
		got, err := c.session.ReadResource(ctx, p)
		if err != nil {
			return tools.Result{}, Questions{}, err
		}
		if got.NeedsInput() {
			return tools.Result{}, asking(got.InputRequests, got.RequestState), nil
		}
		return v.results.OfResource(call, got.Contents), Questions{}, nil
	}
	return func(ctx context.Context, call tools.Call) (tools.Result, error) { return v.call(ctx, call, r) }
}

// PromptMark begins the descriptions of tools that fill in prompts.
const PromptMark = "[MCP Prompt]"

// addPrompt adds a tool that fills in a prompt (D-111).
func (m *toolMaker) addPrompt(of *sdk.Prompt) {
	properties := map[string]any{}
	var required []string
	for _, a := range of.Arguments {
		if a == nil {
			continue
		}
		property := map[string]any{"type": "string"}
		if a.Description != "" {
			property["description"] = a.Description
		}
		properties[a.Name] = property
		if a.Required {
			required = append(required, a.Name)
		}
	}
	description := strings.TrimSpace(cmp.Or(of.Description, of.Title, of.Name))
	const returns = "Returns a filled prompt template that can be used as a workflow guide."
	m.add("prompt_"+of.Name, tools.Tool{
		ToolSpec: llm.ToolSpec{
			Description: fmt.Sprintf("%s %s\n%s", PromptMark, description, returns),
			Schema:      schemaOf(properties, required),
		},
		Hints: tools.Hints{ReadOnly: true},
		Run:   m.v.getPrompt(of.Name),
	})
}

// getPrompt fills in a prompt with the arguments of a call.
func (v *supervisor) getPrompt(name string) func(context.Context, tools.Call) (tools.Result, error) {
	r := request{what: "prompt", readOnly: true}
	r.send = func(ctx context.Context, c *connection, call tools.Call, a Answers) (tools.Result, Questions, error) {
		arguments := map[string]string{}
		for key, value := range call.Input {
			arguments[key] = fmt.Sprint(value)
		}
		p := &sdk.GetPromptParams{Name: name, Arguments: arguments, InputResponses: a.All, RequestState: a.State}
		got, err := c.session.GetPrompt(ctx, p)
		if err != nil {
			return tools.Result{}, Questions{}, err
		}
		if got.NeedsInput() {
			return tools.Result{}, asking(got.InputRequests, got.RequestState), nil
		}
		return v.results.OfPrompt(call, got.Messages), Questions{}, nil
	}
	return func(ctx context.Context, call tools.Call) (tools.Result, error) { return v.call(ctx, call, r) }
}
