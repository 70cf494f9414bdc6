package openai

import (
	"encoding/base64"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// minTemperature stands for a temperature of 0, which go-openai omits. The effect
// is the same.
const minTemperature = 1e-6

// newRequest returns req as OpenAI's API has it.
func (p *profile) newRequest(c Config, req llm.Request) openai.ChatCompletionRequest {
	r := openai.ChatCompletionRequest{
		Model:    c.Model,
		Messages: make([]openai.ChatCompletionMessage, 0, len(req.Messages)+1),
	}
	if p.completionTokens {
		r.MaxCompletionTokens = c.MaxTokens
	} else {
		r.MaxTokens = c.MaxTokens //nolint:staticcheck // the only name that most vendors know
	}
	if c.Temperature != nil && !p.noTemperature {
		r.Temperature = float32(max(*c.Temperature, minTemperature))
	}
	if !p.noUsage {
		r.StreamOptions = &openai.StreamOptions{IncludeUsage: true}
	}
	if req.System != "" {
		system := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleSystem, Content: req.System}
		r.Messages = append(r.Messages, system)
	}
	for _, m := range req.Messages {
		r.Messages = append(r.Messages, p.newMessage(c, m))
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, newTool(t))
	}
	if len(r.Tools) > 0 {
		r.ReasoningEffort = p.effort
	}
	return r
}

func (p *profile) newMessage(c Config, m llm.Message) openai.ChatCompletionMessage {
	switch m.Role {
	case llm.ToolRole:
		return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleTool, ToolCallID: m.Call, Content: m.Text}
	case llm.Assistant:
		return p.newAssistantMessage(c, m)
	}
	out := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: m.Text}
	if len(m.Images) > 0 && c.Sees() {
		out.MultiContent = newParts(out.Content, m.Images)
		out.Content = "" // go-openai accepts only one of the two
	}
	return out
}

func (p *profile) newAssistantMessage(c Config, m llm.Message) openai.ChatCompletionMessage {
	out := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: m.Text}
	for _, call := range m.Calls {
		out.ToolCalls = append(out.ToolCalls, openai.ToolCall{
			ID:       call.ID,
			Type:     openai.ToolTypeFunction,
			Function: openai.FunctionCall{Name: call.Name, Arguments: call.Args},
		})
	}
	if len(m.Calls) > 0 && p.wantsReasoning && m.Model == c.Name {
		out.ReasoningContent = m.Reasoning
	}
	return out
}

// newParts returns a text and the pictures beside it.
func newParts(text string, images []llm.Image) []openai.ChatMessagePart {
	parts := []openai.ChatMessagePart{{Type: openai.ChatMessagePartTypeText, Text: text}}
	for _, i := range images {
		url := "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
		parts = append(parts, openai.ChatMessagePart{
			Type:     openai.ChatMessagePartTypeImageURL,
			ImageURL: &openai.ChatMessageImageURL{URL: url},
		})
	}
	return parts
}

func newTool(t llm.ToolSpec) openai.Tool {
	return openai.Tool{
		Type:     openai.ToolTypeFunction,
		Function: &openai.FunctionDefinition{Name: t.Name, Description: t.Description, Parameters: t.Schema},
	}
}
