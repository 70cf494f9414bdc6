package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/timetest"
)

func post(t *testing.T, s *llmtest.Server, body string) (int, string) {
	t.Helper()
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/chat/completions", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer key")
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	var e struct{ Error struct{ Message string } }
	_ = json.Unmarshal(b, &e)
	if e.Error.Message != "" {
		return resp.StatusCode, e.Error.Message
	}
	return resp.StatusCode, string(b)
}

// P25: the fake refuses what the real API refuses, otherwise tests with it prove nothing.
func TestServerIsStrict(t *testing.T) {
	const (
		user  = `{"role":"user","content":"hi"}`
		calls = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		a     = `{"role":"tool","tool_call_id":"a","content":"x"}`
		b     = `{"role":"tool","tool_call_id":"b","content":"x"}`
	)
	call := func(c string) string { return user + `,{"role":"assistant","tool_calls":[` + c + `]}` }
	tool := func(f string) string { return `"tools":[{"type":"function","function":` + f + `}],` }
	for _, c := range []struct{ name, fields, messages, want string }{
		{"valid", "", user, ""},
		{"valid calls", "", user + "," + calls + "," + b + "," + a + "," + user, ""},
		{"no messages", "", "", "empty array"},
		{"unknown field", `"frobnicate":1,`, user, "Unknown parameter: 'frobnicate'."},
		{"unknown role", "", `{"role":"robot","content":"x"}`, "Invalid value: 'robot'"},
		{"no content", "", `{"role":"user"}`, "Missing required parameter: 'messages[0].content'."},
		{"tool without content", "", user + "," + calls + "," + a + `,{"role":"tool","tool_call_id":"b"}`, "Missing required parameter: 'messages[3].content'."},
		{"assistant without anything", "", `{"role":"assistant"}`, "expected a string, got null"},
		{"orphan result", "", user + "," + a, "must be a response to a preceding message"},
		{"late result", "", user + "," + calls + "," + a + "," + b + "," + user + "," + a, "must be a response to a preceding message"},
		{"no results", "", user + "," + calls + "," + user, "must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: a, b"},
		{"one result missing at the end", "", user + "," + calls + "," + b, "did not have response messages: a"},
		{"result twice", "", user + "," + calls + "," + a + "," + a, "Duplicate value for 'tool_call_id' of 'a'"},
		{"result of another call", "", user + "," + calls + `,{"role":"tool","tool_call_id":"z","content":"x"}`, "'tool_call_id' of 'z' not found"},
		{"empty id", "", call(`{"id":"","type":"function","function":{"name":"f","arguments":"{}"}}`), "empty string"},
		{"long id", "", call(`{"id":"` + strings.Repeat("x", 41) + `","type":"function","function":{"name":"f","arguments":"{}"}}`), "maximum length 40"},
		{"bad name", "", call(`{"id":"a","type":"function","function":{"name":"a b","arguments":"{}"}}`), "does not match pattern"},
		{"arguments are an object", "", call(`{"id":"a","type":"function","function":{"name":"f","arguments":{}}}`), "expected a string, but got an object"},
		{"no arguments", "", call(`{"id":"a","type":"function","function":{"name":"f"}}`), "Missing required parameter: 'messages[1].tool_calls[0].function.arguments'."},
		{"empty calls", "", `{"role":"assistant","content":"x","tool_calls":[]}`, "empty array"},
		{"empty tools", `"tools":[],`, user, "Invalid 'tools': empty array."},
		{"tool name", tool(`{"name":"a.b"}`), user, "tools[0].function.name"},
		{"schema without type", tool(`{"name":"f","parameters":{"properties":{}}}`), user, `got 'type: "None"'`},
		{"schema of an array", tool(`{"name":"f","parameters":{"type":"array"}}`), user, `got 'type: "array"'`},
		{"stream options without stream", `"stream_options":{"include_usage":true},`, user, "only allowed when 'stream' is enabled"},
		{"temperature", `"temperature":3,`, user, "Invalid 'temperature'"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := llmtest.NewServer(func(context.Context, llmtest.Request) llmtest.Reply { return llmtest.Text("hi").Reply() })
			defer s.Close()
			status, got := post(t, s, `{"model":"gpt-4o",`+c.fields+`"messages":[`+c.messages+`]}`)
			if c.want == "" && status != 200 || c.want != "" && (status != 400 || !strings.Contains(got, c.want)) {
				t.Fatalf("got %d %s, want %q", status, got, c.want)
			}
			if (len(s.Refused()) == 1) != (c.want != "") {
				t.Fatalf("refused: %q", s.Refused())
			}
		})
	}
}

func TestServerKnowsFamilies(t *testing.T) {
	tools := `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for _, c := range []struct {
		model, fields string
		status        int
	}{
		{"o3-mini", `,"max_tokens":1`, 400},
		{"openai/gpt-5-mini", `,"max_tokens":1`, 400},
		{"gpt-5-mini", `,"temperature":0.2`, 400},
		{"gpt-5-mini", `,"max_completion_tokens":1`, 200},
		{"gpt-6-sol", tools, 400},
		{"gpt-6-sol", tools + `,"reasoning_effort":"none"`, 200},
		{"gpt-6-astra", tools, 404},
		{"gpt-6-astra", "", 200},
		{"gpt-5-pro", "", 404},
		{"gpt-4o", `,"max_tokens":1,"temperature":0`, 200},
	} {
		s := llmtest.NewServer(func(context.Context, llmtest.Request) llmtest.Reply { return llmtest.Reply{} })
		if status, got := post(t, s, `{"model":"`+c.model+`","messages":[{"role":"user","content":"x"}]`+c.fields+`}`); status != c.status {
			t.Errorf("%s%s: got %d %s, want %d", c.model, c.fields, status, got, c.status)
		}
		s.Close()
	}
}

func TestServerAsksForTheKey(t *testing.T) {
	s := llmtest.NewServer(func(context.Context, llmtest.Request) llmtest.Reply { return llmtest.Reply{} })
	defer s.Close()
	s.Key = "another"
	if status, got := post(t, s, `{}`); status != 401 || !strings.Contains(got, "Incorrect API key") {
		t.Fatalf("got %d %s", status, got)
	}
}

// A crash test kills the program at a chunk of its choice.
func TestServerTellsOfEachChunk(t *testing.T) {
	var chunks []int
	s := llmtest.NewServer(func(context.Context, llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "abcdef", Piece: 2, After: func(n int) { chunks = append(chunks, n) }}
	})
	status, body := post(t, s, `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"x"}]}`)
	s.Close()
	if status != 200 || strings.Count(body, "data: ") != 7 || !strings.Contains(body, `"choices":[]`) || !strings.HasSuffix(body, "data: [DONE]\n\n") {
		t.Fatalf("got %d %s", status, body)
	}
	if len(chunks) != 6 || chunks[5] != 6 {
		t.Fatalf("told of %v", chunks)
	}
}

// C-015: a script streams arguments in pieces.
func TestScriptStreamsCalls(t *testing.T) {
	a := llmtest.Call("1", "f", `{"x":"äö"}`)
	a.Piece = 4
	s := &llmtest.Script{Answers: []llmtest.Answer{a}}
	var got []llm.ToolCall
	m, err := s.Generate(t.Context(), llmtest.Say("x"), func(d llm.Delta) { got = append(got, *d.Call) })
	var pieces []string
	for _, c := range got {
		pieces = append(pieces, c.ID+" "+c.Name+" "+c.Args)
	}
	want := []string{`1 f `, `1 f {"x"`, `1 f {"x":"äö`, `1 f {"x":"äö"}`}
	if err != nil || !slices.Equal(pieces, want) || got[3] != m.Calls[0] {
		t.Fatalf("got %v, %v, %+v", got, err, m)
	}
}

func TestScript(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		var at []int
		s := &llmtest.Script{Name: "main", Answers: []llmtest.Answer{
			{Text: "one two", Delay: time.Second, Pause: time.Second, Gate: gate, Word: func(n int) { at = append(at, n) }},
			llmtest.Fail(llm.Overloaded),
			llmtest.Call("1", "f", "{}"),
		}}
		start := time.Now()
		time.AfterFunc(time.Minute, func() { close(gate) })
		var got []string
		m, err := s.Generate(t.Context(), llmtest.Say("x"), func(d llm.Delta) { got = append(got, d.Text) })
		if err != nil || m.Text != "one two" || len(got) != 2 || len(at) != 2 || m.Model != "main" || m.Finish != llm.Stopped {
			t.Fatalf("got %+v, %v, %q", m, err, got)
		}
		if d := time.Since(start); d != time.Minute+3*time.Second {
			t.Fatalf("took %v", d)
		}
		if _, err := s.Generate(t.Context(), llmtest.Say("x"), nil); !errors.As(err, new(*llm.Error)) {
			t.Fatalf("got %v", err)
		}
		if m, _ := s.Generate(t.Context(), llmtest.Say("x"), nil); m.Finish != llm.CallsTools {
			t.Fatalf("got %+v", m)
		}
		if _, err := s.Generate(t.Context(), llmtest.Say("x"), nil); err == nil {
			t.Fatal("a script that has ended answered")
		}
		if len(s.Seen()) != 4 {
			t.Fatalf("saw %d requests", len(s.Seen()))
		}
	})
}
