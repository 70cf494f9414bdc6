package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools"
	"parley/tools/agents"
	"parley/tools/catalog"
	"parley/tools/files"
)

// toolList returns the tools in requests of somebody with this role, with all built-in tools there are.
func toolList(t *testing.T, role chat.Role, lean bool) []llm.ToolSpec {
	t.Helper()
	c := &config.Config{}
	c.Tools.Web.Search.Provider = "duckduckgo"
	c.Tools.Exec.Enable = true
	profile := agents.Profile{Name: "researcher", Description: "Finds out about one thing, and says where it was found."}
	sources, err := toolSources(c, toolHost{
		files:  files.New(files.Rules{}),
		agents: agents.Config{Profiles: func() []agents.Profile { return []agents.Profile{profile} }},
	})
	if err != nil {
		t.Fatal(err)
	}
	scope := tools.Scope{From: chat.Sender{Role: role}, Window: 128_000, Lean: lean}
	kit, err := tools.NewKit(t.Context(), scope, tools.Rules{}.Permit(sources...))
	if err != nil {
		t.Fatal(err)
	}
	return new(catalog.Catalog).Shorten(kit, scope).Specs()
}

// requestBytes returns how many bytes a tool takes in a request.
func requestBytes(s llm.ToolSpec) int {
	type function struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
	}
	text, _ := json.Marshal(map[string]any{"type": "function", "function": function{s.Name, s.Description, s.Schema}})
	return len(text) + len(",")
}

// The tools of Parley take at most 8 kB of each request, and with a lean prompt about half of that. With -v,
// the test prints what each takes.
func TestToolListSize(t *testing.T) {
	for _, c := range []struct {
		role chat.Role
		lean bool
		most int
	}{{chat.Owner, false, 8000}, {chat.User, false, 8000}, {chat.Owner, true, 4200}, {chat.User, true, 4200}} {
		sum := 0
		for _, s := range toolList(t, c.role, c.lean) {
			t.Logf("%5d %s", requestBytes(s), s.Name)
			sum += requestBytes(s)
		}
		t.Logf("%5d in all, of %s, lean: %v", sum, c.role, c.lean)
		if sum > c.most {
			t.Errorf("the tools of %s take %d bytes, where %d are allowed (lean: %v)", c.role, sum, c.most, c.lean)
		}
	}
}

// What every request of an owner begins with leaves at least half of a small window to the talk and its answers,
// in a new workspace and in one whose files are long.
func TestStandingPromptFits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window, most int
		prompt       string
		lean         bool
	}{{8000, 2900, "auto", false}, {4000, 1400, "auto", true}, {8000, 1400, "lean", true}, {5000, 2900, "full", false}} {
		w := newTestGateway(t, obedient)
		w.model["contextWindow"] = c.window
		w.more["agent"] = map[string]any{"prompt": c.prompt}
		w.start()
		taken := func(words string) int {
			w.tg.Say(person, words)
			w.says(person, "heard "+words)
			r := w.lastAsked()
			system := r.Messages[0].Content
			all := llm.Request{System: system, Tools: r.Tools}.EstimateFixedTokens()
			t.Logf("%s, %d: %d tokens of instructions, %d with tools", c.prompt, c.window, len(system)/4, all)
			if isLean := !slices.Contains(names(r), "exec") && !slices.Contains(names(r), "message"); isLean != c.lean {
				t.Errorf("%s, %d: lean %v, with %q", c.prompt, c.window, isLean, names(r))
			}
			return all
		}
		if n := taken("one"); n > c.most {
			t.Errorf("%s, %d: %d tokens in a new workspace, where %d are allowed", c.prompt, c.window, n, c.most)
		}
		for _, name := range []string{"AGENTS.md", "SOUL.md", "USER.md", "MEMORY.md", "TOOLS.md"} {
			w.file(name, strings.Repeat("- Something that is good to know of everything.\n", 1000))
		}
		if n := taken("two"); c.window > 5000 && n > c.window/2 || n > c.window*3/4 {
			t.Errorf("%s, %d: %d tokens with long files", c.prompt, c.window, n)
		}
		w.stop()
	}
}

// tokensOf returns how many tokens a request has, as strict a count as can be: every byte of it counts.
func tokensOf(r llmtest.Request) int { return len(r.Body) / 4 }

// A long conversation with tools goes on in a window of 4,000 tokens, and the model never has to refuse a
// request because it is too long.
func TestSmallWindow(t *testing.T) {
	t.Parallel()
	const window = 4000
	var refused atomic.Int64
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if tokensOf(r) > window*3/4 { // the answer takes the rest
			refused.Add(1)
			body := `{"error": {"message": "too long", "code": "context_length_exceeded"}}`
			return llmtest.Reply{Status: http.StatusBadRequest, Body: body}
		}
		reply := obedient(ctx, r)
		if strings.HasPrefix(reply.Text, "heard ") {
			reply.Text = "so it is" + thatIsAll // and not all that was ever said
		}
		reply.Usage = &llm.Usage{In: tokensOf(r), Out: 50}
		return reply
	})
	w.model["contextWindow"] = window
	w.start()
	w.file("long.txt", strings.Repeat("A line of a long file.\n", 2000))
	calls := []string{
		`read_file {"path": "long.txt"}`,
		`find_tool {"query": "files by name"}`,
		`call_tool {"name": "glob", "arguments": {"pattern": "*.txt"}}`,
		`memory_search {"query": "something"}`,
		`write_file {"path": "notes.txt", "content": "noted", "mode": "append"}`,
	}
	for i := range 30 {
		text := fmt.Sprintf("Message %d. ", i) + strings.Repeat("There is always something to tell. ", 20)
		if i%3 == 2 {
			text += "\ncall " + calls[i/3%len(calls)]
		}
		message := w.tg.Say(person, text+"\n"+sayWhen)
		if last := w.answers(person, message, thatIsAll); i%3 == 2 != strings.HasPrefix(last, "the tools say: ") {
			t.Fatalf("message %d is answered with %q", i, last)
		}
	}
	if n := refused.Load(); n > 0 {
		t.Errorf("%d requests were too long", n)
	}
	if why := w.llm.Refused(); len(why) > 0 {
		t.Errorf("the provider refused: %q", why)
	}
}

// toolsJSON returns the tools of a request as they were sent.
func toolsJSON(t *testing.T, r llmtest.Request) string {
	t.Helper()
	var body struct{ Tools json.RawMessage }
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatal(err)
	}
	return string(body.Tools)
}

// A tool that is not listed is found and called, or called at once by its name. It is the tool itself that is
// asked about and refused. The list stays the same byte for byte, also after kill -9.
func TestRareToolIsFound(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, obedient)
	w.start()
	w.file("a.txt", "a")
	if got := w.does(person, `find_tool {"query": "make a directory"}`); !strings.Contains(got, "## file_mkdir") {
		t.Errorf("found %q", got)
	}
	first := w.lastAsked()
	list := toolsJSON(t, first)
	if all := names(first); len(list) > 8000 || slices.Contains(all, "file_mkdir") || !slices.Contains(all, "find_tool") {
		t.Errorf("%d bytes of %q", len(list), all)
	}
	if got := w.does(person, `call_tool {"name": "file_mkdir", "arguments": {"path": "made"}}`); !strings.Contains(got, `"success":true`) ||
		!there(filepath.Join(w.dir, "workspace", "made")) {
		t.Errorf("called through call_tool: %q", got)
	}
	w.kill()
	w.start()
	if got := w.does(person, `glob {"pattern": "a.*"}`); !strings.Contains(got, "a.txt") {
		t.Errorf("called by its name: %q", got)
	}
	if again := toolsJSON(t, w.lastAsked()); again != list {
		t.Errorf("the list was\n%s\nand is\n%s", list, again)
	}
	w.tg.Say(person, `call call_tool {"name": "file_delete", "arguments": {"path": "a.txt"}}`)
	q := w.asks(person, "a.txt")
	if !strings.Contains(q.Text, "Delete a.txt?") || strings.Contains(q.Text, "call_tool") {
		t.Errorf("the question is %q", q.Text)
	}
	w.tg.PressData(person, q.ID, q.Buttons[0][1].Data, telegramtest.As(person, "Ada"))
	w.told(person, "the refusal", func(texts []string) bool {
		return toldOf(texts, "the person who was asked refused this call of file_delete: it was not run.")
	})
	if !there(filepath.Join(w.dir, "workspace", "a.txt")) {
		t.Error("the file is gone after a no")
	}
}
