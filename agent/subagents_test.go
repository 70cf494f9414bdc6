package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
	"parley/tools/agents"
	speech "parley/tools/message"
)

// A poolRunner is the Runner of a house: its Pool, which is made after the tools.
type poolRunner struct{ *house }

func (c poolRunner) Spawn(ctx context.Context, h tools.Subagent) (tools.Subagent, error) {
	return c.pool.Subagents().Spawn(ctx, h)
}

func (c poolRunner) Await(ctx context.Context, id string) (tools.Subagent, error) {
	return c.pool.Subagents().Await(ctx, id)
}

var researcher = agents.Profile{Name: "researcher", Description: "finds out", Instruction: "Be curious.", Rounds: 5}

// helped gives h the tools by which subagents are made.
func withSubagents(h *house, mw ...tools.Middleware) *house {
	source := agents.New(agents.Config{Runner: poolRunner{h}, Profiles: func() []agents.Profile { return []agents.Profile{researcher} }})
	set := h.set
	h.set = func(s *agent.Settings) {
		s.Rounds = 10
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			all := []tools.Source{tools.Fixed{speech.NewComplete(false)}, tools.Fixed(h.tools), source}
			return tools.NewKit(ctx, scope, all, append(mw, tools.Standard(tools.StandardConfig{})...)...)
		}
		if set != nil {
			set(s)
		}
	}
	return h
}

// byTask answers subagents by what their task says, and the others by main.
func byTask(main, subagent func(r llm.Request) llm.Message) func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
	return func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if !strings.HasPrefix(r.System, "be kind to ") {
			return main(r), nil
		}
		answer := subagent(r)
		after, slow := strings.CutPrefix(answer.Text, "slowly ")
		if answer.Text = after; slow {
			select {
			case <-time.After(50 * time.Second):
			case <-ctx.Done():
				return answer, ctx.Err()
			}
		}
		return answer, nil
	}
}

func lastOf(r llm.Request) llm.Message { return r.Messages[len(r.Messages)-1] }

// D-092: the answer comes at once, and the result later in the same chat.
func TestSpawn(t *testing.T) {
	var report string
	h := &house{tools: []tools.Tool{tool("exec", nil), tool("message", nil), tool("cron", nil), tool("look", nil)}}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole:
			return words(last.Text)
		case strings.Contains(last.Text, "[Subagent"):
			report = last.Text
			return words("it is 42")
		}
		return calls(with("c", "spawn", `{"task":"work out the answer to everything there is"}`))
	}, func(r llm.Request) llm.Message {
		if got := fmt.Sprint(names(r)); got != "[exec]" {
			t.Errorf("a worker has %s", got)
		}
		time.Sleep(time.Minute)
		return words("42")
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		synctest.Wait()
		h.mu.Lock()
		id := strings.TrimSuffix(strings.TrimPrefix(strings.Join(h.sent, ""), "Subagent [work out the answer to everyth...] started (id: "), "). I'll notify you when it completes.")
		h.sent = nil
		h.mu.Unlock()
		if len(id) != 8 {
			t.Fatalf("got %q", id)
		}
		h.say("2", "/agents")
		h.want("Background tasks:\n\n- `" + id + "` work out the answer to everyth... – thinking, began a moment ago")
		timetest.Sleep(2 * time.Minute)
		h.want("it is 42")
		want := "[Subagent 'work out the answer to everyth...' completed successfully]\n\nTask: work out the answer to everything there is\n\n" +
			"Result: 42\n\nSummarize this naturally for the person in 1–2 sentences. "
		if _, text, _ := strings.Cut(report, "\n"); !strings.HasPrefix(text, want) || !strings.Contains(report, ", from the subagent]") {
			t.Errorf("the report is %q", report)
		}
		h.say("3", "/agents")
		h.want("No background tasks are running.")
		if c := h.subagents(); len(c) != 1 || c[0].ID != id || c[0].State != tools.SubagentAnswered || c[0].Report || c[0].Parent != "test:1" {
			t.Errorf("kept %+v", c)
		}
	})
}

func names(r llm.Request) (all []string) {
	for _, s := range r.Tools {
		all = append(all, s.Name)
	}
	return all
}

func (h *house) subagents() []tools.Subagent {
	h.t.Helper()
	all, err := h.pool.Subagents().List(h.t.Context(), "")
	if err != nil {
		h.t.Error(err)
	}
	slices.SortStableFunc(all, func(a, b tools.Subagent) int { return a.Began.Compare(b.Began) })
	return all
}

// D-092: that a subagent failed is reported too.
func TestSpawnFails(t *testing.T) {
	var report string
	h := &house{tools: []tools.Tool{tool("exec", func(context.Context) (string, error) { return "ok", nil }), tool("glob", func(context.Context) (string, error) { return "", errors.New("no") })}}
	n := 0
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if !strings.HasPrefix(r.System, "be kind to ") {
			if last := lastOf(r); strings.Contains(last.Text, "[Subagent") {
				report = last.Text
				return words("sorry"), nil
			} else if last.Role == llm.ToolRole {
				return words("begun"), nil
			}
			return calls(with("c", "spawn", `{"task":"t","label":"it"}`)), nil
		}
		if n++; n == 1 {
			return calls(call("1", "exec"), call("2", "glob"), call("3", "exec")), nil
		}
		return llm.Message{}, &llm.Error{Kind: llm.Auth, Status: 401, Err: errors.New("bad key")}
	}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		h.want("begun", "sorry")
		if want := "[Subagent 'it' failed]\n\nTask: t\n\nResult: LLM API error: model refused the key (401): bad key\n\n"; !strings.Contains(report, want) {
			t.Errorf("the report is %q", report)
		}
	})
}

// multi asks for n subagents, the ith with the instruction "do i".
func multi(n int) llm.Message {
	var tasks []string
	for i := range n {
		tasks = append(tasks, fmt.Sprintf(`{"name":"n%d","instruction":"do %d"}`, i, i))
	}
	return calls(with("c", "multi_agent", `{"tasks":[`+strings.Join(tasks, ",")+`]}`))
}

// five tasks, three at once, each in a
// conversation of its own; whatever becomes of one, the others have their results.
func TestMultiAgent(t *testing.T) {
	var mu sync.Mutex
	busy, most, last, rounds := 0, 0, 0, 0
	h := &house{tools: []tools.Tool{tool("look", func(context.Context) (string, error) { return "seen", nil })}}
	h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if !strings.HasPrefix(r.System, "be kind to ") {
			if last := lastOf(r); last.Role == llm.ToolRole {
				return words(last.Text), nil
			}
			return multi(5), nil
		}
		if strings.Count(spoken(r, 99), "user do ") != 1 {
			t.Errorf("a subagent is told %q, %q", r.System, spoken(r, 99))
		}
		mu.Lock()
		busy++
		most = max(most, busy)
		mu.Unlock()
		defer func() { mu.Lock(); busy--; mu.Unlock() }()
		time.Sleep(time.Second)
		switch first := spoken(llm.Request{Messages: r.Messages[:1]}, 1); first {
		case "user do 0":
			return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Status: 400, Err: errors.New(strings.Repeat("x", 1000))}
		case "user do 1":
			panic("oh")
		case "user do 2":
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		case "user do 3": // the third request has no tools
			mu.Lock()
			defer mu.Unlock()
			if rounds++; len(r.Tools) == 0 {
				last++
				return words(""), nil
			}
			return calls(call(fmt.Sprint(len(r.Messages)), "look")), nil
		}
		return words("four"), nil
	}
	play(t, withSubagents(h), func(h *house) {
		began := time.Now()
		h.say("1", "go")
		timetest.Sleep(2 * time.Minute)
		synctest.Wait()
		var got struct {
			Success bool
			Total   int
			Results []struct {
				Task            string `json:"task_name"`
				Success         bool
				Response, Error string
			}
		}
		if err := json.Unmarshal([]byte(strings.Join(h.sent, "")), &got); err != nil || !got.Success || got.Total != 5 || len(got.Results) != 5 {
			t.Fatalf("%v: got %q", err, h.sent)
		}
		for i, want := range []string{
			"LLM API error: " + ("model refused the request (400): " + strings.Repeat("x", 1000))[:500],
			"Something went wrong inside me. The error is in my log. Please try again.",
			"LLM API error: model took too long: no whole answer within 1m0s",
			"Agent task completed but did not produce a final text response within the iteration limit.",
			"four",
		} {
			r := got.Results[i]
			if r.Task != fmt.Sprint("n", i) || r.Success != (i > 2) || r.Response+r.Error != want {
				t.Errorf("result %d: %+v\nwant %q", i, r, want)
			}
		}
		if most != 3 || last != 1 || rounds != 3 || h.asks[len(h.asks)-1].System == "" {
			t.Errorf("%d at once, %d of %d rounds without tools, after %v", most, last, rounds, time.Since(began))
		}
	})
}

// TestNewTask is C-031 and C-033: the parent waits, and what the person says
// meanwhile is said to the subagent; afterwards it is the parent's again.
func TestNewTask(t *testing.T) {
	h := &house{tools: []tools.Tool{tool("look", func(context.Context) (string, error) { time.Sleep(time.Minute); return "seen", nil })}}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole:
			return words(last.Text)
		case strings.HasSuffix(last.Text, "go"):
			return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"find it"}`))
		}
		return words("parent: " + spoken(r, 2))
	}, func(r llm.Request) llm.Message {
		if lastOf(r).Text != "" && len(r.Messages) == 1 {
			return calls(call("1", "look"))
		}
		time.Sleep(2 * time.Second)
		return words("child: " + spoken(r, 2))
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(30 * time.Second)
		h.say("2", "in the red box")
		h.say("3", "/status")
		h.want("I am waiting for background tasks, for 30 seconds now.\nA background task is running: /agents\nModel: main\nUp for 30 seconds. Answers under way, in all conversations: 2; messages not answered yet: 3.")
		timetest.Sleep(31 * time.Second)
		h.say("4", "or in the blue one") // as the subagent gives its last answer
		timetest.Sleep(time.Minute)
		id := h.subagents()[0].ID
		synctest.Wait()
		h.mu.Lock()
		got := strings.Join(h.sent, "\n")
		h.mu.Unlock()
		const first = "child: tool seen | user in the red box"
		if want := `{"success":true,"summary":"` + first + `\n\nchild: assistant ` + first + ` | user or in the blue one","subtaskId":"sub_task_` + id + `"}`; got != want {
			t.Errorf("sent %q\nwant %q", got, want)
		}
		if n, _ := h.store.Queue("inbox").Len(t.Context()); n != 0 {
			t.Errorf("%d messages are left", n)
		}
		if r := h.asks[1]; !strings.Contains(r.System, "Be curious.") || strings.Contains(r.System, "find it") {
			t.Errorf("the subagent is told %q", r.System)
		}
	})
}

// D-092: subagents wait for no place that their parents hold, and in a full house
// a parent answers before those that it does not wait for.
func TestSubagentsHaveRoom(t *testing.T) {
	h := &house{conf: func(c *agent.Config) { c.Turns = 1 }}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole:
			return words("done")
		case strings.HasSuffix(last.Text, "spawn"):
			return calls(with("c", "spawn", `{"task":"t"}`), with("d", "spawn", `{"task":"u"}`))
		}
		return multi(5)
	}, func(r llm.Request) llm.Message {
		if strings.HasPrefix(lastOf(r).Text, "do ") {
			return words("x")
		}
		return words("slowly x")
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(6 * time.Minute)
		h.want("done")
		h.say("2", "spawn")
		h.want("done")
	})
}

// TestRestartOfSubagents: a parent that waits, and subagents of every kind, go on
// after a restart, and nothing is done or said twice.
func TestRestartOfSubagents(t *testing.T) {
	for _, name := range []string{"spawn", "multi_agent", "new_task"} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				db, said := mem.New(), map[string]string{}
				var ran atomic.Int64
				start := func() *house {
					h := &house{t: t, store: db, said: said, conf: func(c *agent.Config) { c.Grace = time.Second }}
					h.tools = []tools.Tool{tool("exec", func(context.Context) (string, error) { ran.Add(1); return "ran", nil })}
					h.model = byTask(func(r llm.Request) llm.Message {
						switch last := lastOf(r); {
						case strings.Contains(last.Text, "[Subagent"):
							return words("reported")
						case last.Role == llm.ToolRole:
							return words("result " + last.Text)
						}
						return calls(with("c", name, map[string]string{
							"spawn": `{"task":"t"}`, "multi_agent": `{"tasks":[{"name":"a","instruction":"t"},{"name":"b","instruction":"u"}]}`,
							"new_task": `{"agentName":"researcher","taskName":"X","input":"t"}`,
						}[name]))
					}, func(r llm.Request) llm.Message {
						if len(r.Messages) == 1 {
							return calls(call("1", "exec"))
						}
						return words("slowly found")
					})
					withSubagents(h).start()
					return h
				}
				h := start()
				h.say("1", "go")
				timetest.Sleep(10 * time.Second)
				for range 5 {
					h.stop()
					h = start()
					timetest.Sleep(10 * time.Second)
				}
				timetest.Sleep(3 * time.Hour)
				h.stop()
				id := h.subagents()[0].ID
				want := map[string]string{
					"spawn":       "re:test//1/1: result Subagent [t] started (id: " + id + "). I'll notify you when it completes.; re:test/agent/1/report/" + id + ": reported",
					"multi_agent": `re:test//1/1: result {"success":true,"results":[{"task_name":"a","success":true,"response":"found"},{"task_name":"b","success":true,"response":"found"}],"total":2}`,
					"new_task":    `re:test//1/1: result {"success":true,"summary":"found","subtaskId":"sub_task_` + id + `"}`,
				}[name]
				var got []string
				for _, key := range []string{"re:test//1/1", "re:test/agent/1/report/" + id} {
					if said[key] != "" {
						got = append(got, key+": "+said[key])
					}
				}
				if strings.Join(got, "; ") != want || len(said) != len(got) || int(ran.Load()) != len(h.subagents()) {
					t.Errorf("said %q, ran %d\nwant %q", said, ran.Load(), want)
				}
			})
		})
	}
}

// C-033, D-093: /stop ends the turn and all its subagents, and says how many.
func TestStopSubagents(t *testing.T) {
	h := &house{conf: func(c *agent.Config) { c.Turns = 3 }} // two of them wait for a place
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case strings.HasSuffix(last.Text, "spawn"):
			return calls(with("a", "spawn", `{"task":"a"}`), with("b", "spawn", `{"task":"b"}`))
		case strings.HasSuffix(last.Text, "multi"):
			return multi(5)
		case strings.HasSuffix(last.Text, "deep"):
			return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"deeper"}`))
		}
		return words("ok")
	}, func(r llm.Request) llm.Message {
		if strings.HasSuffix(lastOf(r).Text, "deeper") {
			return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"Y","input":"work"}`))
		}
		return words("slowly never")
	})
	play(t, withSubagents(h), func(h *house) {
		for i, c := range []struct{ say, want string }{{"multi", "(Stopped, with 3 background tasks.)"}, {"deep", "(Stopped, with 2 background tasks.)"}, {"nothing", ""}, {"spawn", "Stopped 2 background tasks."}} {
			h.say(fmt.Sprint(i), c.say)
			timetest.Sleep(10 * time.Second)
			synctest.Wait()
			h.sent = nil
			h.say(fmt.Sprint("s", i), "/stop")
			timetest.Sleep(time.Second)
			if c.want == "" {
				c.want = "There is nothing to stop."
			}
			h.want(c.want)
			timetest.Sleep(2 * time.Hour)
			h.want()
			if n, _ := h.store.Queue("inbox").Len(t.Context()); n != 0 {
				t.Errorf("%s: %d messages are left", c.say, n)
			}
		}
		for _, c := range h.subagents() {
			if c.State != tools.SubagentStopped {
				t.Errorf("%s is %s", c.Label, c.State)
			}
		}
		h.say("9", "/stop")
		old := message("old", "/stop")
		timetest.Sleep(time.Second)
		h.say("10", "spawn")
		timetest.Sleep(time.Second)
		h.deliver(old) // a network brings it late
		timetest.Sleep(time.Second)
		h.want("There is nothing to stop.", "ok", "There is nothing to stop.")
		h.say("11", "/stop")
		h.want("Stopped 2 background tasks.")
	})
}

// C-030, C-033: what a person says goes to the subagent that is waited for last,
// and attempt_completion ends a subagent with its result.
func TestDeepTask(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(30 * time.Second)}}
	give := func(input string) llm.Message {
		return calls(with("c", "new_task", fmt.Sprintf(`{"agentName":"researcher","taskName":"X","input":%q}`, input)))
	}
	h.model = byTask(func(r llm.Request) llm.Message {
		if lastOf(r).Role == llm.ToolRole {
			return words(lastOf(r).Text)
		}
		return give("one")
	}, func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case len(r.Messages) == 1 && strings.HasSuffix(last.Text, "\none"):
			return give("two")
		case len(r.Messages) == 1 && strings.HasSuffix(last.Text, "\ntwo"):
			return give("three")
		case len(r.Messages) == 1:
			if slices.Contains(names(r), "new_task") {
				t.Error("the third may give tasks")
			}
			return calls(call("e", "exec"))
		case last.Name == "new_task":
			return words("heard of: " + last.Text)
		}
		return calls(with("a", "attempt_completion", fmt.Sprintf(`{"result":%q}`, spoken(r, 1))))
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Second)
		h.say("2", "look behind you")
		h.say("3", "/agents")
		timetest.Sleep(time.Minute)
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		all := h.subagents() // which began at the same instant
		slices.SortFunc(all, func(a, b tools.Subagent) int { return a.Depth - b.Depth })
		if len(h.sent) != 2 || strings.Count(h.sent[0], "waiting for background tasks") != 2 || !strings.Contains(h.sent[1], "user look behind you") || strings.Count(h.sent[1], "heard of") != 2 {
			t.Errorf("sent %q", h.sent)
		}
		if len(all) != 3 || all[2].Depth != 3 || all[2].Result != "user look behind you" || all[2].Parent != chat.SessionID("agent:"+all[1].ID) {
			t.Errorf("kept %+v", all)
		}
	})
}
