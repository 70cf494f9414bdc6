package agent_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/tools"
	"parley/tools/agents"
)

// R-S15: those who help the run of a job are paid by the job, and its session;
// what they report is answered as its run is: by its model, in its session, and
// of quiet work only if there is something to say.
func TestHelpersOfJobs(t *testing.T) {
	for _, c := range []struct {
		errand chat.Errand
		in     chat.SessionID
		found  string
		want   string
	}{
		{chat.Errand{}, "", "nothing", "begun; There is nothing to say."},
		{chat.Errand{Quiet: true}, "", "nothing", "begun"},
		{chat.Errand{Quiet: true, Model: "other"}, "", "a fire", "begun; a fire"},
		{chat.Errand{Fresh: true, Model: "other"}, "cron:j", "a fire", "begun; a fire"},
	} {
		t.Run(fmt.Sprint(c.errand, c.found), func(t *testing.T) {
			h := &house{set: func(s *agent.Settings) { s.Limits.Job.Children = 2 }}
			h.model = byTask(func(r llm.Request) llm.Message {
				switch last := lastOf(r); {
				case strings.Contains(last.Text, "[Subagent") && strings.Contains(last.Text, c.found):
					if quiet := strings.Contains(last.Text, "NOTHING_TO_SAY"); quiet != c.errand.Quiet {
						t.Errorf("quiet %v: %q", quiet, last.Text)
					}
					return words(map[string]string{"nothing": "NOTHING_TO_SAY"}[c.found] + map[string]string{"a fire": "a fire"}[c.found])
				case last.Role == llm.ToolRole && !strings.Contains(last.Text, "started"):
					return words(last.Text)
				case last.Role == llm.ToolRole:
					return words("begun")
				}
				return calls(with("c", "spawn", `{"task":"look around"}`))
			}, func(llm.Request) llm.Message { return words("slowly " + c.found) })
			models := map[string]string{}
			h.conf = func(conf *agent.Config) {
				conf.Begun = func(ctx context.Context, id chat.SessionID, m chat.Message) (context.Context, func(string)) {
					if m.Origin == chat.FromSubagent {
						models[m.Errand.Model] = string(id)
					}
					return ctx, func(string) {}
				}
			}
			play(t, helped(h), func(h *house) {
				run := func(n int) {
					m := errand(fmt.Sprint("j/", n), "go", c.errand)
					m.In = c.in
					h.deliver(m)
					time.Sleep(time.Minute)
				}
				run(1)
				h.want(strings.Split(c.want, "; ")...)
				if got := models[c.errand.Model]; got != string(max(c.in, "test:1")) && c.in == "" || c.in != "" && got != string(c.in) {
					t.Errorf("answered in %q", models)
				}
				run(2)
				h.mu.Lock()
				h.sent = nil
				h.mu.Unlock()
				run(3)
				h.mu.Lock()
				defer h.mu.Unlock()
				if len(h.sent) != 1 || !strings.Contains(h.sent[0], "Today's limit for this job is reached: 2 of 2 helpers.") {
					t.Errorf("the third run says %q", h.sent)
				}
			})
		})
	}
}

// R-S15: that a job's helper came to the job's limit is told, though the helper
// itself ran into it first.
func TestHelperOfJobAtLimit(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Second)}, set: func(s *agent.Settings) { s.Limits.Job.Rounds = 4 }}
	h.model = byTask(spawning, func(r llm.Request) llm.Message {
		time.Sleep(5 * time.Second) // until its parent has said what it says
		return worker(2)(r)
	})
	play(t, helped(h), func(h *house) {
		h.deliver(errand("1", "work", chat.Errand{}))
		time.Sleep(time.Minute)
		const limit = "Today's limit for this job is reached: 4 of 4 requests. It begins anew at midnight (UTC). An owner can raise it with /raise job j."
		h.want("begun", limit)
		if c := h.children()[0]; c.State != tools.ChildFailed || c.Result != limit {
			h.t.Errorf("kept %+v", c)
		}
	})
}

// D-093: /stop ends the helpers of a job, too, that has a session of its own and answers here.
func TestStopHelpersOfJobs(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, model: byTask(spawning, worker(1))}
	play(t, helped(h), func(h *house) {
		m := errand("1", "work", chat.Errand{Fresh: true})
		m.In = "cron:j"
		h.deliver(m)
		time.Sleep(10 * time.Second)
		other := message("2", "/stop")
		other.At.Chat = "2"
		h.deliver(other)
		h.say("3", "/stop")
		h.want("begun", "There is nothing to stop.", "Stopped a helper.")
	})
}

// D-066: what a helper changes is undone in the conversation that it works for.
// C-051: what it asks for leaves its place to others meanwhile.
func TestHelpersChanges(t *testing.T) {
	guard := &warden{after: time.Hour}
	var got []string
	change := tool("change", nil)
	change.Dangerous = true
	change.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		got = append(got, fmt.Sprint(c.Depth, " ", c.Root, " ", c.RootTurn))
		return tools.Result{Text: "changed"}, nil
	}
	h := &house{tools: []tools.Tool{change}, conf: func(c *agent.Config) { c.Turns = 1 }}
	task := func(input string) llm.ToolCall {
		return with("t", "new_task", fmt.Sprintf(`{"agentName":"researcher","taskName":"X","input":%q}`, input))
	}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case strings.HasSuffix(last.Text, "go"):
			return calls(call("0", "change"), task("one"))
		case last.Role == llm.ToolRole:
			return words("done")
		}
		return words("hello")
	}, func(r llm.Request) llm.Message {
		switch {
		case lastOf(r).Role == llm.ToolRole:
			return words("done")
		case strings.HasSuffix(lastOf(r).Text, "one"):
			return calls(call("1", "change"), task("two"))
		}
		return calls(call("2", "change"))
	})
	h.set = func(s *agent.Settings) {
		source := agents.New(agents.Config{Runner: crew{h}, Profiles: func() []agents.Profile { return []agents.Profile{researcher} }})
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools), source}, tools.Standard(tools.StandardConfig{Approve: guard.approve, Patience: 24 * time.Hour})...)
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "go")
		time.Sleep(150 * time.Minute) // the last is asked for
		m := message("2", "hi")
		m.At.Chat = "2"
		h.deliver(m)
		h.want("hello")
		time.Sleep(time.Hour)
		h.want("done")
		if got := fmt.Sprintf("%q", got); got != `["0  " "1 test:1 test//1/1" "2 test:1 test//1/1"]` {
			t.Errorf("changed by %s", got)
		}
	})
}

// C-033: what a helper did not hear before somebody ended it is said to its
// parent. After /stop it is not: the person does not want it any more.
func TestWordsForTheStopped(t *testing.T) {
	for what, want := range map[string]string{"/agents stop all": "Stopped a helper. heard in the red box", "/stop": "(Stopped, with a helper.)"} {
		t.Run(what, func(t *testing.T) {
			h := &house{tools: []tools.Tool{slowExec(time.Hour)}}
			h.model = byTask(func(r llm.Request) llm.Message {
				switch last := lastOf(r); {
				case strings.HasSuffix(last.Text, "go"):
					return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"work"}`))
				case strings.Contains(last.Text, `"success":false`):
					return words("heard failed")
				default:
					_, text, _ := strings.Cut(last.Text, "\n")
					return words("heard " + text)
				}
			}, worker(1))
			play(t, helped(h), func(h *house) {
				h.say("1", "go")
				time.Sleep(10 * time.Second)
				h.say("2", "in the red box")
				time.Sleep(10 * time.Second)
				h.say("3", what)
				time.Sleep(time.Minute)
				synctest.Wait()
				h.mu.Lock()
				defer h.mu.Unlock()
				got := strings.Join(h.sent, " ")
				got = strings.Join(strings.Fields(strings.Replace(got, "heard failed", "", 1)), " ") // which comes before or after, or is not said
				if got != want {
					t.Errorf("said %q, want %q", got, want)
				}
			})
		})
	}
}

// A helper that is begun as its parent is stopped is not begun (D-093).
func TestStoppedAsItBegins(t *testing.T) {
	var stop atomic.Value
	stop.Store(func() {})
	h := &house{store: nosy{mem.New(), func() { stop.Load().(func())() }}, model: byTask(spawning, worker(0))}
	play(t, helped(h), func(h *house) {
		ctx, cancel := context.WithCancel(h.t.Context())
		stop.Store(func() { cancel() })
		if _, err := h.pool.Spawn(ctx, tools.Child{ID: "s", Call: "s", Parent: "x", Task: "t"}); err == nil || len(h.children()) != 0 {
			h.t.Errorf("begun: %v, %+v", err, h.children())
		}
		h.say("1", "/agents")
		h.want("No helpers are at work.")
	})
}

// A nosy store calls then whenever somebody has looked for a helper.
type nosy struct {
	store.Store
	then func()
}

func (s nosy) Bucket(name string) store.Bucket {
	b := s.Store.Bucket(name)
	if name == "helpers" {
		return nosyBucket{b, s.then}
	}
	return b
}

type nosyBucket struct {
	store.Bucket
	then func()
}

func (b nosyBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	defer b.then()
	return b.Bucket.Get(ctx, key)
}

// One that waits for a place as its conversation is forgotten leaves nothing behind.
func TestForgetWaitingHelper(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, conf: func(c *agent.Config) { c.Turns = 1 }}
	h.model = byTask(func(r llm.Request) llm.Message {
		if strings.HasSuffix(lastOf(r).Text, "hold") {
			return calls(call("e", "exec"))
		}
		time.Sleep(time.Second)
		return spawning(r)
	}, worker(1))
	play(t, helped(h), func(h *house) {
		h.say("1", "work")
		time.Sleep(time.Millisecond)
		m := message("2", "hold")
		m.At.Chat = "2"
		h.deliver(m) // and gets the place before the helper
		time.Sleep(5 * time.Second)
		kids := h.children()
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil || len(kids) != 1 {
			h.t.Errorf("%v, %+v", err, kids)
		}
		m.ID, m.Text, m.Time = "3", "/stop", time.Now()
		h.deliver(m)
		h.want("begun", "(Stopped.)")
		for _, bucket := range []string{"sessions", "helpers"} {
			for key, err := range h.store.Bucket(bucket).Keys(h.t.Context(), "") {
				if err != nil || key != "test:2" {
					h.t.Errorf("left is %s, %v", key, err)
				}
			}
		}
		for r, err := range h.store.Log("session/agent:"+kids[0].ID).Since(h.t.Context(), 0) {
			h.t.Errorf("left is %s, %v", r.Body, err)
		}
	})
}
