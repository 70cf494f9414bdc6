package openai_test

import (
	"fmt"
	"net/http"
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
