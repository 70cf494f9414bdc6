package llmtest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/llm"
)

// A Handler answers a valid request. It may be called concurrently, and may block.
// ctx ends when the client is gone or the Server closes.
type Handler func(ctx context.Context, r Request) Reply

// A Request is one that the Server received.
type Request struct {
	N        int // its number, from 1; refused ones count
	Header   http.Header
	Body     []byte
	Model    string
	Messages []Message
	Tools    []llm.ToolSpec
	Refused  string // why the Server itself refused it; such a request reaches no Handler
}

// Last returns the text of the last message.
func (r Request) Last() string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[len(r.Messages)-1].Content
}

// A Message is one message of a Request, as it was sent.
type Message struct {
	Role       string
	Content    string
	Images     []llm.Image
	Reasoning  string
	ToolCalls  []llm.ToolCall
	ToolCallID string
}

// A Reply says how to answer. The zero value is an empty answer with finish
// reason "stop".
type Reply struct {
	Text      string // streamed in pieces of Piece characters
	Piece     int    // 0 means 8
	Reasoning string // streamed as reasoning_content
	Calls     []llm.ToolCall
	Finish    string // "" means "tool_calls" with Calls, else "stop"
	Usage     *llm.Usage

	Pause time.Duration // after each chunk
	After func(n int)   // called after the nth chunk was flushed, from 1

	Status int               // an error in place of an answer, with Body
	Header map[string]string // further headers
	Body   string            // with Status 200 or 0: the whole body, as it is

	Comments int    // keep-alive comments before the first chunk
	Chunks   int    // the first of the faults below comes after this many chunks; 0 means before any
	Raw      string // written there as it is, such as an error event; the stream goes on unless one of these is set:
	End      bool   // then the stream ends in good order, but without finish_reason and [DONE]
	Abort    bool   // then the connection breaks
	Hang     bool   // then nothing more comes until the client goes
	NoDone   bool   // the stream ends without [DONE], after the finish_reason
	NoFinish bool   // there is no finish_reason, but [DONE]
}

// A Server speaks OpenAI's chat completions on a loopback port. It refuses what
// OpenAI refuses, with the same texts.
type Server struct {
	Key  string                              // the only valid key; "" accepts any
	Hear func(context.Context, Speech) Reply // transcribes: Text is what was said; nil refuses speech

	handler Handler
	http    *http.Server
	url     string
	ctx     context.Context
	cancel  context.CancelFunc
	ended   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	seen    []Request
	heard   []Speech
}

// NewServer starts a Server. Close it when done.
func NewServer(h Handler) *Server {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("llmtest: %v", err))
	}
	s := &Server{handler: h, url: "http://" + l.Addr().String() + "/v1", ended: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		defer close(s.ended)
		_ = s.http.Serve(l) // until it is closed
	}()
	return s
}

// URL returns the base URL to configure.
func (s *Server) URL() string { return s.url }

// Close ends all answers and the Server, and returns when every Handler has.
func (s *Server) Close() {
	s.cancel()
	s.http.Close()
	<-s.ended
	s.running.Wait()
}

// Requests returns all requests so far, the refused ones too.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.seen...)
}

// Refused returns why the Server refused requests. A test wants none.
func (s *Server) Refused() []string {
	var why []string
	for _, r := range s.Requests() {
		if r.Refused != "" {
			why = append(why, r.Refused)
		}
	}
	return why
}

// Wait returns when n requests have arrived, or when ctx ends.
func (s *Server) Wait(ctx context.Context, n int) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for len(s.Requests()) < n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("wait for request %d: %w", n, ctx.Err())
		}
	}
	return nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.running.Add(1)
	defer s.running.Done()
	if r.URL.Path == speechPath {
		s.listen(w, r)
		return
	}
	req, stream, refused := s.read(r)
	if refused != nil {
		req.Refused = refused.Message
	}
	s.mu.Lock()
	req.N = len(s.seen) + 1
	s.seen = append(s.seen, req)
	s.mu.Unlock()
	if refused != nil {
		refused.write(w)
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	reply := s.handler(ctx, req)
	for k, v := range reply.Header {
		w.Header().Set(k, v)
	}
	switch {
	case reply.Status >= 300 || reply.Body != "":
		w.WriteHeader(max(reply.Status, 200))
		_, _ = io.WriteString(w, reply.Body)
	case stream.on:
		(&writer{w: w, ctx: ctx, Reply: reply, model: req.Model, usage: stream.usage}).stream()
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(whole(req.Model, reply))
	}
}

// Rehearse answers as m does, such as the demo model.
func Rehearse(m llm.Model) Handler {
	return func(ctx context.Context, r Request) Reply {
		req := llm.Request{Tools: r.Tools}
		names := map[string]string{}
		for _, in := range r.Messages {
			out := llm.Message{Role: llm.Role(in.Role), Text: in.Content, Images: in.Images, Calls: in.ToolCalls, Call: in.ToolCallID, Name: names[in.ToolCallID]}
			for _, c := range in.ToolCalls {
				names[c.ID] = c.Name
			}
			if in.Role == "system" || in.Role == "developer" {
				req.System += in.Content
			} else {
				req.Messages = append(req.Messages, out)
			}
		}
		msg, err := m.Generate(ctx, req, nil)
		if err != nil {
			return Reply{Status: http.StatusInternalServerError, Body: fmt.Sprintf(`{"error":{"message":%q}}`, err)}
		}
		return Reply{Text: msg.Text, Reasoning: msg.Reasoning, Calls: msg.Calls, Usage: &msg.Usage}
	}
}
