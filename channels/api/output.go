package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"
)

// An output writes a completion in OpenAI's shape.
type output struct {
	w       http.ResponseWriter
	id      string
	model   string
	created int64
	usage   bool
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index   int     `json:"index"`
	Message *spoken `json:"message,omitempty"`
	Delta   *spoken `json:"delta,omitempty"`
	Finish  *string `json:"finish_reason"`
}

type spoken struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

// A usage counts tokens. What an answer took is not known here: 0.
type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
}

var stopped = "stop"

// whole writes the answer at once.
func (o output) whole(text string) {
	writeJSON(o.w, http.StatusOK, completion{o.id, "chat.completion", o.created, o.model,
		[]choice{{Message: &spoken{assistant, &text}, Finish: &stopped}}, &usage{}})
}

// begin begins a stream.
func (o output) begin() {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no")
	none := ""
	o.event(o.chunk([]choice{{Delta: &spoken{assistant, &none}}}, nil))
}

// more writes text, which goes on the stream, and its end if it is over.
func (o output) more(text string, over bool) {
	if text != "" {
		o.event(o.chunk([]choice{{Delta: &spoken{Content: &text}}}, nil))
	}
	if !over {
		return
	}
	o.event(o.chunk([]choice{{Delta: &spoken{}, Finish: &stopped}}, nil))
	if o.usage {
		o.event(o.chunk([]choice{}, &usage{}))
	}
	o.write("data: [DONE]\n\n")
}

func (o output) chunk(choices []choice, u *usage) completion {
	return completion{o.id, "chat.completion.chunk", o.created, o.model, choices, u}
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
	return &failure{status: http.StatusServiceUnavailable, message: "The message cannot be taken or answered at present; try again.", code: "unavailable", after: "5"}
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
	return map[string]any{"error": map[string]any{"message": f.message, "type": kind, "param": null(f.param), "code": null(f.code)}}
}

func (f *failure) write(w http.ResponseWriter) {
	if f.after != "" {
		w.Header().Set("Retry-After", f.after)
	}
	writeJSON(w, f.status, f.body())
}
