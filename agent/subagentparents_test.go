package agent_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/replay"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
	"parley/tools/agents"
)

// R-S15: those who help the run of a job are paid by the job, and its session;
// what they report is answered as its run is: by its model, in its session, and
// of quiet work only if there is something to say.
func TestSubagentsOfJobs(t *testing.T) {
	for _, c := range []struct {
		errand chat.RunOptions
		in     chat.SessionID
		found  string
		want   string
	}{
		{chat.RunOptions{}, "", "nothing", "begun; There is nothing to say."},
		{chat.RunOptions{Quiet: true}, "", "nothing", "begun"},
		{chat.RunOptions{Quiet: true, Model: "other"}, "", "a fire", "begun; a fire"},
		{chat.RunOptions{Fresh: true, Model: "other"}, "cron:j", "a fire", "begun; a fire"},
	} {
		t.Run(fmt.Sprint(c.errand, c.found), func(t *testing.T) {
			h := &house{set: func(s *agent.Settings) { s.Limits.Job.Subagents = 2 }}
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
			var models sync.Map // of the sessions in which reports were answered
			h.conf = func(conf *agent.Config) {
				conf.Begun = func(ctx context.Context, id chat.SessionID, m chat.Message) (context.Context, func(string)) {
					if m.Origin == chat.FromSubagent {
						models.Store(m.Options.Model, string(id))
					}
					return ctx, func(string) {}
				}
			}
			play(t, withSubagents(h), func(h *house) {
				run := func(n int) {
					m := errand(fmt.Sprint("j/", n), "go", c.errand)
					m.In = c.in
					h.deliver(m)
					timetest.Sleep(time.Minute)
				}
				run(1)
				h.want(strings.Split(c.want, "; ")...)
				if got, _ := models.Load(c.errand.Model); got != string(max(c.in, "test:1")) && c.in == "" || c.in != "" && got != string(c.in) {
					t.Errorf("answered in %q", got)
				}
				run(2)
				h.mu.Lock()
				h.sent = nil
				h.mu.Unlock()
				run(3)
				h.mu.Lock()
				defer h.mu.Unlock()
				if len(h.sent) != 1 || !strings.Contains(h.sent[0], "Today's limit for this job is reached: 2 of 2 background tasks.") {
					t.Errorf("the third run says %q", h.sent)
				}
			})
		})
	}
}

// R-S15: that a job's subagent came to the job's limit is told, though the subagent
// itself ran into it first.
func TestSubagentOfJobAtLimit(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Second)}, set: func(s *agent.Settings) { s.Limits.Job.Requests = 4 }}
	h.model = byTask(spawning, func(r llm.Request) llm.Message {
		time.Sleep(5 * time.Second) // until its parent has said what it says
		return worker(2)(r)
	})
	play(t, withSubagents(h), func(h *house) {
		h.deliver(errand("1", "work", chat.RunOptions{}))
		timetest.Sleep(time.Minute)
		const limit = "Today's limit for this job is reached: 4 of 4 requests. It resets at midnight (UTC). An owner can raise it with /raise job j."
		h.want("begun", limit)
		if c := h.subagents()[0]; c.State != tools.SubagentFailed || c.Result != limit {
			h.t.Errorf("kept %+v", c)
		}
	})
}

// D-093: /stop ends the subagents of a job, too, that has a session of its own and answers here.
func TestStopSubagentsOfJobs(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, model: byTask(spawning, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		m := errand("1", "work", chat.RunOptions{Fresh: true})
		m.In = "cron:j"
		h.deliver(m)
		timetest.Sleep(10 * time.Second)
		other := message("2", "/stop")
		other.At.Chat = "2"
		h.deliver(other)
		h.say("3", "/stop")
		h.want("begun", "There is nothing to stop.", "Stopped a background task.")
	})
}

// D-066: what a subagent changes is undone in the conversation that it works for.
// C-051: what it asks for leaves its place to others meanwhile.
func TestSubagentsChanges(t *testing.T) {
	guard := &warden{after: time.Hour}
	var got collected[string]
	change := tool("change", nil)
	change.Dangerous = true
	change.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		got.add(fmt.Sprint(c.Depth, " ", c.Root, " ", c.RootTurn))
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
		source := agents.New(agents.Config{Runner: poolRunner{h}, Profiles: func() []agents.Profile { return []agents.Profile{researcher} }})
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools), source}, tools.Standard(tools.StandardConfig{Approve: guard.approve, Patience: 24 * time.Hour})...)
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(150 * time.Minute) // the last is asked for
		m := message("2", "hi")
		m.At.Chat = "2"
		h.deliver(m)
		h.want("hello")
		timetest.Sleep(time.Hour)
		h.want("done")
		if got := fmt.Sprintf("%q", got.values()); got != `["0  " "1 test:1 test//1/1" "2 test:1 test//1/1"]` {
			t.Errorf("changed by %s", got)
		}
	})
}

// C-033: what a subagent did not hear before somebody ended it is said to its
// parent, and that it was meant for the subagent, if the person said so. After
// /stop it is not: the person does not want it any more.
func TestWordsForTheStopped(t *testing.T) {
	const meant = "> What follows was meant for the subagent 'X', which had ended."
	for _, c := range []struct{ words, what, want string }{
		{"in the red box", "/agents stop all", "Stopped the background task 'X' (`ID`). heard in the red box"},
		{"in the red box", "/stop", "(Stopped, with a background task.)"},
		{"/agents tell all in the red box", "/agents stop all", "Told the background task 'X' (`ID`). Stopped the background task 'X' (`ID`). heard " + meant + " in the red box"},
		{"/agents tell all /new things", "/agents stop all", "Told the background task 'X' (`ID`). Stopped the background task 'X' (`ID`). heard " + meant + " /new things"},
		{"/agents tell all in the red box", "/stop", "Told the background task 'X' (`ID`). (Stopped, with a background task.)"},
	} {
		t.Run(c.words+c.what, func(t *testing.T) {
			h := &house{tools: []tools.Tool{slowExec(time.Hour)}}
			h.model = byTask(func(r llm.Request) llm.Message {
				switch last := lastOf(r); {
				case strings.HasSuffix(last.Text, "go"):
					return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"work"}`))
				case strings.Contains(last.Text, `"success":false`):
					return words("heard failed")
				default:
					head, text, _ := strings.Cut(last.Text, "\n")
					if told := strings.Contains(head, "in reply to your message quoted below]"); told != strings.HasPrefix(text, meant) {
						t.Errorf("the first line is %q", head)
					}
					return words("heard " + text)
				}
			}, worker(1))
			play(t, withSubagents(h), func(h *house) {
				h.say("1", "go")
				timetest.Sleep(10 * time.Second)
				h.say("2", c.words)
				timetest.Sleep(10 * time.Second)
				h.say("3", c.what)
				timetest.Sleep(time.Minute)
				synctest.Wait()
				h.mu.Lock()
				defer h.mu.Unlock()
				got := strings.Join(h.sent, " ")
				got = strings.Join(strings.Fields(strings.Replace(got, "heard failed", "", 1)), " ") // which comes before or after, or is not said
				if want := strings.ReplaceAll(c.want, "ID", h.subagents()[0].ID); got != want {
					t.Errorf("said %q, want %q", got, want)
				}
			})
		})
	}
}

// What is told a subagent that nobody knows any more is heard, too, and is no command.
func TestWordsForTheForgotten(t *testing.T) {
	h := &house{model: func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		return words(spoken(r, 1)), nil
	}}
	play(t, h, func(h *house) {
		m := message("1/abcd0123", "/new things")
		m.In = "agent:abcd0123"
		h.deliver(m)
		h.want("user > What follows was meant for the subagent 'abcd0123', which had ended.\n/new things")
	})
}

// What is told a subagent that has ended is its parent's, not another subagent's that
// hears what is said there; its name may be untrusted content (R-S12).
func TestWordsForTheEnded(t *testing.T) {
	var tainted collected[bool]
	look := tool("look", nil)
	look.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		tainted.add(c.Tainted)
		return tools.Result{Text: "seen"}, nil
	}
	h := &house{store: mem.New(), tools: []tools.Tool{slowExec(10 * time.Second), look}}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case strings.HasSuffix(last.Text, "go"):
			return calls(call("l", "look"), with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"work"}`))
		case strings.HasSuffix(last.Text, "in the red box"):
			return calls(call("m", "look"))
		case last.Name == "look":
			return words("looked")
		}
		return words("done")
	}, func(r llm.Request) llm.Message {
		if strings.Contains(spoken(r, 99), "red box") {
			t.Error("another subagent hears it")
		}
		return worker(2)(r)
	})
	ended := tools.Subagent{ID: "ffff0000", Label: "it", Parent: "test:1", Tainted: true, State: tools.SubagentAnswered, Ended: time.Now()}
	if _, err := store.NewTable(h.store.Bucket("helpers"), store.Report[tools.Subagent]).Put(t.Context(), ended.ID, ended, 0); err != nil {
		t.Fatal(err)
	}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(5 * time.Second)
		m := message("2/ffff0000", "in the red box")
		m.In = "agent:ffff0000"
		h.deliver(m)
		timetest.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(h.sent, " "); !strings.HasSuffix(got, "looked") || fmt.Sprint(tainted.values()) != "[false true]" {
			t.Errorf("said %q, tainted %v", got, tainted.values())
		}
	})
}

// C-033: what a subagent is told during its last request it answers, too, though
// its rounds are used up, a tool has ended its task, or it is paused meanwhile.
func TestToldAtTheEnd(t *testing.T) {
	for name, c := range map[string]struct {
		rounds int
		last   llm.Message
		paused bool
		want   string
	}{
		"words":     {9, words("found"), false, "found\n\nheard in the red box"},
		"one round": {1, words("found"), false, "found\n\nheard in the red box"},
		"a tool":    {9, calls(with("c", "attempt_completion", `{"result":"found"}`)), false, "found\n\nheard in the red box"},
		"paused":    {9, words("found"), true, "found\n\nheard in the red box"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &house{}
			h.model = byTask(func(llm.Request) llm.Message { return words("the parent heard it") }, func(r llm.Request) llm.Message {
				if strings.Contains(spoken(r, 99), "in the red box") {
					return words("heard in the red box")
				}
				time.Sleep(10 * time.Second)
				return c.last
			})
			play(t, withSubagents(h), func(h *house) {
				begun, err := h.pool.Subagents().Spawn(h.t.Context(), tools.Subagent{
					ID: "abcd0123", Call: "s", Label: "it", Rounds: c.rounds, Only: []string{"attempt_completion"}, Task: "t",
					At: chat.Address{Channel: "test", Chat: "1"}, From: chat.Sender{ID: "7", Role: chat.Owner}, Parent: "test:1",
				})
				if err != nil {
					h.t.Fatal(err)
				}
				timetest.Sleep(5 * time.Second)
				did := []string{"Told the background task 'it' (`abcd0123`)."}
				if c.paused {
					h.say("1", "/agents pause all")
					timetest.Sleep(time.Minute)
					did = []string{"Paused the background task 'it' (`abcd0123`).", did[0], "Resumed the background task 'it' (`abcd0123`)."}
				}
				h.say("2", "/agents tell abcd in the red box")
				if c.paused {
					timetest.Sleep(time.Second)
					h.say("3", "/agents resume abcd")
				}
				timetest.Sleep(time.Minute)
				h.want(did...)
				ended, err := h.pool.Subagents().Await(h.t.Context(), begun.ID)
				if err != nil || ended.State != tools.SubagentAnswered || ended.Result != c.want {
					h.t.Errorf("%v: %+v", err, ended)
				}
				if n, _ := h.store.Queue("inbox").Len(h.t.Context()); n != 0 {
					h.t.Errorf("%d messages are left", n)
				}
				var b bytes.Buffer
				for line, err := range h.pool.Recording(h.t.Context(), "agent:abcd0123") {
					if b.Write(line); err != nil {
						h.t.Fatal(err)
					}
				}
				r, err := replay.Read(&b)
				if err != nil {
					h.t.Fatal(err)
				}
				for turn := range r.Turns() {
					if differences, err := agent.Rerun(h.t.Context(), mem.New(), r, turn); err != nil || len(differences) > 0 {
						h.t.Errorf("run again: %v, %q", err, differences)
					}
				}
			})
		})
	}
}

// /status tells of subagents at work, and /agents which task of which agent each has.
func TestSubagentsAreShown(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(10 * time.Second)}}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole:
			return words("begun")
		case strings.HasSuffix(last.Text, "spawn"):
			return calls(with("a", "spawn", `{"task":"t","label":"sheep"}`), with("b", "spawn", `{"task":"t","label":"goats"}`))
		}
		return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"t"}`))
	}, worker(9))
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "spawn")
		timetest.Sleep(time.Second)
		h.say("2", "/status")
		h.want("begun", "I am idle.\n2 background tasks are running: /agents\nModel: main\nUp for a second. Answers under way, in all conversations: 2; messages not answered yet: 2.")
		other := message("3", "/status")
		other.At.Chat, other.From = "2", chat.Sender{ID: "8", Role: chat.User}
		h.deliver(other)
		h.want("I am idle.\nModel: main\nUp for a second. Answers under way, in all conversations: 2; messages not answered yet: 2.")
		h.say("4", "/agents stop all")
		all := h.subagents()
		slices.SortFunc(all, func(a, b tools.Subagent) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) })
		h.want(fmt.Sprintf("Stopped 2 background tasks: '%s' (`%s`), '%s' (`%s`).", all[0].Label, all[0].ID, all[1].Label, all[1].ID))
		h.say("5", "task")
		timetest.Sleep(5 * time.Second)
		h.say("6", "/agents")
		h.want("Background tasks:\n\n- `" + h.subagents()[2].ID + "` X (researcher) – using exec, began 5 seconds ago")
		timetest.Sleep(10 * time.Second)
		h.say("7", "/agents")
		h.want("Background tasks:\n\n- `" + h.subagents()[2].ID + "` X (researcher) – using exec, began 15 seconds ago, 1 step done")
		timetest.Sleep(10 * time.Second)
		h.say("8", "/agents")
		h.want("Background tasks:\n\n- `" + h.subagents()[2].ID + "` X (researcher) – using exec, began 25 seconds ago, 2 steps done")
	})
}

// P21: a subagent whose record is damaged while it works goes on, and reports.
func TestDamagedAtWork(t *testing.T) {
	h := &house{store: mem.New(), tools: []tools.Tool{slowExec(30 * time.Second)}, model: byTask(spawning, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "work")
		timetest.Sleep(time.Second)
		id := h.subagents()[0].ID
		if _, err := h.store.Bucket("helpers").Put(h.t.Context(), id, []byte("no JSON"), store.Any); err != nil {
			h.t.Fatal(err)
		}
		timetest.Sleep(time.Minute)
		h.want("begun", "reported 'it' completed successfully]  Task: work  Result: worked: tool ran")
	})
}

// A session rests once no turn and no subagent is at work, and a report that was on
// its way has come.
func TestResting(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(30 * time.Second)}, model: byTask(func(r llm.Request) llm.Message {
		time.Sleep(10 * time.Second)
		return spawning(r)
	}, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "work")
		for _, c := range []struct {
			after time.Duration
			want  bool
		}{{5 * time.Second, false}, {20 * time.Second, false}, {time.Minute, false}, {time.Hour, true}} { // thinks; its subagent works; has reported; rests
			timetest.Sleep(c.after)
			if got, err := h.pool.Resting(h.t.Context(), "test:1"); got != c.want || err != nil {
				h.t.Errorf("after %v: %v, %v", c.after, got, err)
			}
		}
	})
}

// One that waits for a place as its conversation is forgotten leaves nothing behind.
func TestForgetWaitingSubagent(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, conf: func(c *agent.Config) { c.Turns = 1 }}
	h.model = byTask(func(r llm.Request) llm.Message {
		if strings.HasSuffix(lastOf(r).Text, "hold") {
			return calls(call("e", "exec"))
		}
		time.Sleep(time.Second)
		return spawning(r)
	}, worker(1))
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "work")
		timetest.Sleep(time.Millisecond)
		m := message("2", "hold")
		m.At.Chat = "2"
		h.deliver(m) // and gets the place before the subagent
		timetest.Sleep(5 * time.Second)
		all := h.subagents()
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil || len(all) != 1 {
			h.t.Errorf("%v, %+v", err, all)
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
		for r, err := range h.store.Log("session/agent:"+all[0].ID).Since(h.t.Context(), 0) {
			h.t.Errorf("left is %s, %v", r.Body, err)
		}
	})
}
