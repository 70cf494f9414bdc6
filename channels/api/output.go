package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"parley/chat"
)

// An output writes a completion in OpenAI's shape.
type output struct {
	w       http.ResponseWriter
	id      string
	model   string
	created int64
	usage   bool
	tokens  *chat.Tokens // that the answer took; nil: no model was asked
}

// completion makes one, or a piece of one.
func (o output) completion(object string, choices []map[string]any, usage bool) map[string]any {
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

// choice is the only one there is: said is what of it comes now, finish why it ends, nil before.
func choice(kind string, said map[string]string, finish any) []map[string]any {
	return []map[string]any{{"index": 0, kind: said, "finish_reason": finish}}
}

// whole writes the answer at once.
func (o output) whole(text string) {
	said := choice("message", map[string]string{"role": assistant, "content": text}, "stop")
	writeJSON(o.w, http.StatusOK, o.completion("chat.completion", said, true))
}

// begin begins a stream.
func (o output) begin() {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no")
	o.piece(map[string]string{"role": assistant, "content": ""}, nil)
}

// more writes text, which goes on the stream, and its end if it is over.
func (o output) more(text string, over bool) {
	if text != "" {
		o.piece(map[string]string{"content": text}, nil)
	}
	if !over {
		return
	}
	o.piece(map[string]string{}, "stop")
	if o.usage {
		o.event(o.completion("chat.completion.chunk", []map[string]any{}, true))
	}
	o.write("data: [DONE]\n\n")
}

func (o output) piece(delta map[string]string, finish any) {
	o.event(o.completion("chat.completion.chunk", choice("delta", delta, finish), false))
}

func (o output) event(v any) {
	data, err := json.Marshal(v)
	if err == nil {
		o.write("data: " + string(data) + "\n\n")
	}
}

const writeTime = 30 * time.Second // for a client to take what it is sent

func (o output) write(s string) {
	o.hurry(time.Now().Add(writeTime))
	_, _ = o.w.Write([]byte(s)) // a client that went away ends the request's context
	_ = http.NewResponseController(o.w).Flush()
}

// hurry sets when a client must have taken what it was sent.
func (o output) hurry(by time.Time) {
	_ = http.NewResponseController(o.w).SetWriteDeadline(by) // not every writer can
}

// fail ends a response: a stream, which has begun, by an event.
func (o output) fail(stream bool, f *failure) error {
	if !stream {
		return f
	}
	o.event(f.body())
	return nil
}

// A failure is an error in OpenAI's shape.
type failure struct {
	status               int
	message, param, code string
	after                string // seconds until another try
}

func bad(param, message string) *failure {
	return &failure{status: http.StatusBadRequest, message: message, param: param, code: "invalid_value"}
}

// failed is what a client is told of err. What went wrong inside is not its
// business (R-S26): it may try again.
func failed(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
		return &failure{status: http.StatusTooManyRequests, message: refusal.Text, code: "quota_exceeded"}
	}
	return &failure{
		status:  http.StatusServiceUnavailable,
		message: "The message cannot be taken or answered at present; try again.",
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
	writeJSON(w, f.status, f.body())
}
