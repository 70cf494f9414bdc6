package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley/chat"
	"parley/response"
)

// An output writes a chat completion in OpenAI's format.
type output struct {
	w       http.ResponseWriter
	id      string
	model   string
	created int64
	usage   bool
	outcome outcome
}

// An outcome is what is known of an answer besides its text.
type outcome struct {
	tokens *chat.Tokens // used for it; nil: no model was asked
	cut    bool         // it is as long as the request allows
	calls  []toolCall   // for the client to run
}

// outcome returns what is known of rec's answer.
func (rec requestRecord) outcome() outcome {
	o := outcome{tokens: rec.Tokens, cut: rec.Cut}
	for _, c := range rec.Calls {
		call := toolCall{ID: c.ID, Type: "function"}
		call.Function.Name = c.Name
		call.Function.Arguments = c.Arguments
		o.calls = append(o.calls, call)
	}
	return o
}

// callIDs identify the calls of o.
func (o outcome) callIDs() string { return message{ToolCalls: o.calls}.callIDs() }

// finish says why the answer ends, as OpenAI has it.
func (o outcome) finish() string {
	switch {
	case len(o.calls) > 0:
		return "tool_calls"
	case o.cut:
		return "length"
	}
	return "stop"
}

// completionObject returns a completion or a chunk of one.
func (o output) completionObject(object string, choices []map[string]any, usage bool) map[string]any {
	c := map[string]any{"id": o.id, "object": object, "created": o.created, "model": o.model, "choices": choices}
	if usage {
		var t chat.Tokens
		if o.outcome.tokens != nil {
			t = *o.outcome.tokens
		}
		c["usage"] = map[string]any{
			"prompt_tokens": t.In, "completion_tokens": t.Out, "total_tokens": t.In + t.Out,
			"prompt_tokens_details": map[string]int{"cached_tokens": t.Cached},
		}
	}
	return c
}

// choices returns the only choice, whose content is under the key kind. Finish is
// why it ends, nil if it goes on.
func choices(kind string, content map[string]any, finish any) []map[string]any {
	return []map[string]any{{"index": 0, kind: content, "finish_reason": finish}}
}

// writeWhole writes the answer as one object.
func (o output) writeWhole(text string) {
	content := map[string]any{"role": assistant, "content": text}
	if calls := o.outcome.calls; len(calls) > 0 {
		content["tool_calls"] = calls
		if text == "" {
			content["content"] = nil
		}
	}
	message := choices("message", content, o.outcome.finish())
	response.JSON(o.w, http.StatusOK, o.completionObject("chat.completion", message, true))
}

// beginStream writes the headers and the first chunk of a stream.
func (o output) beginStream() {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no")
	o.writeDelta(map[string]any{"role": assistant, "content": ""}, nil)
}

// writeMore writes text to the stream, and the end of the stream if done.
func (o output) writeMore(text string, done bool) {
	if text != "" {
		o.writeDelta(map[string]any{"content": text}, nil)
	}
	if !done {
		return
	}
	for i, c := range o.outcome.calls {
		call := map[string]any{"index": i, "id": c.ID, "type": c.Type, "function": c.Function}
		o.writeDelta(map[string]any{"tool_calls": []any{call}}, nil)
	}
	o.writeDelta(map[string]any{}, o.outcome.finish())
	if o.usage {
		o.writeEvent(o.completionObject("chat.completion.chunk", []map[string]any{}, true))
	}
	o.write("data: [DONE]\n\n")
}

// writeDelta writes a chunk.
func (o output) writeDelta(delta map[string]any, finish any) {
	o.writeEvent(o.completionObject("chat.completion.chunk", choices("delta", delta, finish), false))
}

// writeEvent writes v as a server-sent event.
func (o output) writeEvent(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		return // v is made of strings and numbers, which can be encoded
	}
	o.write("data: " + string(data) + "\n\n")
}

const writeTimeout = 30 * time.Second // for one write

func (o output) write(s string) {
	o.setWriteDeadline(time.Now().Add(writeTimeout))
	_, _ = o.w.Write([]byte(s)) // an error ends the request's context as well
	_ = http.NewResponseController(o.w).Flush()
}

// setWriteDeadline limits how long a client may take to read what it is sent.
func (o output) setWriteDeadline(by time.Time) {
	_ = http.NewResponseController(o.w).SetWriteDeadline(by) // not every writer can
}

// writeFailure ends a stream, which has begun, with an event. Otherwise it returns p.
func (o output) writeFailure(stream bool, p response.Problem) error {
	if !stream {
		return p
	}
	o.writeEvent(p.Body())
	return nil
}

// invalid returns the problem of a request whose param is wrong.
func invalid(param, text string) response.Problem {
	return response.Problem{Status: http.StatusBadRequest, Text: text, Param: param, Code: "invalid_value"}
}

// problemOf returns what to tell a client of err. It hides internal errors (R-S26),
// after which the client may try again.
func problemOf(err error) response.Problem {
	if p, ok := errors.AsType[response.Problem](err); ok {
		return p
	}
	if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
		return response.Problem{Status: http.StatusTooManyRequests, Text: refusal.Text, Code: "quota_exceeded"}
	}
	return response.Problem{
		Status:     http.StatusServiceUnavailable,
		Text:       "The message cannot be accepted or answered right now. Please try again.",
		Code:       "unavailable",
		RetryAfter: 5 * time.Second,
	}
}
