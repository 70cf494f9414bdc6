package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"parley/chat"
	"parley/lazyregexp"
	"parley/response"
)

// Limits of what a request asks of its answer.
const (
	maxStops  = 4         // as OpenAI has it
	maxTools  = 128       // of the client, as OpenAI has it
	maxFormat = 64 << 10  // bytes of response_format
	maxSchema = 256 << 10 // bytes of all tools
)

// options are the fields of a request that say what its answer is to be.
type options struct {
	N                   *int
	MaxTokens           *int            `json:"max_tokens"`
	MaxCompletionTokens *int            `json:"max_completion_tokens"`
	Stop                stops           `json:"stop"`
	Format              json.RawMessage `json:"response_format"`
	Tools               functionTools   `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`

	Functions  json.RawMessage `json:"functions"`
	Logprobs   bool            `json:"logprobs"`
	Modalities []string        `json:"modalities"`
}

// stops are texts before which the answer ends: one, or a list.
type stops []string

// UnmarshalJSON implements [json.Unmarshaler].
func (s *stops) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(s))
	}
	var one *string
	if err := json.Unmarshal(b, &one); err != nil || one == nil {
		return err
	}
	*s = stops{*one}
	return nil
}

// functionTools are the tools of a request.
type functionTools []functionTool

// UnmarshalJSON implements [json.Unmarshaler].
func (ts *functionTools) UnmarshalJSON(b []byte) (err error) {
	*ts, err = readList[functionTool](b)
	return err
}

// A functionTool is a tool that the client runs.
type functionTool struct {
	Type     string
	Function struct {
		Name        string
		Description string
		Parameters  json.RawMessage
	}
}

// ownTools are names that no tool of a client can have, nor can it begin with mcp_: by these the agent finds others.
var ownTools = []string{"find_tool", "call_tool"}

var toolName = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)

// check returns the first thing that cannot be done, as a response.Problem.
func (o *options) check() error {
	most := cmp.Or(o.MaxCompletionTokens, o.MaxTokens)
	switch {
	case o.N != nil && *o.N != 1:
		return invalid("n", "n must be 1: there is only one answer.")
	case most != nil && *most < 1:
		return invalid("max_completion_tokens", "max_completion_tokens must be 1 or more.")
	case len(o.Stop) > maxStops || slices.Contains(o.Stop, ""):
		return invalid("stop", fmt.Sprintf("stop must be a text, or a list of %d at most.", maxStops))
	case isGiven(o.Functions):
		return unsupported("functions", "functions is not supported: use tools.")
	case o.Logprobs:
		return unsupported("logprobs", "logprobs is not supported.")
	case slices.ContainsFunc(o.Modalities, func(m string) bool { return m != "text" }):
		return unsupported("modalities", "The answer is a text: no other modality is supported.")
	}
	if err := o.checkFormat(); err != nil {
		return err
	}
	return o.checkTools()
}

// isGiven reports whether a field is there and not null.
func isGiven(field json.RawMessage) bool { return len(field) > 0 && string(field) != "null" }

// unsupported returns the problem of a request that asks for what there is not.
func unsupported(param, text string) response.Problem {
	return response.Problem{Status: http.StatusBadRequest, Text: text, Param: param, Code: "unsupported_parameter"}
}

// checkFormat checks response_format, and forgets one that asks for text.
func (o *options) checkFormat() error {
	if !isGiven(o.Format) {
		o.Format = nil
		return nil
	}
	var f struct {
		Type   string
		Schema struct {
			Name   string
			Schema map[string]any
		} `json:"json_schema"`
	}
	err := json.Unmarshal(o.Format, &f)
	switch {
	case err == nil && f.Type == "text":
		o.Format = nil
		return nil
	case err == nil && f.Type == "json_object":
	case err == nil && f.Type == "json_schema" && toolName.MatchString(f.Schema.Name) && f.Schema.Schema != nil:
	default:
		return invalid("response_format",
			"response_format must have the type text, json_object, or json_schema with a name and a schema.")
	}
	if len(o.Format) > maxFormat {
		return invalid("response_format", fmt.Sprintf("response_format must have %d KiB at most.", maxFormat>>10))
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, o.Format); err != nil {
		return invalid("response_format", "response_format is not JSON.")
	}
	o.Format = compact.Bytes()
	return nil
}

// checkTools checks the client's tools, and forgets them if none is to be called.
func (o *options) checkTools() error {
	var choice string
	if isGiven(o.ToolChoice) {
		_ = json.Unmarshal(o.ToolChoice, &choice) // an object names a tool
		if choice != "auto" && choice != "none" {
			return unsupported("tool_choice",
				"tool_choice must be auto or none: the agent decides which tools it uses.")
		}
	}
	if choice == "none" {
		o.Tools = nil
	}
	size := 0
	seen := map[string]bool{}
	for i, t := range o.Tools {
		param := fmt.Sprintf("tools[%d]", i)
		var schema map[string]any
		f := t.Function
		switch {
		case len(o.Tools) > maxTools:
			return invalid("tools", fmt.Sprintf("There can be %d tools at most.", maxTools))
		case t.Type != "function":
			return invalid(param+".type", "The type of a tool must be function.")
		case !toolName.MatchString(f.Name):
			return invalid(param+".function.name", "A tool's name must be 1 to 64 letters, digits, - and _.")
		case slices.Contains(ownTools, f.Name) || strings.HasPrefix(f.Name, "mcp_"):
			return invalid(param+".function.name", "Parley needs this name itself.")
		case seen[f.Name]:
			return invalid(param+".function.name", "Two tools have this name.")
		case isGiven(f.Parameters) && json.Unmarshal(f.Parameters, &schema) != nil:
			return invalid(param+".function.parameters", "The parameters must be the JSON Schema of an object.")
		}
		seen[f.Name] = true
		size += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	if size > maxSchema {
		return invalid("tools", fmt.Sprintf("All tools together must have %d KiB at most.", maxSchema>>10))
	}
	return nil
}

// clientTools returns the tools of the client.
func (o *options) clientTools() (all []chat.ClientTool) {
	for _, t := range o.Tools {
		f := t.Function
		if !isGiven(f.Parameters) {
			f.Parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		all = append(all, chat.ClientTool{
			Name: f.Name, Description: cmp.Or(strings.TrimSpace(f.Description), f.Name), Schema: f.Parameters,
		})
	}
	return all
}

// size returns how many bytes are kept of o for the answer.
func (o *options) size() int64 {
	n := len(o.Format)
	for _, t := range o.Tools {
		n += len(t.Function.Name) + len(t.Function.Description) + len(t.Function.Parameters)
	}
	return int64(n)
}

// wishes returns what q asks of its answer, nil if nothing.
func (q *request) wishes() *chat.Wishes {
	w := chat.Wishes{Format: q.Format}
	if q.Model != Name {
		w.Model = q.Model
	}
	if most := cmp.Or(q.MaxCompletionTokens, q.MaxTokens); most != nil {
		w.MaxTokens = *most
	}
	w.Tools = len(q.Tools) > 0
	if w.Model == "" && w.MaxTokens == 0 && w.Format == nil && !w.Tools {
		return nil
	}
	return &w
}

// end returns text up to the first of the stops. If more may follow, it leaves out what may be the
// beginning of one.
func (s stops) end(text string, more bool) string {
	for _, stop := range s {
		if before, _, found := strings.Cut(text, stop); found {
			text, more = before, false
		}
	}
	if !more {
		return text
	}
	short := text
	for _, stop := range s {
		for n := min(len(stop)-1, len(text)); n > 0; n-- {
			if strings.HasSuffix(text, stop[:n]) {
				short = short[:min(len(short), len(text)-n)]
				break
			}
		}
	}
	return short
}
