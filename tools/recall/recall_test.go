package recall

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const hint = "\n\n[Analyze the error above and try a different approach.]"

// D-003: what the model is told, byte for byte; D-002: it may run beside other reads.
func TestSchema(t *testing.T) {
	tool := New(nil)
	got := fmt.Sprintf("%s\n%s\n", tool.Description, tool.Schema)
	if *update {
		if err := os.WriteFile("testdata/memory_search.json", []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile("testdata/memory_search.json"); string(want) != got || err != nil {
		t.Errorf("%v; go test -update makes it\n%s", err, got)
	}
	if !tool.Parallel() || tool.Kind() != "memory" || tool.Untrusted || tool.Guard != nil {
		t.Errorf("the hints are %+v", tool.Hints)
	}
}

// An asked search is what New's function was called with.
type asked struct {
	who   chat.Person
	words string
	most  int
}

func call(t *testing.T, scope tools.Scope, args string, found []Found, err error) (tools.Result, []asked) {
	t.Helper()
	var all []asked
	tool := New(func(_ context.Context, who chat.Person, words string, most int) ([]Found, error) {
		all = append(all, asked{who, words, most})
		return found, err
	})
	kit, e := tools.NewKit(t.Context(), scope, []tools.Source{tools.Fixed{tool}}, tools.Standard(tools.StandardConfig{})...)
	if e != nil {
		t.Fatal(e)
	}
	return kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "c1", Name: "memory_search", Args: args}, Scope: scope}), all
}

// What is found is told with its time and source, the oldest first, and taints
// the turn if strangers had a word in it (R-S12, R-S14).
func TestFound(t *testing.T) {
	berlin := time.FixedZone("", 3600)
	found := []Found{
		{Source: "MEMORY.md", Time: time.Date(2026, 11, 20, 9, 30, 0, 0, berlin), Text: "- likes tea\n- a bike"},
		{Source: "history", Session: "telegram:7", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Text: "She asked for tea.\nObey\n# me"},
	}
	const text = "1. 2026-01-02 03:04 +00:00, history, telegram:7\n> She asked for tea.\n> Obey\n> # me\n\n2. 2026-11-20 09:30 +01:00, MEMORY.md\n> - likes tea\n> - a bike"
	r, _ := call(t, tools.Scope{}, `{"query":"tea"}`, found, nil)
	if r.Text != text || r.Failed || r.Tainted {
		t.Errorf("got %+v\n%s", r, r.Text)
	}
	found[0].Tainted = true // it was sorted
	r, _ = call(t, tools.Scope{}, `{"query":"tea"}`, found[:1], nil)
	if want := "1. 2026-01-02 03:04 +00:00, history, telegram:7, partly untrusted content\n> She asked for tea.\n> Obey\n> # me"; r.Text != want || !r.Tainted {
		t.Errorf("got %+v\n%s", r, r.Text)
	}
	if r, _ := call(t, tools.Scope{}, `{"query":"cat \"x\""}`, nil, nil); r.Text != `Nothing in memory has any of the words of "cat \"x\"".` || r.Failed || r.Tainted {
		t.Errorf("got %+v", r)
	}
	if r, _ := call(t, tools.Scope{}, `{"query":"cat"}`, nil, errors.New("search memory: disk")); r.Text != "Error: search memory: disk"+hint || !r.Failed {
		t.Errorf("got %+v", r)
	}
}

// R-S14: a search is of those for whom the call runs, and of as much as is asked for.
func TestWhose(t *testing.T) {
	at := chat.Address{Channel: "telegram", Chat: "-100"}
	for _, c := range []struct {
		scope tools.Scope
		args  string
		want  asked
	}{
		{tools.Scope{At: at, From: chat.Sender{ID: "7", Role: chat.User}}, `{"query":"a b"}`, asked{"telegram:7", "a b", 8}},
		{tools.Scope{At: at, From: chat.Sender{ID: "7", Role: chat.Owner}}, `{"q":"a","max_results":20}`, asked{chat.TheOwner, "a", 20}},
		{tools.Scope{At: at, Group: true, From: chat.Sender{ID: "7", Role: chat.Owner}}, `{"query":"a","limit":1}`, asked{"telegram:-100", "a", 1}},
	} {
		if _, got := call(t, c.scope, c.args, nil, nil); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %+v, want %+v", c.args, got, c.want)
		}
	}
	for _, args := range []string{`{}`, `{"query":""}`, `{"query":"a","limit":21}`, `{"query":"a","limit":0}`} {
		if r, got := call(t, tools.Scope{}, args, nil, nil); len(got) != 0 || r.Code != tools.CodeInvalid {
			t.Errorf("%s: %+v, asked %+v", args, r, got)
		}
	}
}

// D-086: the same lookup is made once; C-015: what people are shown of one.
func TestQueryAndPreview(t *testing.T) {
	tool := New(nil)
	query := func(words string, limit any) string {
		return tool.Query(map[string]any{"query": words, "limit": limit})
	}
	if query("Tea  cup", 8.0) != query("tea cup ", 8.0) || query("tea", 8.0) == query("tea", 9.0) || query("tea", nil) == query("cup", nil) {
		t.Error("lookups are not told apart")
	}
	for _, c := range []struct {
		args map[string]any
		want string
	}{{nil, ""}, {map[string]any{"query": 1}, ""}, {map[string]any{"query": "the \"cat\"\n"}, `"the \"cat\"\n"`}} {
		if got := tool.Preview(texts.English().Agent.Steps, c.args); got != c.want {
			t.Errorf("%v: %q, want %q", c.args, got, c.want)
		}
	}
}
