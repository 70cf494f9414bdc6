// Package llmtest stands in for language models in tests: a Model that
// follows a script, a strict server that speaks OpenAI's chat completions, and
// the tests that every llm.Model passes.
package llmtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"parley/llm"
)

// A Script is a Model that gives its answers in turn. It may be used concurrently.
// When it has no answer left it asks Else, or fails.
type Script struct {
	Name    string // goes into Message.Model
	Answers []Answer
	Else    func(llm.Request) Answer

	mu   sync.Mutex
	seen []llm.Request
}

// An Answer is one answer of a Script. The zero value is an empty answer.
type Answer struct {
	Text      string // streamed word by word
	Reasoning string
	Calls     []llm.ToolCall
	Piece     int        // characters of a call's arguments that are streamed at a time; 0 streams none of it
	Finish    llm.Finish // "" means CallsTools with Calls, else Stopped
	Usage     llm.Usage

	Begin func()          // called when the request has arrived
	Gate  <-chan struct{} // nothing happens until it is closed
	Delay time.Duration   // before the first word
	Pause time.Duration   // after each word
	Word  func(n int)     // called after the nth word, from 1
	Err   error           // the answer ends in Err, after the text
}

// Text returns an answer with that text.
func Text(text string) Answer { return Answer{Text: text} }

// Reply returns a as a Server's reply.
func (a Answer) Reply() Reply {
	return Reply{Text: a.Text, Reasoning: a.Reasoning, Calls: a.Calls, Piece: a.Piece}
}

// Handle is a Handler that answers everything with a.
func (a Answer) Handle(context.Context, Request) Reply { return a.Reply() }

// Call returns an answer that calls one tool.
func Call(id, name, args string) Answer {
	return Answer{Calls: []llm.ToolCall{{ID: id, Name: name, Args: args}}}
}

// Fail returns an answer that is an error.
func Fail(kind llm.Kind) Answer {
	return Answer{Err: &llm.Error{Kind: kind, Err: fmt.Errorf("scripted")}}
}

// Add appends answers to the script.
func (s *Script) Add(answers ...Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Answers = append(s.Answers, answers...)
}

// Seen returns the requests so far.
func (s *Script) Seen() []llm.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]llm.Request(nil), s.seen...)
}

// Left counts the answers that were not requested.
func (s *Script) Left() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.Answers)
}

func (s *Script) next(req llm.Request) (Answer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	req.Messages = append([]llm.Message(nil), req.Messages...)
	s.seen = append(s.seen, req)
	switch {
	case len(s.Answers) > 0:
		a := s.Answers[0]
		s.Answers = s.Answers[1:]
		return a, nil
	case s.Else != nil:
		return s.Else(req), nil
	}
	return Answer{}, &llm.Error{Kind: llm.BadRequest, Err: fmt.Errorf("the script ended before request %d", len(s.seen))}
}

// Generate implements llm.Model.
func (s *Script) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	a, err := s.next(req)
	if err != nil {
		return llm.Message{}, err
	}
	if err := a.wait(ctx); err != nil {
		return llm.Message{}, err
	}
	if a.Reasoning != "" && stream != nil {
		stream(llm.Delta{Reasoning: a.Reasoning})
	}
	for i, word := range strings.SplitAfter(a.Text, " ") {
		if stream != nil && word != "" {
			stream(llm.Delta{Text: word})
		}
		if a.Word != nil {
			a.Word(i + 1)
		}
		if err := sleep(ctx, a.Pause); err != nil {
			return llm.Message{}, err
		}
	}
	if err := a.stream(ctx, stream); err != nil {
		return llm.Message{}, err
	}
	return a.message(s.Name), nil
}

// stream streams the calls and ends in a.Err.
func (a Answer) stream(ctx context.Context, stream func(llm.Delta)) error {
	for _, c := range a.Calls {
		if a.Piece <= 0 || stream == nil {
			break
		}
		part := llm.ToolCall{ID: c.ID, Name: c.Name}
		for _, piece := range append([]string{""}, cutUp(c.Args, a.Piece)...) {
			part.Args += piece
			now := part
			stream(llm.Delta{Call: &now})
			if err := sleep(ctx, a.Pause); err != nil {
				return err
			}
		}
	}
	return a.Err
}

func (a Answer) wait(ctx context.Context) error {
	if a.Begin != nil {
		a.Begin()
	}
	if a.Gate != nil {
		select {
		case <-a.Gate:
		case <-ctx.Done():
		}
	}
	return sleep(ctx, a.Delay)
}

func (a Answer) message(model string) llm.Message {
	m := llm.Message{Role: llm.Assistant, Text: a.Text, Reasoning: a.Reasoning, Finish: a.Finish, Model: model, Usage: a.Usage}
	m.Calls = append([]llm.ToolCall(nil), a.Calls...)
	if m.Finish == "" {
		m.Finish = llm.Stopped
		if len(m.Calls) > 0 {
			m.Finish = llm.CallsTools
		}
	}
	return m
}

func sleep(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
