package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/llm"
)

// A chunk is a piece of an answer. go-openai's own type knows less than
// vendors send.
type chunk struct {
	Choices []struct {
		Index  int    `json:"index"`
		Delta  piece  `json:"delta"`
		Finish string `json:"finish_reason"`
	} `json:"choices"`
	Usage *usage `json:"usage"`
}

// A piece says things in fields that hold a string or a list of parts.
type piece struct {
	Content          any        `json:"content"`
	Refusal          string     `json:"refusal"`
	ReasoningContent any        `json:"reasoning_content"`
	Reasoning        any        `json:"reasoning"`
	ReasoningDetails any        `json:"reasoning_details"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

// thoughts is the reasoning in p. Vendors that use several fields say the same in each.
func (p piece) thoughts() string {
	said := cmp.Or(textIn(p.ReasoningContent, "text"), textIn(p.Reasoning, "text"),
		textIn(p.ReasoningDetails, "text", "summary"))
	if _, parts := p.Content.([]any); parts && said == "" {
		return textIn(p.Content, "thinking")
	}
	return said
}

// textIn is what v says: a string, or parts that say it under one of the keys.
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

// tokens counts reasoning as part of the answer; some vendors show it in the total only.
func (u usage) tokens() llm.Usage {
	in := max(0, u.Prompt)
	return llm.Usage{
		In:     in,
		Out:    max(0, u.Completion, u.Total-in),
		Cached: min(in, max(0, u.Details.Cached, u.CacheHit)),
	}
}

// An answer is put together from pieces.
type answer struct {
	stream    func(llm.Delta)
	said      []llm.Message // what is answered
	think     think
	text      strings.Builder
	reasoning strings.Builder
	calls     []*call
	finish    string
	usage     llm.Usage
	size      int // bytes of all of it
}

type call struct {
	index    *int
	id, name string
	args     strings.Builder
	shown    string // the ID that it was streamed by
}

// add takes in one piece.
func (a *answer) add(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return cut(fmt.Errorf("read a piece of the answer: %w", err))
	}
	if c.Usage != nil && *c.Usage != (usage{}) {
		a.usage = c.Usage.tokens()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		a.take(choice.Delta)
		if choice.Finish != "" && choice.Finish != "null" {
			a.finish = choice.Finish
		}
	}
	if a.size > maxAnswer {
		return cut(fmt.Errorf("the answer is larger than %d MB", maxAnswer>>20))
	}
	return nil
}

func (a *answer) take(p piece) {
	text, thoughts := a.think.split(textIn(p.Content, "text"), false)
	a.say(text+p.Refusal, p.thoughts()+thoughts)
	for _, t := range p.ToolCalls {
		a.call(t)
	}
}

func (a *answer) say(text, thoughts string) {
	if text == "" && thoughts == "" {
		return
	}
	a.size += len(text) + len(thoughts)
	a.text.WriteString(text)
	a.reasoning.WriteString(thoughts)
	if a.stream != nil {
		a.stream(llm.Delta{Text: text, Reasoning: thoughts})
	}
}

// call adds t to the call that it belongs to.
func (a *answer) call(t toolCall) {
	c := a.callOf(t)
	if c == nil {
		c = &call{index: t.Index}
		a.calls = append(a.calls, c)
		a.size += 64
	}
	c.id, c.name = cmp.Or(c.id, t.ID), cmp.Or(c.name, t.Function.Name)
	c.args.WriteString(t.Function.Arguments)
	a.size += len(t.Function.Arguments) + len(t.Function.Name) + len(t.ID)
	if a.stream != nil && c.name != "" && (c.shown == "" || t.Function.Arguments != "") {
		a.show(c)
	}
}

// show streams what there is of c (C-015), by the ID that it will have in the message.
func (a *answer) show(c *call) {
	if c.shown == "" {
		calls := a.named()
		llm.Identify(calls, a.said)
		c.shown = calls[len(calls)-1].ID // the latest: calls begin one after the other
	}
	a.stream(llm.Delta{Call: &llm.ToolCall{ID: c.shown, Name: c.name, Args: c.args.String()}})
}

// named returns the calls of a tool so far.
func (a *answer) named() (calls []llm.ToolCall) {
	for _, c := range a.calls {
		if c.name != "" {
			calls = append(calls,
				llm.ToolCall{ID: c.id, Name: c.name, Args: cmp.Or(strings.TrimSpace(c.args.String()), "{}")})
		}
	}
	return calls
}

// callOf finds the call that t continues: the latest with the same index,
// where there is one.
func (a *answer) callOf(t toolCall) *call {
	for _, c := range slices.Backward(a.calls) {
		if t.Index != nil && c.index != nil && *t.Index != *c.index {
			continue
		}
		if c.before(t) {
			break
		}
		return c
	}
	return nil
}

// before reports whether t, which looks like a part of c, is another call after
// it: it has a name again, and another ID or name, or c's arguments are whole.
func (c *call) before(t toolCall) bool {
	switch {
	case t.Function.Name == "" || c.name == "":
		return false
	case t.ID != "" && c.id != "" && t.ID != c.id, t.Function.Name != c.name:
		return true
	}
	args := c.args.String()
	return t.Function.Arguments != "" && strings.HasSuffix(args, "}") && json.Valid([]byte(args))
}

// message is the whole answer. done tells that the provider closed it in good order.
func (a *answer) message(done bool) (llm.Message, error) {
	a.say(a.think.split("", true))
	switch strings.ToLower(a.finish) {
	case "":
		if !done {
			return llm.Message{}, cut(errors.New("the connection ended before the answer did"))
		}
	case "error", "abort", "insufficient_system_resource", "malformed_function_call":
		return llm.Message{}, cut(fmt.Errorf("the provider gave up: %s", a.finish))
	}
	m := llm.Message{
		Role:      llm.Assistant,
		Text:      a.text.String(),
		Reasoning: a.reasoning.String(),
		Usage:     a.usage,
		Calls:     a.named(),
	}
	for _, c := range m.Calls {
		if a.finish == "" && !json.Valid([]byte(c.Args)) {
			return llm.Message{}, cut(fmt.Errorf("the arguments for %s are not whole", c.Name))
		}
	}
	if m.Text == "" && len(m.Calls) == 0 && (a.finish == "" || len(a.calls) > 0) {
		return llm.Message{}, cut(errors.New("the answer is empty"))
	}
	llm.Identify(m.Calls, a.said)
	m.Finish = finishOf(a.finish, len(m.Calls) > 0)
	return m, nil
}

func finishOf(reason string, calls bool) llm.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "max_output_tokens", "model_length":
		return llm.Length
	case "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "sensitive", "refusal":
		return llm.Filtered
	}
	if calls { // whatever the vendor calls it
		return llm.CallsFor
	}
	return llm.Stopped
}
