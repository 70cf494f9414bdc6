package openai

import (
	"encoding/base64"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// coldest stands for a temperature of 0, which go-openai leaves out: the
// likeliest word always wins, as with 0.
const coldest = 1e-6

// request puts req into OpenAI's words.
func (p *profile) request(c Config, req llm.Request) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{
		Model:    c.Model,
		Messages: make([]openai.ChatCompletionMessage, 0, len(req.Messages)+1),
	}
	if p.completion {
		r.MaxCompletionTokens = c.MaxTokens
	} else {
		r.MaxTokens = c.MaxTokens //nolint:staticcheck // the only name that most vendors know
	}
	if c.Temperature != nil && !p.noTemperature {
		r.Temperature = float32(max(*c.Temperature, coldest))
	}
	if !p.noUsage {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if req.System != "" {
		r.Messages = append(r.Messages,
			openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System})
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

func (p *profile) message(c Config, m llm.Message) openai.ChatCompletionMessage {
	switch m.Role {
	case llm.ToolRole:
		return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: m.Call, Content: m.Text}
	case llm.Assistant:
		out := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
		for _, call := range m.Calls {
			out.ToolCalls = append(out.ToolCalls, openai.ToolCall{ID: call.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: call.Name, Arguments: call.Args}})
		}
		if len(m.Calls) > 0 && p.thoughts && m.Model == c.Name {
			out.ReasoningContent = m.Reasoning
		}
		return out
	}
	out := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: m.Text}
	if len(m.Images) > 0 && c.Sees() {
		out.MultiContent, out.Content = parts(out.Content, m.Images), "" // go-openai takes one of the two
	}
	return out
}

// parts are text and what is shown beside it.
func parts(text string, images []llm.Image) []openai.ChatMessagePart {
	ps := []openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: text}}
	for _, i := range images {
		url := "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		ps = append(
			ps,
			openai.ChatMessagePart{
				Type:     openai.ChatMessagePartTypeImageURL,
				ImageURL: &openai.ChatMessageImageURL{URL: url},
			},
		)
	}
	return ps
}

func tool(t llm.ToolSpec) openai.Tool {
	return openai.Tool{Type: openai.ToolTypeFunction,
		Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Schema}}
}
