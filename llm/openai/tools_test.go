package openai_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/llm/openai"
)

// Each request has its own tools, although those of the last one are kept: also when the caller has changed the
// list that it passed before.
func TestToolsOfEachRequest(t *testing.T) {
	s := serve(t, llmtest.Reply{Text: "ok"})
	m := model(t, s.URL())
	tool := func(name, about string) llm.ToolSpec {
		spec := llmtest.Echo()
		spec.Name, spec.Description = name, about
		return spec
	}
	list := []llm.ToolSpec{tool("a", "One."), tool("b", "Two.")}
	var want []string
	ask := func() {
		t.Helper()
		if _, err := m.Generate(t.Context(), llmtest.Say("hi", list...), nil); err != nil {
			t.Fatal(err)
		}
		want = append(want, fmt.Sprintf("%s", list))
	}
	ask()
	ask()
	list[1].Description = "Another."
	ask()
	list[0], list[1] = list[1], list[0]
	ask()
	list = nil
	ask()
	list = []llm.ToolSpec{tool("c", "Three.")}
	ask()
	for i, r := range s.Requests() {
		if got := fmt.Sprintf("%s", r.Tools); got != want[i] {
			t.Errorf("request %d has the tools %s, want %s", i+1, got, want[i])
		}
	}
}

// A request costs what is new in it: its tools are those of the one before.
func TestToolsAreEncodedOnce(t *testing.T) {
	var sent int64
	answers := roundTripper(func(r *http.Request) (*http.Response, error) {
		sent = r.ContentLength
		return (&tracked{parts: []string{word, stop, "data: [DONE]\n\n"}}).RoundTrip(r)
	})
	m := openai.New(openai.Config{Model: "x", Transport: answers})
	allocations := func(req llm.Request) float64 {
		return testing.AllocsPerRun(50, func() {
			if _, err := m.Generate(t.Context(), req, nil); err != nil {
				t.Fatal(err)
			}
		})
	}
	without := allocations(llmtest.Say("hi"))
	var list []llm.ToolSpec
	for i := range 50 {
		list = append(list, llmtest.Echo())
		list[i].Name = fmt.Sprint("echo", i)
	}
	with := allocations(llmtest.Say("hi", list...))
	if with > without+20 || sent < 50*100 {
		t.Errorf("a request takes %.0f allocations, and with 50 tools (%d bytes) %.0f", without, sent, with)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What a request says can be read again, as when a kept connection was closed meanwhile. Its body is only a
// reader: net/http would have the WriteTo of one that joins several make a large buffer for each request.
func TestRequestIsReadAgain(t *testing.T) {
	var list []llm.ToolSpec
	var read []string
	twice := roundTripper(func(r *http.Request) (*http.Response, error) {
		if _, ok := r.Body.(io.WriterTo); ok && list != nil {
			t.Errorf("a body is a %T", r.Body)
		}
		again, err := r.GetBody()
		if err != nil {
			return nil, err
		}
		for _, body := range []io.Reader{r.Body, again} {
			text, err := io.ReadAll(body)
			if err != nil || int64(len(text)) != r.ContentLength || !json.Valid(text) {
				t.Errorf("%d bytes announced, read: %s, %v", r.ContentLength, text, err)
			}
			read = append(read, string(text))
		}
		return (&tracked{parts: []string{word, stop, "data: [DONE]\n\n"}}).RoundTrip(r)
	})
	m := openai.New(openai.Config{Model: "x", Transport: twice})
	for _, list = range [][]llm.ToolSpec{{llmtest.Echo()}, nil} {
		read = nil
		if _, err := m.Generate(t.Context(), llmtest.Say("hi", list...), nil); err != nil {
			t.Fatal(err)
		}
		if len(read) != 2 || read[0] != read[1] || strings.Contains(read[0], `"tools":`) != (list != nil) {
			t.Errorf("with %d tools: %q", len(list), read)
		}
	}
}
