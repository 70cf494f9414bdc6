package openai

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	openai "github.com/sashabaranov/go-openai"

	"parley/llm"
)

// minTemperature stands for a temperature of 0, which go-openai omits. The effect
// is the same.
const minTemperature = 1e-6

// newRequest returns req as OpenAI's API has it, without the tools (see toolList).
func (p *profile) newRequest(c Config, req llm.Request) (openai.ChatCompletionRequest, error) {
	r := openai.ChatCompletionRequest{
		Model:    c.Model,
		Messages: make([]openai.ChatCompletionMessage, 0, len(req.Messages)+1),
	}
	most := cmp.Or(req.MaxTokens, c.MaxTokens)
	if p.completionTokens {
		r.MaxCompletionTokens = most
	} else {
		r.MaxTokens = most //nolint:staticcheck // the only name that most vendors know
	}
	if c.Temperature != nil && !p.noTemperature {
		r.Temperature = float32(max(*c.Temperature, minTemperature))
	}
	if req.Format != nil {
		if err := json.Unmarshal(req.Format, &r.ResponseFormat); err != nil {
			return r, fmt.Errorf("read the format of the answer: %w", err)
		}
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
	if len(req.Tools) > 0 {
		r.ReasoningEffort = p.effort
	}
	return r, nil
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

// A toolList encodes the tools of requests. They are most of what a request says, and nearly always those of
// the one before, so that the encoding is kept, and shared by all requests under way.
type toolList struct{ last atomic.Pointer[encodedTools] }

// encodedTools are tools and the end of a request that has them.
type encodedTools struct {
	specs []llm.ToolSpec
	end   []byte
}

// encode returns what takes the place of the last brace of a request without tools; nil if there are none. It
// must not be modified.
func (l *toolList) encode(specs []llm.ToolSpec) ([]byte, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	if last := l.last.Load(); last != nil && slices.EqualFunc(last.specs, specs, llm.ToolSpec.Equal) {
		return last.end, nil
	}
	list := make([]openai.Tool, 0, len(specs))
	for _, t := range specs {
		list = append(list, newTool(t))
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode the tools: %w", err)
	}
	end := slices.Concat([]byte(`,"tools":`), text, []byte("}"))
	l.last.Store(&encodedTools{slices.Clone(specs), end})
	return end, nil
}
