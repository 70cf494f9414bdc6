package openai

import (
	"cmp"
	"strings"

	"parley/llm"
)

// A chunk is a piece of an answer. go-openai's own type lacks fields that vendors
// send.
type chunk struct {
	Choices []struct {
		Index  int    `json:"index"`
		Delta  delta  `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

// A delta has its text in fields that hold a string or a list of parts.
type delta struct {
	Content          any        `json:"content"`
	Refusal          string     `json:"refusal"`
	ReasoningContent any        `json:"reasoning_content"`
	Reasoning        any        `json:"reasoning"`
	ReasoningDetails any        `json:"reasoning_details"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

// reasoning returns the reasoning in d. Vendors that use several fields have the
// same text in each.
func (d delta) reasoning() string {
	text := cmp.Or(textIn(d.ReasoningContent, "text"), textIn(d.Reasoning, "text"),
		textIn(d.ReasoningDetails, "text", "summary"))
	if _, hasParts := d.Content.([]any); hasParts && text == "" {
		return textIn(d.Content, "thinking")
	}
	return text
}

// textIn returns the text of v: a string, or parts that have it under one of the keys.
func textIn(v any, keys ...string) string {
	if s, ok := v.(string); ok {
		return s
	}
	var b strings.Builder
	parts, _ := v.([]any)
	for _, p := range parts {
		part, _ := p.(map[string]any)
		for _, key := range keys {
			b.WriteString(textIn(part[key], "text"))
		}
	}
	return b.String()
}

type toolCall struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit int `json:"prompt_cache_hit_tokens"`
}

// tokens counts reasoning as part of the answer. Some vendors include it in the
// total only.
func (u usage) tokens() llm.Usage {
	in := max(0, u.Prompt)
	return llm.Usage{
		In:     in,
		Out:    max(0, u.Completion, u.Total-in),
		Cached: min(in, max(0, u.Details.Cached, u.CacheHit)),
	}
}
