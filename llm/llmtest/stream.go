package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"parley/llm"
)

// A writer streams one Reply.
type writer struct {
	Reply
	w     http.ResponseWriter
	ctx   context.Context
	model string
	usage bool
	n     int // chunks written
}

// Stream streams r to w, as a Server does, with a token count if usage is true. It is for handlers
// that read requests themselves.
func Stream(ctx context.Context, w http.ResponseWriter, r Reply, usage bool) {
	(&writer{Reply: r, w: w, ctx: ctx, model: "test", usage: usage}).stream()
}

func (w *writer) stream() {
	if w.w.Header().Get("Content-Type") == "" {
		w.w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	w.flush("")
	for range w.Comments {
		w.flush(": keep-alive\n\n")
	}
	chunks := w.chunks()
	for i, c := range chunks {
		if i == w.Chunks && !w.fault() {
			return
		}
		w.chunk(c)
		if sleep(w.ctx, w.Pause) != nil {
			return
		}
	}
	if w.Chunks >= len(chunks) && !w.fault() {
		return
	}
	if !w.NoFinish {
		w.chunk(choice(map[string]any{}, w.finish()))
	}
	if w.usage {
		w.chunk(map[string]any{"choices": []any{}, "usage": counted(w.Usage)})
	}
	if !w.NoDone {
		w.flush("data: [DONE]\n\n")
	}
}

// fault causes the fault of the Reply, and reports whether the stream goes on.
func (w *writer) fault() bool {
	w.flush(w.Raw)
	switch {
	case w.Hang:
		<-w.ctx.Done()
	case w.Abort:
		panic(http.ErrAbortHandler)
	}
	return !w.Hang && !w.End
}

func (w *writer) chunk(fields map[string]any) {
	head := map[string]any{"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": w.model}
	if w.usage {
		head["usage"] = nil
	}
	for k, v := range fields {
		head[k] = v
	}
	b, _ := json.Marshal(head)
	w.n++
	w.flush("data: " + string(b) + "\n\n")
	if w.After != nil {
		w.After(w.n)
	}
}

func (w *writer) flush(s string) {
	_, _ = io.WriteString(w.w, s)
	w.w.(http.Flusher).Flush()
}

func (w *writer) chunks() []map[string]any {
	out := []map[string]any{choice(map[string]any{"role": "assistant", "content": ""}, "")}
	if w.Reasoning != "" {
		out = append(out, choice(map[string]any{"reasoning_content": w.Reasoning}, ""))
	}
	for _, piece := range cutUp(w.Text, w.Piece) {
		out = append(out, choice(map[string]any{"content": piece}, ""))
	}
	for i, c := range w.Calls {
		out = append(out, choice(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": ""}}}}, ""))
		for _, piece := range cutUp(c.Args, w.Piece) {
			out = append(out, choice(map[string]any{"tool_calls": []any{map[string]any{"index": i,
				"function": map[string]any{"arguments": piece}}}}, ""))
		}
	}
	return out
}

func choice(delta map[string]any, finish string) map[string]any {
	var reason any
	if finish != "" {
		reason = finish
	}
	return map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": reason}}}
}

func (r Reply) finish() string {
	switch {
	case r.Finish != "":
		return r.Finish
	case len(r.Calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func counted(u *llm.Usage) map[string]any {
	if u == nil {
		u = &llm.Usage{In: 10, Out: 5}
	}
	return map[string]any{"prompt_tokens": u.In, "completion_tokens": u.Out, "total_tokens": u.In + u.Out,
		"prompt_tokens_details": map[string]any{"cached_tokens": u.Cached}}
}

// whole returns r as the answer to a request without a stream.
func whole(model string, r Reply) map[string]any {
	m := map[string]any{"role": "assistant", "content": r.Text, "refusal": nil}
	if r.Reasoning != "" {
		m["reasoning_content"] = r.Reasoning
	}
	var calls []any
	for _, c := range r.Calls {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Args}})
	}
	if calls != nil {
		m["tool_calls"] = calls
	}
	return map[string]any{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": model, "usage": counted(r.Usage),
		"choices": []any{map[string]any{"index": 0, "message": m, "finish_reason": r.finish()}}}
}

func cutUp(s string, size int) []string {
	if size <= 0 {
		size = 8
	}
	var out []string
	for r := []rune(s); len(r) > 0; {
		n := min(size, len(r))
		out = append(out, string(r[:n]))
		r = r[n:]
	}
	return out
}

// MidStreamErrors are errors as vendors spell them in the middle of a stream,
// each for Reply.Raw with End.
func MidStreamErrors(message string) map[string]string {
	q := func(format string) string {
		return strings.ReplaceAll(format, "MSG", fmt.Sprintf("%q", message)) + "\n\n"
	}
	return map[string]string{
		"openai":      q(`data: {"error":{"message":MSG,"type":"server_error","code":null}}`),
		"spaced":      q(`data: { "error": {"message": MSG, "type": "server_error"}}`),
		"late":        q(`data: {"id":"gen-1","object":"chat.completion.chunk","error":{"code":502,"message":MSG},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}`),
		"event":       q("event: error\n" + `data: {"message":MSG}`),
		"event error": q("event: error\n" + `data: {"error":{"message":MSG}}`),
		"vllm":        q(`data: {"object":"error","message":MSG,"type":"InternalServerError","code":500}`),
		"string":      q(`data: {"error":MSG}`),
		"bare":        q(`{"error":{"message":MSG}}`),
		"pretty":      q(`data:   {  "error" : {"message":MSG}}`),
	}
}
