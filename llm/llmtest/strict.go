package llmtest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"parley/llm"
)

// A refusal is an error in OpenAI's format.
type refusal struct {
	Status  int    `json:"-"`
	Message string `json:"message"`
	Type    string `json:"type"`
	Param   any    `json:"param"`
	Code    any    `json:"code"`
}

func (r *refusal) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(r.Status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": r})
}

func refuse(param, code, format string, args ...any) *refusal {
	r := &refusal{Status: 400, Message: fmt.Sprintf(format, args...), Type: "invalid_request_error"}
	if param != "" {
		r.Param = param
	}
	if code != "" {
		r.Code = code
	}
	return r
}

func missing(param string) *refusal {
	return refuse(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func emptyArray(param string) *refusal {
	return refuse(param, "empty_array", "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

// parameters lists the fields that a request may have.
const parameters = ` model messages max_tokens max_completion_tokens temperature top_p n stream stop presence_penalty frequency_penalty
 response_format seed logit_bias logprobs top_logprobs user tools tool_choice parallel_tool_calls stream_options store metadata reasoning_effort
 service_tier verbosity safety_identifier prompt_cache_key `

type streaming struct{ on, usage bool }

// body has the fields that the Server checks.
type body struct {
	Model               string            `json:"model"`
	Messages            []json.RawMessage `json:"messages"`
	Tools               *[]tool           `json:"tools"`
	Stream              bool              `json:"stream"`
	StreamOptions       *streamOptions    `json:"stream_options"`
	MaxTokens           *int              `json:"max_tokens"`
	MaxCompletionTokens *int              `json:"max_completion_tokens"`
	Temperature         *float64          `json:"temperature"`
	ReasoningEffort     string            `json:"reasoning_effort"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type tool struct {
	Type     string `json:"type"`
	Function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	} `json:"function"`
}

type message struct {
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	Reasoning string          `json:"reasoning_content"`
	ToolCalls *[]struct {
		ID       *string `json:"id"`
		Type     string  `json:"type"`
		Function struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	ToolCallID string `json:"tool_call_id"`
}

// read reads and checks a request.
func (s *Server) read(r *http.Request) (Request, streaming, *refusal) {
	req := Request{Header: r.Header.Clone()}
	req.Body, _ = io.ReadAll(r.Body)
	if ref := s.authorise(r, "/v1/chat/completions", "application/json"); ref != nil {
		return req, streaming{}, ref
	}
	var b body
	if ref := parse(req.Body, &b); ref != nil {
		return req, streaming{}, ref
	}
	req.Model = b.Model
	for _, check := range []func(body) *refusal{checkShape, checkFamily, checkTools} {
		if ref := check(b); ref != nil {
			return req, streaming{}, ref
		}
	}
	if b.Tools != nil {
		for _, t := range *b.Tools {
			req.Tools = append(req.Tools, llm.ToolSpec{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
		}
	}
	var ref *refusal
	req.Messages, ref = readMessages(b.Messages)
	return req, streaming{b.Stream, b.StreamOptions != nil && b.StreamOptions.IncludeUsage}, ref
}

func (s *Server) authorise(r *http.Request, path, content string) *refusal {
	if r.Method != http.MethodPost || r.URL.Path != path {
		ref := refuse("", "unknown_url", "Unknown request URL: %s %s. Please check the URL for typos, or see the docs at https://platform.openai.com/docs/api-reference/.", r.Method, r.URL.Path)
		ref.Status = 404
		return ref
	}
	key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok || key == "" {
		ref := refuse("", "", "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).")
		ref.Status = 401
		return ref
	}
	if s.Key != "" && key != s.Key {
		ref := refuse("", "invalid_api_key", "Incorrect API key provided: %s. You can find your API key at https://platform.openai.com/account/api-keys.", key)
		ref.Status = 401
		return ref
	}
	if !strings.HasPrefix(r.Header.Get("Content-Type"), content) {
		return refuse("", "", "Unsupported content type: '%s'. This API method only accepts '%s' requests.", r.Header.Get("Content-Type"), content)
	}
	return nil
}

func parse(data []byte, b *body) *refusal {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return refuse("", "", "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)")
	}
	for name := range fields {
		if !slices.Contains(strings.Fields(parameters), name) {
			return refuse(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
		}
	}
	if err := json.Unmarshal(data, b); err != nil {
		return refuse("", "invalid_type", "Invalid type: %v.", err)
	}
	return nil
}

func checkShape(b body) *refusal {
	switch {
	case b.Model == "":
		return refuse("", "", "you must provide a model parameter")
	case b.Messages == nil:
		return missing("messages")
	case len(b.Messages) == 0:
		return emptyArray("messages")
	case b.StreamOptions != nil && !b.Stream:
		return refuse("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	case b.MaxTokens != nil && b.MaxCompletionTokens != nil:
		return refuse("max_tokens", "invalid_parameter_combination", "Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 2):
		return refuse("temperature", "decimal_above_max_value", "Invalid 'temperature': decimal out of range. Expected a value between 0 and 2.")
	}
	return nil
}

var (
	reasoning    = regexp.MustCompile(`^(o[134]|gpt-[56])(\W|$)`)
	responseOnly = regexp.MustCompile(`^(o[134]|gpt-5.*)-(pro|codex|deep-research)`)
)

// checkFamily checks the parameters that depend on the model. Routers such as
// OpenRouter put the vendor before the name.
func checkFamily(b body) *refusal {
	name := b.Model[strings.LastIndex(b.Model, "/")+1:]
	tools := b.Tools != nil
	switch {
	case !reasoning.MatchString(name):
		return nil
	case responseOnly.MatchString(name), tools && (strings.HasPrefix(name, "gpt-6-astra") || strings.HasPrefix(name, "gpt-6.1-sol")):
		ref := refuse("model", "", "This model is only supported in v1/responses and not in v1/chat/completions.")
		ref.Status = 404
		return ref
	case b.MaxTokens != nil:
		return refuse("max_tokens", "unsupported_parameter", "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	case b.Temperature != nil && *b.Temperature != 1:
		return refuse("temperature", "unsupported_value", "Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", *b.Temperature)
	case tools && strings.HasPrefix(name, "gpt-6") && b.ReasoningEffort != "none":
		return refuse("reasoning_effort", "", "Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. Please use /v1/responses instead or set reasoning_effort to 'none'.", name)
	}
	return nil
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

func checkName(param, name string) *refusal {
	switch {
	case name == "":
		return refuse(param, "empty_string", "Invalid '%s': empty string. Expected a string with minimum length 1, but got an empty string instead.", param)
	case len(name) > 64:
		return refuse(param, "string_above_max_length", "Invalid '%s': string too long. Expected a string with maximum length 64, but got a string with length %d instead.", param, len(name))
	case !functionName.MatchString(name):
		return refuse(param, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	}
	return nil
}

func checkTools(b body) *refusal {
	if b.Tools == nil {
		return nil
	}
	if len(*b.Tools) == 0 {
		return emptyArray("tools")
	}
	if len(*b.Tools) > 128 {
		return refuse("tools", "array_above_max_length", "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length %d instead.", len(*b.Tools))
	}
	for i, t := range *b.Tools {
		if t.Type != "function" {
			return refuse(fmt.Sprintf("tools[%d].type", i), "invalid_value", "Invalid value: '%s'. Supported values are: 'function' and 'custom'.", t.Type)
		}
		if ref := checkName(fmt.Sprintf("tools[%d].function.name", i), t.Function.Name); ref != nil {
			return ref
		}
		if ref := checkSchema(i, t.Function.Name, t.Function.Parameters); ref != nil {
			return ref
		}
	}
	return nil
}

func checkSchema(i int, name string, raw json.RawMessage) *refusal {
	if raw == nil {
		return nil
	}
	var schema struct {
		Type       any `json:"type"`
		Properties any `json:"properties"`
	}
	param := fmt.Sprintf("tools[%d].function.parameters", i)
	if json.Unmarshal(raw, &schema) != nil {
		return refuse(param, "invalid_type", "Invalid type for '%s': expected an object, but got something else instead.", param)
	}
	if schema.Type != "object" {
		got := "None"
		if schema.Type != nil {
			got = fmt.Sprint(schema.Type)
		}
		return refuse(param, "invalid_function_parameters", `Invalid schema for function '%s': schema must be a JSON Schema of 'type: "object"', got 'type: "%s"'.`, name, got)
	}
	if _, ok := schema.Properties.(map[string]any); schema.Properties != nil && !ok {
		return refuse(param, "invalid_function_parameters", "Invalid schema for function '%s': properties is not of type 'object'.", name)
	}
	return nil
}

// readMessages checks each message, and that every call has exactly one result right after it.
func readMessages(raw []json.RawMessage) ([]Message, *refusal) {
	var out []Message
	var asked, open []string // the calls of the last assistant message, and those without a result
	for i, r := range raw {
		var m message
		if err := json.Unmarshal(r, &m); err != nil {
			return out, refuse(fmt.Sprintf("messages[%d]", i), "invalid_type", "Invalid type for 'messages[%d]': %v.", i, err)
		}
		if m.Role != "tool" && len(open) > 0 {
			return out, unanswered(i, open)
		}
		read, ref := readMessage(i, m)
		if ref != nil {
			return out, ref
		}
		if m.Role == "tool" {
			if open, ref = answered(i, m.ToolCallID, asked, open); ref != nil {
				return out, ref
			}
		} else {
			asked = nil
			for _, c := range read.ToolCalls {
				asked = append(asked, c.ID)
			}
			open = append([]string(nil), asked...)
		}
		out = append(out, read)
	}
	if len(open) > 0 {
		return out, unanswered(len(raw), open)
	}
	return out, nil
}

func unanswered(i int, open []string) *refusal {
	return refuse(fmt.Sprintf("messages.[%d].role", i), "", "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}

func answered(i int, id string, asked, open []string) ([]string, *refusal) {
	param := fmt.Sprintf("messages.[%d]", i)
	if len(asked) == 0 {
		return open, refuse(param+".role", "", "Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
	}
	if id == "" {
		return open, missing(fmt.Sprintf("messages[%d].tool_call_id", i))
	}
	for n, o := range open {
		if o == id {
			return append(append([]string(nil), open[:n]...), open[n+1:]...), nil
		}
	}
	for _, a := range asked {
		if a == id {
			return open, refuse(param+".tool_call_id", "", "Duplicate value for 'tool_call_id' of '%s' in 'messages'.", id)
		}
	}
	return open, refuse(param+".tool_call_id", "", "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
}

func readMessage(i int, m message) (Message, *refusal) {
	out := Message{Role: m.Role, ToolCallID: m.ToolCallID, Reasoning: m.Reasoning}
	if !strings.Contains(" system assistant user tool developer ", " "+m.Role+" ") {
		return out, refuse(fmt.Sprintf("messages[%d].role", i), "invalid_value", "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
	}
	content := fmt.Sprintf("messages[%d].content", i)
	switch given := bytes.TrimSpace(m.Content); {
	case m.Role == "assistant" && (len(given) == 0 || string(given) == "null"):
		if m.ToolCalls == nil {
			return out, refuse(content, "", "Invalid value for 'content': expected a string, got null.")
		}
	case len(given) == 0:
		return out, missing(content)
	case given[0] == '"':
		_ = json.Unmarshal(given, &out.Content)
	case given[0] == '[':
		if ref := readParts(content, m.Role, given, &out); ref != nil {
			return out, ref
		}
	default:
		return out, refuse(content, "invalid_type", "Invalid value for 'content': expected a string, got %s.", given)
	}
	if m.ToolCalls == nil {
		return out, nil
	}
	if m.Role != "assistant" {
		return out, refuse(fmt.Sprintf("messages[%d].tool_calls", i), "", "'tool_calls' is only allowed for messages with role 'assistant'.")
	}
	return readCalls(i, m, out)
}

// readParts reads content that is a list: text, and what a user shows.
func readParts(at, role string, given json.RawMessage, out *Message) *refusal {
	var parts []struct {
		Type     string  `json:"type"`
		Text     *string `json:"text"`
		ImageURL *struct {
			URL string `json:"url"`
		} `json:"image_url"`
	}
	if err := json.Unmarshal(given, &parts); err != nil {
		return refuse(at, "invalid_type", "Invalid type for '%s': %v.", at, err)
	}
	if len(parts) == 0 {
		return emptyArray(at)
	}
	for i, p := range parts {
		at := fmt.Sprintf("%s[%d]", at, i)
		switch {
		case p.Type == "text" && p.Text != nil && *p.Text != "":
			out.Content += *p.Text
		case p.Type == "text":
			return missing(at + ".text")
		case p.Type != "image_url" || role != "user":
			return refuse(at+".type", "invalid_value", "Invalid value: '%s'. Supported values are: 'text' and, for users, 'image_url'.", p.Type)
		case p.ImageURL == nil:
			return missing(at + ".image_url")
		default:
			image, why := readImage(p.ImageURL.URL)
			if why != "" {
				return refuse(at+".image_url", "invalid_image_url", "%s", why)
			}
			out.Images = append(out.Images, image)
		}
	}
	return nil
}

// readImage reads a data URL. Others are refused: Parley never sends them.
func readImage(url string) (llm.Image, string) {
	head, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	raw, err := base64.StdEncoding.DecodeString(data)
	if !strings.HasPrefix(url, "data:") || !ok || err != nil {
		return llm.Image{}, "Invalid base64 image_url."
	}
	image, err := llm.NewImage(raw)
	if err != nil || image.Type != head {
		return image, fmt.Sprintf("You uploaded an unsupported image. Please make sure your image has of one the following formats: ['png', 'jpeg', 'gif', 'webp']. (%s: %v)", head, err)
	}
	return image, ""
}

func readCalls(i int, m message, out Message) (Message, *refusal) {
	if len(*m.ToolCalls) == 0 {
		return out, emptyArray(fmt.Sprintf("messages[%d].tool_calls", i))
	}
	ids := map[string]bool{}
	for j, c := range *m.ToolCalls {
		at := fmt.Sprintf("messages[%d].tool_calls[%d]", i, j)
		switch {
		case c.ID == nil:
			return out, missing(at + ".id")
		case *c.ID == "":
			return out, refuse(at+".id", "empty_string", "Invalid '%s.id': empty string. Expected a string with minimum length 1, but got an empty string instead.", at)
		case len(*c.ID) > 40:
			return out, refuse(at+".id", "string_above_max_length", "Invalid '%s.id': string too long. Expected a string with maximum length 40, but got a string with length %d instead.", at, len(*c.ID))
		case ids[*c.ID]:
			return out, refuse(at+".id", "", "Duplicate tool call id '%s' in 'messages[%d].tool_calls'.", *c.ID, i)
		case c.Type != "function":
			return out, missing(at + ".type")
		}
		ids[*c.ID] = true
		if ref := checkName(at+".function.name", c.Function.Name); ref != nil {
			return out, ref
		}
		args := bytes.TrimSpace(c.Function.Arguments)
		if len(args) == 0 {
			return out, missing(at + ".function.arguments")
		}
		call := llm.ToolCall{ID: *c.ID, Name: c.Function.Name}
		if json.Unmarshal(args, &call.Args) != nil || args[0] != '"' {
			return out, refuse(at+".function.arguments", "invalid_type", "Invalid type for '%s.function.arguments': expected a string, but got an object instead.", at)
		}
		out.ToolCalls = append(out.ToolCalls, call)
	}
	return out, nil
}
