package openai

import (
	"encoding/base64"
	"encoding/json"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// request puts req into OpenAI's words.
func (p *profile) request(c Config, req llm.Request) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{Model: c.Model, Messages: make([]openai.ChatCompletionMessage, 0, len(req.Messages)+1)}
	if p.completion {
		r.MaxCompletionTokens = c.MaxTokens
	} else {
		r.MaxTokens = c.MaxTokens //nolint:staticcheck // the only name that most vendors know
	}
	if !p.noUsage {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if req.System != "" {
		r.Messages = append(r.Messages, openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System})
	}
	for _, m := range req.Messages {
		r.Messages = append(r.Messages, p.message(c, m))
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, tool(t))
	}
	if len(r.Tools) > 0 {
		r.ReasoningEffort = p.effort
	}
	return r
}

// message never leaves out the content where providers insist on it: go-openai
// omits an empty one.
func (p *profile) message(c Config, m llm.Message) openai.ChatCompletionMessage {
	switch m.Role {
	case llm.ToolRole:
		return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: m.Call, Content: orElse(m.Text, "(no output)")}
	case llm.Assistant:
		out := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
		for _, call := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, openai.ToolCall{ID: call.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: call.Name, Arguments: object(call.Args)}})
		}
		if len(m.Calls) == 0 {
			out.Content = orElse(m.Text, "(no answer)")
		} else if p.thoughts && m.Model == c.Name {
			out.ReasoningContent = m.Reasoning
		}
		return out
	}
	out := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: orElse(m.Text, "(empty message)")}
	if len(m.Images) > 0 && !c.Blind {
		out.MultiContent, out.Content = parts(out.Content, m.Images), "" // go-openai takes one of the two
	}
	return out
}

// parts are text and what is shown beside it.
func parts(text string, images []llm.Image) []openai.ChatMessagePart {
	ps := []openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: text}}
	for _, i := range images {
		url := "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		ps = append(ps, openai.ChatMessagePart{Type: openai.ChatMessagePartTypeImageURL, ImageURL: &openai.ChatMessageImageURL{URL: url}})
	}
	return ps
}

func orElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// object returns args where they are a JSON object, as some providers parse
// what they are told of earlier calls, and otherwise an object that quotes them.
func object(args string) string {
	if args == "" {
		return "{}"
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &fields) == nil && fields != nil {
		return args
	}
	quoted, _ := json.Marshal(map[string]string{"invalid_json": args})
	return string(quoted)
}

func tool(t llm.ToolSpec) openai.Tool {
	schema := t.Schema
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return openai.Tool{Type: openai.ToolTypeFunction,
		Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: schema}}
}
