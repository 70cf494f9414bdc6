package main

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/agent/modelerrors"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/texts"
)

// call is the only call of an answer.
func call(name, args string) []llm.ToolCall {
	return []llm.ToolCall{{ID: "call_1", Name: name, Args: args}}
}

// TestP11ModelFails: the model is asked again as long as that may help, once
// otherwise, and the person is told one kind sentence; a broken stream leaves
// nothing behind (the pain "duplicate replies": failover sends twice).
func TestP11ModelFails(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	tries := map[string][]time.Time{}
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		text := strings.Join(spoken(r), ", ")
		tries[text] = append(tries[text], time.Now())
		if text == "no key" {
			return llmtest.Reply{Status: http.StatusUnauthorized, Body: `{"error": {"message": "Incorrect API key"}}`}
		}
		if len(tries[text]) == 1 && text == "busy" {
			return llmtest.Reply{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "2"}, Body: `{"error": {"message": "slow down"}}`}
		}
		if len(tries[text]) == 1 && text == "broken" {
			return llmtest.Reply{Text: "half an answer that is never to be seen in the end", Chunks: 4, Abort: true}
		}
		return echo(ctx, r)
	})
	w.start()
	for i, text := range []string{"busy", "broken", "no key"} {
		w.tg.Say(int64(person+i), text)
	}
	w.says(person, "heard busy")
	w.says(person+1, "heard broken")
	w.says(person+2, modelerrors.Kindly(texts.English().Agent.Model, &llm.Error{Kind: llm.Auth}))
	for i := range 3 {
		if texts := botTexts(w.tg.Chat(int64(person + i))); len(texts) != 1 {
			t.Errorf("the bot said %q", texts)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if b := tries["busy"]; len(b) != 2 || b[1].Sub(b[0]) < 2*time.Second {
		t.Errorf("after a 429 it was asked at %v", b)
	}
	if n := len(tries["no key"]); n != 1 {
		t.Errorf("the key was tried %d times", n)
	}
}

// TestP11Fallback: when one model does not answer, the next one does, once.
func TestP11Fallback(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if r.Model == "gpt-test" {
			return llmtest.Reply{Status: http.StatusServiceUnavailable, Header: map[string]string{"Retry-After": "600"}, Body: "<html>down</html>"}
		}
		return llmtest.Reply{Text: r.Model + " here"}
	})
	model := func(name string) any {
		return map[string]any{"type": "openai", "baseUrl": w.llm.URL(), "apiKey": "${TOWN_MODEL_KEY}", "model": name}
	}
	w.more = map[string]any{
		"models": map[string]any{"main": model("gpt-test"), "spare": model("gpt-spare")},
		"agent":  map[string]any{"model": "main", "fallback": []string{"spare"}},
	}
	w.start()
	w.tg.Say(person, "anybody?")
	w.says(person, "gpt-spare here")
	if texts := botTexts(w.tg.Chat(person)); len(texts) != 1 {
		t.Errorf("the bot said %q", texts)
	}
}

// TestOutgrownWindow: a conversation that is far longer than the model's window
// goes on, whatever made it so: many messages, a huge one, a huge result (the
// pains "context overflow kills the chat" and "compaction fails for ever").
func TestOutgrownWindow(t *testing.T) {
	t.Parallel()
	const window = 6000 // tokens
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if len(r.Body)/8 > window {
			return llmtest.Reply{Status: http.StatusBadRequest, Body: `{"error": {"message": "too long", "code": "context_length_exceeded"}}`}
		}
		if strings.HasSuffix(r.Last(), "read it") {
			return llmtest.Reply{Calls: call("read_file", `{"path": "huge.txt"}`)}
		}
		return llmtest.Reply{Text: "ok " + strings.Repeat("and so on ", 50)}
	})
	w.more = map[string]any{"models": map[string]any{"main": map[string]any{
		"type": "openai", "baseUrl": w.llm.URL(), "apiKey": "${TOWN_MODEL_KEY}", "model": "gpt-test", "contextWindow": window, "maxTokens": 500,
	}}}
	if err := os.MkdirAll(filepath.Join(w.dir, "workspace"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.dir, "workspace", "huge.txt"), []byte(strings.Repeat("word and word\n", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	w.start()
	for i := range 16 {
		text := strings.Repeat("something to remember ", 180)
		if i%4 == 3 {
			text = "read it"
		}
		w.tg.Say(person, text)
		w.told(person, "answer "+itoa(i+1), func(texts []string) bool {
			return len(texts) == i+1 && strings.HasSuffix(strings.TrimSpace(texts[i]), "and so on")
		})
	}
	if why := w.llm.Refused(); len(why) > 0 {
		t.Errorf("the provider refused: %q", why)
	}
}

// TestOddToolCalls: calls as odd models make them are understood: no index, no
// ID, another spelling of the name, other names and types of arguments (the pain
// "tool-call format from odd models").
func TestOddToolCalls(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		if rs := results(r); len(rs) > 0 {
			return llmtest.Reply{Text: "done: " + strings.Join(rs, "; ")}
		}
		return llmtest.Reply{Header: map[string]string{"Content-Type": "text/event-stream"}, Body: strings.Join([]string{
			`data: {"choices":[{"index":0,"delta":{"role":"assistant","content":null,"tool_calls":[{"type":"function","function":{"name":"WriteFile","arguments":"{\"file_path\": \"odd.txt\","}}]}}]}`,
			`data: {"choices":[{"index":0,"delta":{"tool_calls":[{"function":{"arguments":" \"content\": \"odd\"}"}}]}}]}`,
			`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`,
			"data: [DONE]", "",
		}, "\n\n")}
	})
	w.start()
	w.tg.Say(person, "write it down")
	w.told(person, "a result", func(texts []string) bool { return len(texts) > 0 && strings.HasPrefix(texts[len(texts)-1], "done: ") })
	if b, err := os.ReadFile(filepath.Join(w.dir, "workspace", "odd.txt")); err != nil || string(b) != "odd" {
		t.Errorf("the file: %q, %v; the bot said %q", b, err, botTexts(w.tg.Chat(person)))
	}
}

// A context window that instructions and tools fill is told of at the start.
func TestLittleRoom(t *testing.T) {
	t.Parallel()
	for window, want := range map[int]bool{2000: true, 4000: false, 8000: false} {
		w := newTestGateway(t, obedient)
		w.model["contextWindow"] = window
		w.start()
		w.tg.Say(person, "/status")
		w.told(person, "an answer", func(texts []string) bool { return len(texts) > 0 })
		w.stop()
		if got := strings.Contains(w.log.String(), "little room for talk"); got != want {
			t.Errorf("a window of %d: warned %v\n%s", window, got, w.log.String())
		}
	}
}
