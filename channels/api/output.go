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
	tokens  *chat.Tokens // used for the answer; nil: no model was asked
}

// completionObject returns a completion or a chunk of one.
func (o output) completionObject(object string, choices []map[string]any, usage bool) map[string]any {
	c := map[string]any{"id": o.id, "object": object, "created": o.created, "model": o.model, "choices": choices}
	if usage {
		var t chat.Tokens
		if o.tokens != nil {
			t = *o.tokens
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
func choices(kind string, content map[string]string, finish any) []map[string]any {
	return []map[string]any{{"index": 0, kind: content, "finish_reason": finish}}
}

// writeWhole writes the answer as one object.
func (o output) writeWhole(text string) {
	message := choices("message", map[string]string{"role": assistant, "content": text}, "stop")
	response.JSON(o.w, http.StatusOK, o.completionObject("chat.completion", message, true))
}

// beginStream writes the headers and the first chunk of a stream.
func (o output) beginStream() {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no")
	o.writeDelta(map[string]string{"role": assistant, "content": ""}, nil)
}

// writeMore writes text to the stream, and the end of the stream if done.
func (o output) writeMore(text string, done bool) {
	if text != "" {
		o.writeDelta(map[string]string{"content": text}, nil)
	}
	if !done {
		return
	}
	o.writeDelta(map[string]string{}, "stop")
	if o.usage {
		o.writeEvent(o.completionObject("chat.completion.chunk", []map[string]any{}, true))
	}
	o.write("data: [DONE]\n\n")
}

// writeDelta writes a chunk.
func (o output) writeDelta(delta map[string]string, finish any) {
	o.writeEvent(o.completionObject("chat.completion.chunk", choices("delta", delta, finish), false))
}

// writeEvent writes v as a server-sent event.
func (o output) writeEvent(v any) {
	data, err := json.Marshal(v)
	if err == nil {
		o.write("data: " + string(data) + "\n\n")
	}
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

// writeFailure ends a stream, which has begun, with an event. Otherwise it returns f.
func (o output) writeFailure(stream bool, f *failure) error {
	if !stream {
		return f
	}
	o.writeEvent(f.body())
	return nil
}

// A failure is an error in OpenAI's format.
type failure struct {
	status               int
	message, param, code string
	after                string // seconds to wait before a retry
}

// invalid returns the failure of a request whose param is wrong.
func invalid(param, message string) *failure {
	return &failure{status: http.StatusBadRequest, message: message, param: param, code: "invalid_value"}
}

// failureOf returns what to tell a client of err. It hides internal errors (R-S26),
// after which the client may try again.
func failureOf(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
		return &failure{status: http.StatusTooManyRequests, message: refusal.Text, code: "quota_exceeded"}
	}
	return &failure{
		status:  http.StatusServiceUnavailable,
		message: "The message cannot be accepted or answered right now. Please try again.",
		code:    "unavailable",
		after:   "5",
	}
}

// Error implements error.
func (f *failure) Error() string { return f.message }

func (f *failure) body() any {
	kind := "invalid_request_error"
	switch {
	case f.status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case f.status >= 500:
		kind = "server_error"
	}
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	return map[string]any{"error": map[string]any{
		"message": f.message,
		"type":    kind,
		"param":   null(f.param),
		"code":    null(f.code),
	}}
}

func (f *failure) write(w http.ResponseWriter) {
	if f.after != "" {
		w.Header().Set("Retry-After", f.after)
	}
	response.JSON(w, f.status, f.body())
}
