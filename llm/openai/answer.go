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

const callOverhead = 64 // bytes that a call counts for besides its text

// An answer is assembled from chunks.
type answer struct {
	stream    func(llm.Delta) // may be nil
	history   []llm.Message   // what is answered
	think     thinkSplitter
	text      strings.Builder
	reasoning strings.Builder
	calls     []*call
	finish    string
	usage     llm.Usage
	size      int // bytes of all of it
}

// A call is a tool call of which more may follow.
type call struct {
	index    *int
	id       string
	name     string
	args     strings.Builder
	streamed string // the ID under which it was streamed
}

// add adds one chunk.
func (a *answer) add(raw []byte) error {
	var c chunk
	if err := json.Unmarshal(raw, &c); err != nil {
		return cutOff(fmt.Errorf("read a piece of the answer: %w", err))
	}
	if c.Usage != nil && *c.Usage != (usage{}) {
		a.usage = c.Usage.tokens()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		a.addDelta(choice.Delta)
		if choice.Finish != "" && choice.Finish != "null" {
			a.finish = choice.Finish
		}
	}
	if a.size > maxAnswer {
		return cutOff(fmt.Errorf("the answer is larger than %d MB", maxAnswer>>20))
	}
	return nil
}

func (a *answer) addDelta(d delta) {
	text, reasoning := a.think.split(textIn(d.Content, "text"), false)
	a.addText(text+d.Refusal, d.reasoning()+reasoning)
	for _, t := range d.ToolCalls {
		a.addToolCall(t)
	}
}

func (a *answer) addText(text, reasoning string) {
	if text == "" && reasoning == "" {
		return
	}
	a.size += len(text) + len(reasoning)
	a.text.WriteString(text)
	a.reasoning.WriteString(reasoning)
	if a.stream != nil {
		a.stream(llm.Delta{Text: text, Reasoning: reasoning})
	}
}

// addToolCall adds t to the call that it continues, or begins one.
func (a *answer) addToolCall(t toolCall) {
	c := a.continued(t)
	if c == nil {
		c = &call{index: t.Index}
		a.calls = append(a.calls, c)
		a.size += callOverhead
	}
	c.id = cmp.Or(c.id, t.ID)
	c.name = cmp.Or(c.name, t.Function.Name)
	c.args.WriteString(t.Function.Arguments)
	a.size += len(t.Function.Arguments) + len(t.Function.Name) + len(t.ID)
	if a.stream != nil && c.name != "" && (c.streamed == "" || t.Function.Arguments != "") {
		a.streamCall(c)
	}
}

// streamCall streams what there is of c (C-015), under the ID that it will have in
// the message.
func (a *answer) streamCall(c *call) {
	if c.streamed == "" {
		calls := a.toolCalls()
		llm.Identify(calls, a.history)
		c.streamed = calls[len(calls)-1].ID // the latest: calls begin one after the other
	}
	a.stream(llm.Delta{Call: &llm.ToolCall{ID: c.streamed, Name: c.name, Args: c.args.String()}})
}

// toolCalls returns the calls so far that have a name.
func (a *answer) toolCalls() (calls []llm.ToolCall) {
	for _, c := range a.calls {
		if c.name != "" {
			args := cmp.Or(strings.TrimSpace(c.args.String()), "{}")
			calls = append(calls, llm.ToolCall{ID: c.id, Name: c.name, Args: args})
		}
	}
	return calls
}

// continued returns the call that t continues: the latest one, or the latest with
// the same index where vendors send one. It is nil if t begins a call.
func (a *answer) continued(t toolCall) *call {
	for _, c := range slices.Backward(a.calls) {
		if t.Index != nil && c.index != nil && *t.Index != *c.index {
			continue
		}
		if c.precedes(t) {
			return nil
		}
		return c
	}
	return nil
}

// precedes reports whether t, which looks like a part of c, begins another call: it
// has a name again, and another ID or name, or the arguments of c are complete.
func (c *call) precedes(t toolCall) bool {
	if t.Function.Name == "" || c.name == "" {
		return false
	}
	if t.ID != "" && c.id != "" && t.ID != c.id || t.Function.Name != c.name {
		return true
	}
	args := c.args.String()
	return t.Function.Arguments != "" && strings.HasSuffix(args, "}") && json.Valid([]byte(args))
}

// message returns the whole answer. done says that the provider ended the stream
// properly.
func (a *answer) message(done bool) (llm.Message, error) {
	a.addText(a.think.split("", true))
	switch strings.ToLower(a.finish) {
	case "":
		if !done {
			return llm.Message{}, cutOff(errors.New("the connection ended before the answer did"))
		}
	case "error", "abort", "insufficient_system_resource", "malformed_function_call":
		return llm.Message{}, cutOff(fmt.Errorf("the provider gave up: %s", a.finish))
	}
	m := llm.Message{
		Role:      llm.Assistant,
		Text:      a.text.String(),
		Reasoning: a.reasoning.String(),
		Usage:     a.usage,
		Calls:     a.toolCalls(),
	}
	for _, c := range m.Calls {
		if a.finish == "" && !json.Valid([]byte(c.Args)) {
			return llm.Message{}, cutOff(fmt.Errorf("the arguments for %s are incomplete", c.Name))
		}
	}
	if m.Text == "" && len(m.Calls) == 0 && (a.finish == "" || len(a.calls) > 0) {
		return llm.Message{}, cutOff(errors.New("the answer is empty"))
	}
	llm.Identify(m.Calls, a.history)
	m.Finish = finishOf(a.finish, len(m.Calls) > 0)
	return m, nil
}

func finishOf(reason string, hasCalls bool) llm.Finish {
	switch strings.ToLower(reason) {
	case "length", "max_tokens", "max_output_tokens", "model_length":
		return llm.Length
	case "content_filter", "safety", "recitation", "prohibited_content", "blocklist", "sensitive", "refusal":
		return llm.Filtered
	}
	if hasCalls { // whatever the vendor's reason is
		return llm.CallsTools
	}
	return llm.Stopped
}
