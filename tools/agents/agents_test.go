package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/untrusted"
)

// A runner is a Runner whose subagents do as end says.
type runner struct {
	mu    sync.Mutex
	begun map[string]tools.Subagent
	err   error
	end   func(*tools.Subagent)
}

func (r *runner) Spawn(_ context.Context, c tools.Subagent) (tools.Subagent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun == nil {
		r.begun = map[string]tools.Subagent{}
	}
	if r.err == nil {
		r.begun[c.ID] = c
	}
	return c, r.err
}

func (r *runner) Await(_ context.Context, id string) (tools.Subagent, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.begun[id]
	c.State = tools.SubagentAnswered
	if r.end != nil {
		r.end(&c)
	}
	return c, nil
}

// only returns the one subagent that was begun.
func (r *runner) only(t *testing.T) (c tools.Subagent) {
	t.Helper()
	if len(r.begun) != 1 {
		t.Fatalf("%d subagents were begun", len(r.begun))
	}
	for _, c = range r.begun {
		return c
	}
	return c
}

func fake(name, category string) tools.Tool {
	t := tools.New(name, name, func(context.Context, tools.Call, struct{}) (tools.Result, error) { return tools.Result{}, nil })
	t.Category = category
	return t
}

var scope = tools.Scope{
	Session: "telegram:42", At: chat.Address{Channel: "telegram", Chat: "42"}, From: chat.Sender{ID: "7", Role: chat.User},
	Turn: "turn", Model: "cheap", Tainted: true, Known: func() untrusted.Known { return untrusted.Known{} },
}

var profiles = []Profile{
	{Name: "researcher", Description: "finds\nthings out", Instruction: "Be curious.", Model: "big", Tools: []string{"web_search", "exec"}, Rounds: 9, Strict: true},
	{Name: "all", Description: "does anything"},
	{Name: "lost", Description: "lacks much", Model: "gone", Tools: []string{"exec", "web_serch", "cron"}},
}

// kit makes the tools of a turn in s, whose subagents r runs.
func kit(t *testing.T, r Runner, s tools.Scope) (*tools.Kit, tools.Scope) {
	t.Helper()
	alias := fake("search_web", "web")
	alias.AliasOf = "web_search"
	all := []tools.Tool{
		fake("web_search", "web"), alias, fake("exec", "code"), fake("read_file", "files"), fake("cron", "clock"),
		fake("message", "message"), fake("ask_user", "message"), fake("attempt_completion", "message"), fake("own", "custom"),
	}
	own := New(Config{Runner: r, Profiles: func() []Profile { return profiles }, Model: func(name string) bool { return name != "gone" }})
	k, err := tools.NewKit(t.Context(), s, []tools.Source{tools.Fixed(all), own},
		tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	s.Tools = k.Tools
	return k, s
}

// use makes one call, and returns its result and the tips that were shown.
func use(t *testing.T, r Runner, s tools.Scope, name, args string) (tools.Result, []string) {
	t.Helper()
	k, s := kit(t, r, s)
	var tips []string
	var mu sync.Mutex
	c := tools.Call{ToolCall: llm.ToolCall{ID: "c", Name: name, Args: args}, Scope: s, Tip: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		tips = append(tips, text)
	}}
	return k.Call(t.Context(), c), tips
}

func line(of ...any) string { return strings.TrimSpace(fmt.Sprintln(of...)) }

const hint = "\n\n[Analyze the error above and try a different approach.]"

// D-092, D-093: what spawn says and has begun.
func TestSpawn(t *testing.T) {
	for _, c := range []struct{ args, label string }{
		{`{"task":"a task of thirty letters here"}`, "a task of thirty letters here"},
		{`{"task":"一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十!"}`, "一二三四五六七八九十一二三四五六七八九十一二三四五六七八九十..."},
		{`{"task":"x","label":"the x"}`, "the x"},
	} {
		run := &runner{}
		r, _ := use(t, run, scope, "spawn", c.args)
		h := run.only(t)
		want := "Subagent [" + c.label + "] started (id: " + h.ID + "). I'll notify you when it completes."
		if r.Text != want || len(h.ID) != 8 || strings.Trim(h.ID, "0123456789abcdef") != "" {
			t.Errorf("got %q\nwant %q", r.Text, want)
		}
		if got := line(h.Only, h.Rounds, h.Most, h.Report, h.Hears, h.Depth, h.Parent, h.Model, h.From.ID, h.Tainted, h.Call, h.Turn, h.Tool); got !=
			"[attempt_completion exec read_file web_search] 15 4 true false 1 telegram:42 cheap 7 true turn#c/0 turn spawn" {
			t.Errorf("begun %s", got)
		}
		again := &runner{}
		if use(t, again, scope, "spawn", c.args); again.only(t).ID != h.ID {
			t.Error("the same call has two subagents")
		}
	}
	for _, c := range []struct {
		args string
		run  *runner
		want string
	}{
		{`{"task":"t","wait":true}`, &runner{end: func(c *tools.Subagent) { c.Result = "42" }}, "42"},
		{`{"task":"t","wait":true}`, &runner{}, msgNoAnswer},
		{`{"task":"t","wait":true}`, &runner{end: func(c *tools.Subagent) { c.State, c.Result = tools.SubagentFailed, "no" }}, "Error: Subagent [t] failed: no" + hint},
		{`{"task":"t","wait":true}`, &runner{end: func(c *tools.Subagent) { c.State = tools.SubagentStopped }}, "Error: Subagent [t] failed: it was stopped" + hint},
		{`{"task":"t"}`, &runner{err: &tools.BusyError{Running: 4, Most: 4}},
			"Error: Cannot spawn subagent: concurrency limit reached (4/4 running). Wait for a running subagent to complete before spawning a new one." + hint},
		{`{"task":"t"}`, &runner{err: errors.New("disk full")}, "Error: disk full" + hint},
		{`{"task":""}`, &runner{}, "Error: Invalid parameters for tool 'spawn': task must be at least 1 chars" + hint},
	} {
		waits := strings.Contains(c.args, "wait") // and reads the untrusted content in its result (R-S12)
		if r, _ := use(t, c.run, scope, "spawn", c.args); r.Text != c.want || r.Tainted != waits {
			t.Errorf("%s: %+v\nwant %q", c.args, r, c.want)
		}
	}
}

// what multi_agent has begun,
// and what it gives.
func TestMultiAgent(t *testing.T) {
	run := &runner{end: func(c *tools.Subagent) {
		switch c.Label {
		case "b":
			c.State, c.Result = tools.SubagentFailed, "LLM API error: x"
		case "c":
			c.Tainted = true
		default:
			c.Result = "did " + c.Task
		}
	}}
	clean := scope
	clean.Tainted = false
	r, tips := use(t, run, clean, "multi_agent", `{"tasks":[{"name":"a","instruction":"A","tools":["search_web","functions.Read_File","spawn","new_task","message"]},{"name":"b","instruction":"B"},{"name":"c","instruction":"C"}]}`)
	const want = `{"success":true,"results":[{"task_name":"a","success":true,"response":"did A"},` +
		`{"task_name":"b","success":false,"error":"LLM API error: x"},` +
		`{"task_name":"c","success":true,"response":"Agent task completed but did not produce a final text response within the iteration limit."}],"total":3}`
	if r.Text != want || !r.Tainted || r.Failed {
		t.Errorf("got %+v\nwant %s", r, want)
	}
	for _, h := range run.begun {
		want := "[attempt_completion exec own read_file web_search]"
		if h.Label == "a" {
			want = "[attempt_completion read_file web_search]"
		}
		if got := line(h.Only); got != want || h.Rounds != 3 || h.Patience.String() != "1m0s" || h.Model != "cheap" || h.Instruction != "" || h.Report || h.Depth != 1 {
			t.Errorf("begun %+v", h)
		}
	}
	if len(tips) != 4 || tips[0] != "0 of 3 done" || !slices.Contains(tips, "3 of 3 done") {
		t.Errorf("tips %q", tips)
	}
	six := `{"tasks":[` + strings.TrimSuffix(strings.Repeat(`{"name":"a","instruction":"A"},`, 6), ",") + `]}`
	for args, want := range map[string]string{
		six:            "Error: Maximum 5 concurrent agents allowed" + hint,
		`{"tasks":[]}`: "Error: Invalid parameters for tool 'multi_agent': tasks must have at least 1 items" + hint,
		`{"tasks":[{"name":"b","instruction":"B"},{"name":"a","instruction":"A","tools":["web_serch"]}]}`: "Error: Task 'a' names tools that there are not: web_serch. " +
			"No agent was started. Available: attempt_completion, exec, own, read_file, web_search" + hint,
		`{"tasks":[{"name":"a"}]}`: "Error: Invalid parameters for tool 'multi_agent': tasks[0].instruction is required" + hint,
	} {
		none := &runner{}
		if r, _ := use(t, none, scope, "multi_agent", args); r.Text != want || len(none.begun) > 0 {
			t.Errorf("%s: %q\nwant %q", args, r.Text, want)
		}
	}
}

// without anybody to run them.
func TestNoRunner(t *testing.T) {
	for name, c := range map[string]struct{ args, want string }{
		"multi_agent": {`{"tasks":[{"name":"a","instruction":"A"}]}`, `{"success":true,"results":[{"task_name":"a","success":false,"error":"LLM client not available"}],"total":1}`},
		"spawn":       {`{"task":"t"}`, "Error: LLM client not available" + hint},
		"new_task":    {`{"agentName":"all","taskName":"X","input":"x"}`, "Error: Subtask failed: LLM client not available" + hint},
	} {
		if r, _ := use(t, nil, scope, name, c.args); r.Text != c.want {
			t.Errorf("%s: %q, want %q", name, r.Text, c.want)
		}
	}
}

// C-031, C-032, D-041: what new_task has begun, says on the way, and gives.
func TestNewTask(t *testing.T) {
	run := &runner{end: func(c *tools.Subagent) { c.Result, c.Tainted = "found", false }}
	r, tips := use(t, run, scope, "new_task", `{"agentName":"researcher","taskName":"X","input":"find x"}`)
	h := run.only(t)
	if want := `{"success":true,"summary":"found","subtaskId":"sub_task_` + h.ID + `"}`; r.Text != want || r.Tainted {
		t.Errorf("got %+v, want %s", r, want)
	}
	if got := fmt.Sprintf("%q", tips); got != `["Creating subtask “X”…" "Subtask “X” created, running…" "Subtask “X” succeeded"]` {
		t.Errorf("tips %s", got)
	}
	if got := line(h.Only, h.Agent, h.Model, h.Rounds, h.Strict, h.Hears, h.Report, h.Label, h.Task, h.Depth); got != "[attempt_completion exec web_search] researcher big 9 true true false X find x 1" ||
		h.Instruction != "Be curious." {
		t.Errorf("begun %s, told %q", got, h.Instruction)
	}
	run = &runner{}
	use(t, run, scope, "new_task", `{"agentName":"all","taskName":"X","input":"x"}`)
	if got := run.only(t).Only; !slices.Contains(got, "new_task") { // its profile does not say what it may use
		t.Errorf("it has %q", got)
	}
	deep := scope
	deep.Depth, deep.Agent = 2, "researcher"
	run = &runner{end: func(c *tools.Subagent) { c.State, c.Result = tools.SubagentFailed, "no luck" }}
	r, tips = use(t, run, deep, "new_task", `{"agentName":"all","taskName":"X","input":"find x"}`)
	h = run.only(t)
	if want := `{"success":false,"summary":"","subtaskId":"sub_task_` + h.ID + `","error":"no luck"}`; r.Text != want || !r.Tainted || tips[2] != "Subtask “X” failed" {
		t.Errorf("got %+v, %q, want %s", r, tips, want)
	}
	if got := line(h.Only, h.Model, h.Depth); got != "[attempt_completion exec own read_file web_search] cheap 3" {
		t.Errorf("begun %s", got)
	}
	run = &runner{end: func(c *tools.Subagent) { c.Result = "found" }} // C-029: what is not there is told of
	r, _ = use(t, run, scope, "new_task", `{"agentName":"lost","taskName":"X","input":"x"}`)
	h = run.only(t)
	want := `{"success":true,"summary":"found","subtaskId":"sub_task_` + h.ID + `","note":"agents/lost.md names what it does not have here: web_serch, cron, the model gone"}`
	if got := line(h.Only, h.Model); r.Text != want || got != "[attempt_completion exec] cheap" {
		t.Errorf("got %s, begun %s", r.Text, got)
	}
	for s, parent := range map[*tools.Scope]string{&scope: "main", &deep: "researcher"} {
		r, _ := use(t, &runner{}, *s, "new_task", `{"agentName":"nobody","taskName":"X","input":"x"}`)
		if want := "Error: Subtask failed: Sub agent 'nobody' not found in parent agent '" + parent + "'" + hint; r.Text != want || r.Code != tools.CodeError {
			t.Errorf("got %q, want %q", r.Text, want)
		}
	}
}

// A-061, C-034: who has which of them, and what the model is told of the agents.
func TestOffered(t *testing.T) {
	for depth, want := range []string{"multi_agent new_task spawn", "new_task", "new_task", ""} {
		s := scope
		s.Depth = depth
		k, _ := kit(t, &runner{}, s)
		var got []string
		for _, tool := range k.Tools() {
			if tool.Category == "agents" {
				got = append(got, tool.Name)
				if !tool.Repeatable || !tool.Waits(tools.Call{}) || tool.ReadOnly {
					t.Errorf("%s has %+v", tool.Name, tool.Hints)
				}
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("depth %d: %s", depth, got)
		}
	}
	k, _ := kit(t, &runner{}, scope)
	if tool, _ := k.Tool("new_task"); !strings.HasSuffix(tool.Description, "\n\n# Available Sub-Agents\n\n- researcher: finds things out\n- all: does anything\n- lost: lacks much") {
		t.Errorf("told %q", tool.Description)
	}
	none, err := New(Config{}).Tools(t.Context(), scope)
	if err != nil || len(none) != 2 {
		t.Errorf("without agents: %d tools, %v", len(none), err)
	}
}

// A-060, C-031, D-092: what the model is told of the arguments.
func TestSchemas(t *testing.T) {
	k, _ := kit(t, &runner{}, scope)
	for name, want := range map[string]string{
		"spawn": "task*,label,wait", "multi_agent": "tasks*", "new_task": "agentName*,taskName*,input*",
	} {
		tool, _ := k.Tool(name)
		var s struct {
			Properties map[string]any
			Required   []string
		}
		if err := json.Unmarshal(tool.Schema, &s); err != nil {
			t.Fatal(err)
		}
		args := strings.Split(want, ",")
		for _, a := range args {
			plain := strings.TrimSuffix(a, "*")
			if s.Properties[plain] == nil || slices.Contains(s.Required, plain) != (plain != a) {
				t.Errorf("%s: %s is not as it should be in %s", name, a, tool.Schema)
			}
		}
		if len(s.Properties) != len(args) {
			t.Errorf("%s takes %v", name, s.Properties)
		}
	}
}

// E-039: the model is told that a subagent worked earlier.
func TestEarlier(t *testing.T) {
	if r, _ := use(t, earlyRunner{}, scope, "multi_agent", `{"tasks":[{"name":"a","instruction":"A"}]}`); !strings.Contains(r.Text, `"response":"old\n\n(already done in this turn; this is the earlier result)"`) {
		t.Errorf("got %s", r.Text)
	}
}

type earlyRunner struct{}

func (earlyRunner) Spawn(context.Context, tools.Subagent) (tools.Subagent, error) {
	return tools.Subagent{ID: "old", Call: "earlier"}, nil
}

func (earlyRunner) Await(_ context.Context, id string) (tools.Subagent, error) {
	return tools.Subagent{ID: id, State: tools.SubagentAnswered, Result: "old"}, nil
}

// A call that ends before its subagents do says so, and is not a result.
func TestCutShort(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	k, s := kit(t, waiter{}, scope)
	cancel(tools.ErrClosing)
	for name, args := range map[string]string{
		"multi_agent": `{"tasks":[{"name":"a","instruction":"A"}]}`, "spawn": `{"task":"t","wait":true}`, "new_task": `{"agentName":"all","taskName":"X","input":"x"}`,
	} {
		r := k.Call(ctx, tools.Call{ToolCall: llm.ToolCall{ID: "c", Name: name, Args: args}, Scope: s})
		if r.Code != tools.CodeCancelled {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

type waiter struct{}

func (waiter) Spawn(_ context.Context, c tools.Subagent) (tools.Subagent, error) { return c, nil }

func (waiter) Await(ctx context.Context, _ string) (tools.Subagent, error) {
	<-ctx.Done()
	return tools.Subagent{}, context.Cause(ctx)
}
