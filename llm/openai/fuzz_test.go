package openai_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/llm/openai"
)

type body string

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(string(b))), Header: http.Header{}}, nil
}

// FuzzStream uses any bytes as the body of an answer: there is no panic, no hang, and
// the result is a whole answer or an *llm.Error.
func FuzzStream(f *testing.F) {
	f.Add(word + stop + "data: [DONE]\n\n")
	f.Add(`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}}]}` + "\n" +
		`data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"1}"}}]},"finish_reason":"tool_calls"}]}` + "\n")
	f.Add(`{"choices":[{"message":{"content":[{"type":"text","text":"<think>a</think>b"}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":3}}`)
	f.Add(": hello\nevent: error\ndata: {\"message\":1}\n")
	f.Add("data:[DONE]\r\n<html>")
	for _, raw := range llmtest.MidStreamErrors("x") {
		f.Add(word + raw)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var rec recorder
		start := time.Now()
		m, err := openai.New(openai.Config{Name: "main", APIKey: key, Model: "x", Transport: body(s)}).Generate(t.Context(), llmtest.Say("hi"), rec.record)
		if took := time.Since(start); took > 30*time.Second {
			t.Fatalf("took %v", took)
		}
		if err != nil {
			if _, ok := errors.AsType[*llm.Error](err); !ok || !utf8.ValidString(err.Error()) {
				t.Fatalf("got a %T: %q", err, err)
			}
			return
		}
		if m.Role != llm.Assistant || m.Finish == "" || rec.text.String() != m.Text || rec.reasoning.String() != m.Reasoning {
			t.Fatalf("got %+v, streamed %q, %q", m, rec.text.String(), rec.reasoning.String())
		}
		ids := map[string]bool{}
		for _, c := range m.Calls {
			if c.ID == "" || len(c.ID) > 40 || ids[c.ID] || c.Name == "" || c.Args == "" {
				t.Fatalf("got call %+v", c)
			}
			ids[c.ID] = true
		}
	})
}

func BenchmarkGenerate(b *testing.B) {
	s := llmtest.NewServer(llmtest.Text("A short answer of a few words, as people like it.").Handle)
	defer s.Close()
	m := model(b, s.URL())
	req := llmtest.Say("hi", llmtest.Echo())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(b.Context(), req, func(llm.Delta) {}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkParse measures the driver alone: no network, no server.
func BenchmarkParse(b *testing.B) {
	m := openai.New(openai.Config{Name: "main", Model: "x", Transport: body(strings.Repeat(word, 10) + stop + "data: [DONE]\n\n")})
	req := llmtest.Say("hi", llmtest.Echo())
	b.ReportAllocs()
	for b.Loop() {
		if _, err := m.Generate(b.Context(), req, func(llm.Delta) {}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkNew(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		openai.New(openai.Config{Name: "main", APIKey: key, Model: "gpt-5-mini"})
	}
}
