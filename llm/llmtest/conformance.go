package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	"parley/llm"
)

// Echo returns a tool for requests. The demo model, and a Server that rehearses with
// it, call it when told "call echo {…}".
func Echo() llm.ToolSpec {
	return llm.ToolSpec{Name: "echo", Description: "Says the text again.",
		Schema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)}
}

// Say returns a request with one message of a person.
func Say(text string, tools ...llm.ToolSpec) llm.Request {
	return llm.Request{System: "You are a test.", Messages: []llm.Message{{Role: llm.User, Text: text}}, Tools: tools}
}

// Conformance checks that m does what llm.Model promises. m must follow the same
// instructions as the demo model.
func Conformance(t *testing.T, m llm.Model) {
	t.Run("streams what it returns", func(t *testing.T) { streams(t, m) })
	t.Run("needs no stream", func(t *testing.T) {
		msg, err := m.Generate(t.Context(), Say("repeat: hello"), nil)
		if err != nil || !strings.Contains(msg.Text, "hello") {
			t.Fatalf("got %+v, %v", msg, err)
		}
	})
	t.Run("calls tools and reads their results", func(t *testing.T) { callsTools(t, m) })
	t.Run("returns the context's error", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Generate(ctx, Say("repeat: hello"), nil); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want the context's error", err)
		}
	})
	t.Run("may be used by many at a time", func(t *testing.T) {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() { streams(t, m) })
		}
		all.Wait()
	})
}

func streams(t *testing.T, m llm.Model) {
	want := "many words, äöü, 🙂 and <b> & \"quotes\""
	var got strings.Builder
	n := 0
	msg, err := m.Generate(t.Context(), Say("repeat: "+want), func(d llm.Delta) {
		if d.Reset {
			got.Reset()
		}
		got.WriteString(d.Text)
		n++
	})
	switch {
	case err != nil:
		t.Errorf("generate: %v", err)
	case !strings.Contains(msg.Text, want):
		t.Errorf("got %q, want it to hold %q", msg.Text, want)
	case got.String() != msg.Text:
		t.Errorf("streamed %q, returned %q", got.String(), msg.Text)
	case n < 2:
		t.Errorf("streamed in %d pieces", n)
	case msg.Role != llm.Assistant || msg.Finish != llm.Stopped || msg.Model == "":
		t.Errorf("got role %q, finish %q, model %q", msg.Role, msg.Finish, msg.Model)
	case msg.Usage.In <= 0 || msg.Usage.Out <= 0:
		t.Errorf("got usage %+v", msg.Usage)
	}
}

func callsTools(t *testing.T, m llm.Model) {
	req := Say("call echo {\"text\":\"one\"}\ncall echo {\"text\":\"two\"}", Echo())
	ids := map[string]bool{}
	for round := range 2 {
		shown := map[string]llm.ToolCall{}
		msg, err := m.Generate(t.Context(), req, func(d llm.Delta) {
			if d.Call != nil {
				shown[d.Call.ID] = *d.Call
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		if msg.Finish != llm.CallsTools || len(msg.Calls) != 2 {
			t.Fatalf("round %d: got finish %q, calls %+v", round, msg.Finish, msg.Calls)
		}
		req.Messages = append(req.Messages, msg)
		for _, c := range msg.Calls {
			var args struct{ Text string }
			if err := json.Unmarshal([]byte(c.Args), &args); err != nil || c.Name != "echo" {
				t.Fatalf("got call %+v: %v", c, err)
			}
			if ids[c.ID] || c.ID == "" {
				t.Fatalf("ID %q was used before", c.ID)
			}
			if len(shown) > 0 && shown[c.ID] != c {
				t.Fatalf("streamed calls %+v, returned %+v", shown, c)
			}
			ids[c.ID] = true
			req.Messages = append(req.Messages, llm.Message{Role: llm.ToolRole, Call: c.ID, Name: c.Name, Text: "echo of " + args.Text})
		}
		if round == 0 {
			req.Messages = append(req.Messages, llm.Message{Role: llm.Assistant, Text: "done", Finish: llm.Stopped}, req.Messages[0])
		}
	}
	msg, err := m.Generate(t.Context(), req, nil)
	if err != nil || msg.Finish != llm.Stopped || !strings.Contains(msg.Text, "echo of one") || !strings.Contains(msg.Text, "echo of two") {
		t.Fatalf("after the results: got %+v, %v", msg, err)
	}
}
