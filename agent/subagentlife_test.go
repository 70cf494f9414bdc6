package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/deadletter"
	"parley/agent/replay"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
	"parley/tools/agents"
)

// worker is a subagent that uses the tool exec n times, and then answers.
func worker(n int) func(r llm.Request) llm.Message {
	return func(r llm.Request) llm.Message {
		done := 0
		for _, m := range r.Messages {
			if m.Role == llm.ToolRole {
				done++
			}
		}
		if done < n {
			return calls(call(fmt.Sprint("w", done), "exec"))
		}
		return words("worked: " + spoken(r, 1))
	}
}

// spawning has the agent spawn what it is told to, and say what is reported.
func spawning(r llm.Request) llm.Message {
	switch last := lastOf(r); {
	case last.Role == llm.ToolRole:
		return words("begun")
	case strings.Contains(last.Text, "[Subagent"):
		_, text, _ := strings.Cut(last.Text, "[Subagent")
		text, _, _ = strings.Cut(text, "\n\nSummarize")
		return words("reported" + strings.ReplaceAll(text, "\n", " "))
	}
	_, task, _ := strings.Cut(lastOf(r).Text, "\n")
	return calls(with("c", "spawn", fmt.Sprintf(`{"task":%q,"label":"it"}`, task)))
}

func slowExec(d time.Duration) tools.Tool {
	return tool("exec", func(ctx context.Context) (string, error) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		return "ran", ctx.Err()
	})
}

// Background work is paused, resumed, told of things and cancelled from the
// chat; a pause holds no place, and lasts over a restart and over the age of messages.
func TestSteerSubagents(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		db, said := mem.New(), map[string]string{}
		start := func() *house {
			h := &house{t: t, store: db, said: said, tools: []tools.Tool{slowExec(10 * time.Second)}, model: byTask(spawning, worker(3))}
			h.conf = func(c *agent.Config) { c.Turns = 2 }
			withSubagents(h).start()
			return h
		}
		h := start()
		h.say("1", "work")
		timetest.Sleep(5 * time.Second)
		id := h.subagents()[0].ID
		h.say("2", "/agents pause "+id[:5])
		h.want("begun", "Paused the background task 'it' (`"+id+"`).")
		timetest.Sleep(10 * time.Second)
		h.say("3", "/agents")
		h.want("Background tasks:\n\n- `" + id + "` it – paused, began 15 seconds ago, 1 step done")
		h.say("4", "hello") // there are two places, and both are free
		h.want("begun")
		h.say("5", "/agents stop "+h.subagents()[1].ID)
		h.want("Stopped the background task 'it' (`" + h.subagents()[1].ID + "`).")
		h.stop()
		timetest.Sleep(48 * time.Hour)
		h = start()
		timetest.Sleep(time.Second)
		h.say("6", "/agents")
		h.want("Background tasks:\n\n- `" + id + "` it – paused, began 2 days ago, 1 step done")
		h.say("7", "/agents tell "+id+" in the red box")
		h.say("8", "/agents resume "+id)
		timetest.Sleep(time.Minute)
		h.want("Told the background task 'it' (`"+id+"`).", "Resumed the background task 'it' (`"+id+"`).", "reported 'it' completed successfully]  Task: work  Result: worked: tool ran")
		told := 0
		for _, r := range h.asks {
			if strings.HasSuffix(lastOf(r).Text, "in the red box") {
				told++
			}
		}
		h.say("9", "work")
		h.want("begun")
		id = h.subagents()[2].ID
		for text, want := range map[string]string{
			"stop": "Write /agents to see ", "tell " + id: "Write /agents to see ", "dance all": "Write /agents to see ",
			"stop x": "You have no such background task; ", "Pause " + strings.ToUpper(id): "Paused the background task 'it'", "resume all": "Resumed the background task 'it'",
		} {
			h.say("x"+text, "/agents "+text)
			if got := said["re:test//1/x"+text]; !strings.HasPrefix(got, want) {
				t.Errorf("%s: %q", text, got)
			}
		}
		if told != 1 {
			t.Errorf("told %d times", told)
		}
		h.stop()
	})
}

// A turn that waits for a subagent goes on after a restart, however long the subagent
// was paused (C-033).
func TestWaitForThePaused(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		db, said := mem.New(), map[string]string{}
		start := func() *house {
			h := &house{t: t, store: db, said: said, tools: []tools.Tool{slowExec(10 * time.Second)}}
			h.model = byTask(func(r llm.Request) llm.Message {
				if last := lastOf(r); last.Role == llm.ToolRole {
					return words("result " + last.Text)
				}
				return calls(with("c", "new_task", `{"agentName":"researcher","taskName":"X","input":"t"}`))
			}, worker(2))
			withSubagents(h).start()
			return h
		}
		h := start()
		h.say("1", "work")
		timetest.Sleep(5 * time.Second)
		id := h.subagents()[0].ID
		h.say("2", "/agents pause "+id)
		h.want("Paused the background task 'X' (`" + id + "`).")
		timetest.Sleep(48 * time.Hour)
		h.stop()
		h = start()
		timetest.Sleep(time.Minute)
		h.want()
		h.say("3", "/agents resume "+id)
		timetest.Sleep(time.Minute)
		h.want("Resumed the background task 'X' (`"+id+"`).", `result {"success":true,"summary":"worked: tool ran","subtaskId":"sub_task_`+id+`"}`)
		h.stop()
	})
}

// Only who a subagent works for, and owners, see it and say what becomes of it.
func TestWhoSteers(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, model: byTask(spawning, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		tell := func(who string, role chat.Role, where string, text string) string {
			m := message(who+where+text, text)
			m.From, m.At.Chat, m.Group = chat.Sender{ID: who, Role: role}, where, where == "group"
			h.deliver(m)
			timetest.Sleep(time.Second)
			synctest.Wait()
			h.mu.Lock()
			defer h.mu.Unlock()
			return h.said["re:"+m.Key()]
		}
		tell("anna", chat.User, "a", "work")
		tell("bert", chat.User, "group", "work")
		const none, not = "No background tasks are running.", "You have no such background task; /agents lists them."
		for _, c := range []struct {
			who   string
			role  chat.Role
			where string
			text  string
			want  string
		}{
			{"bert", chat.User, "b", "/agents", none},
			{"bert", chat.User, "b", "/agents stop all", not},
			{"anna", chat.User, "group", "/agents", "Background tasks:"},
			{"anna", chat.User, "group", "/agents stop all", not},
			{"otto", chat.Owner, "group", "/agents", "Background tasks:"},
			{"otto", chat.Owner, "o", "/agents", "for `test:a`"},
			{"otto", chat.Owner, "o", "/agents pause all", "Paused 2 background tasks: 'it' (`"},
			{"anna", chat.User, "a", "/agents resume all", "Resumed the background task 'it' (`"},
			{"bert", chat.User, "group", "/agents stop all", "Stopped the background task 'it' (`"},
			{"otto", chat.Owner, "o", "/agents stop all", "Stopped the background task 'it' (`"},
		} {
			if got := tell(c.who, c.role, c.where, c.text); !strings.Contains(got, c.want) || c.text == "/agents" && c.where != "o" && strings.Count(got, "`") > 2 {
				t.Errorf("%s in %s: %s: %q", c.who, c.where, c.text, got)
			}
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		reports := 0
		for id, text := range h.said { // who stopped it themselves is not told, anna is
			if strings.Contains(id, "report/") {
				reports++
				if want := "reported 'it' failed]  Task: work  Result: It was stopped by a person."; !strings.HasPrefix(id, "re:test/agent/a/") || text != want {
					t.Errorf("%s: %q", id, text)
				}
			}
		}
		if reports != 1 {
			t.Errorf("%d reports", reports)
		}
	})
}

// Whatever becomes of a subagent, its parent is told: also of one whose turn
// crashes the process (P8), whose message is too old or gone, or whose record is
// damaged (P21).
func TestNoSubagentVanishes(t *testing.T) {
	for name, c := range map[string]struct {
		away time.Duration // between two lives
		harm func(s store.Store, id string) error
		want string
	}{
		"too old": {48 * time.Hour, nil, "reported 'it' failed]  Task: work  Result: I was away, and your message is more than a day old. I have read it; say so if you still want an answer."},
		"parked": {time.Minute, func(s store.Store, id string) error {
			_, err := store.NewTable(s.Bucket("tries"), store.Report[map[string]any]).Put(context.Background(), "trial", lastTry("test/agent/1/"+id), store.Any)
			return err
		}, "reported 'it' failed]  Task: work  Result: I crashed three times over this message, so I will not try it again. Please say it in other words, or in smaller pieces."},
		"put aside": {time.Minute, func(s store.Store, _ string) error {
			_, err := deadletter.FromInbox(context.Background(), s)
			return err
		}, "reported 'it' failed]  Task: work  Result: Its task was lost."},
		"damaged": {time.Minute, func(s store.Store, id string) error {
			_, err := s.Bucket("helpers").Put(context.Background(), id, []byte("no JSON"), store.Any)
			return err
		}, "reported 'ID' failed]  Task: work  Result: Its record is damaged."},
		"never given": {time.Minute, func(s store.Store, id string) error { // a crash came between
			c, _, err := store.NewTable(s.Bucket("helpers"), store.Report[tools.Subagent]).Get(context.Background(), id)
			if err == nil {
				c.ID, c.Label = "ffffffff", "other"
				_, err = store.NewTable(s.Bucket("helpers"), store.Report[tools.Subagent]).Put(context.Background(), c.ID, c, 0)
			}
			return err
		}, "reported 'other' completed successfully]  Task: work  Result: worked: tool ran"},
		"never told": {time.Minute, func(s store.Store, id string) error {
			c, rev, err := store.NewTable(s.Bucket("helpers"), store.Report[tools.Subagent]).Get(context.Background(), id)
			if err == nil {
				c.State, c.Result = tools.SubagentAnswered, "early"
				_, err = store.NewTable(s.Bucket("helpers"), store.Report[tools.Subagent]).Put(context.Background(), c.ID, c, rev)
			}
			return err
		}, "reported 'it' completed successfully]  Task: work  Result: early"},
		"never told and done": {time.Minute, func(s store.Store, id string) error {
			c, rev, err := store.NewTable(s.Bucket("helpers"), store.Report[tools.Subagent]).Get(context.Background(), id)
			if err == nil {
				c.State, c.Result, c.Ended = tools.SubagentAnswered, "early", time.Now()
				_, err = store.NewTable(s.Bucket("helpers"), store.Report[tools.Subagent]).Put(context.Background(), c.ID, c, rev)
			}
			if _, bad := deadletter.FromInbox(context.Background(), s); err == nil {
				err = bad
			}
			return err
		}, "reported 'it' completed successfully]  Task: work  Result: early"},
	} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				dir, said := storetest.TempDir(t), map[string]string{}
				start := func() (*house, *mortal) {
					m := newMortal(t, dir, 1<<40)
					h := &house{t: t, store: m, said: said, tools: []tools.Tool{slowExec(30 * time.Second)}, model: byTask(spawning, worker(1))}
					withSubagents(h).start()
					return h, m
				}
				h, m := start()
				h.say("1", "work")
				timetest.Sleep(time.Second)
				id := h.subagents()[0].ID
				m.left.Store(0) // it dies
				h.stop()
				m.Close()
				m = newMortal(t, dir, 1<<40)
				if c.harm != nil {
					if err := c.harm(m, id); err != nil {
						t.Fatal(err)
					}
				}
				m.Close()
				timetest.Sleep(c.away)
				h, m = start()
				timetest.Sleep(3 * time.Minute)
				synctest.Wait()
				want, found := strings.ReplaceAll(c.want, "ID", id), 0
				for _, text := range said {
					if text == want {
						found++
					}
				}
				if found != 1 {
					t.Errorf("said %q\nwant %q", said, want)
				}
				for _, c := range h.subagents() {
					if !c.State.Over() || c.Report {
						t.Errorf("left is %+v", c)
					}
				}
				h.stop()
				m.Close()
			})
		})
	}
}

// R-S12: untrusted content that a subagent read is in its report, and so in the turn
// that hears it and those after.
func TestTaintedReport(t *testing.T) {
	var tainted collected[bool]
	exec := tool("exec", nil)
	exec.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		tainted.add(c.Tainted)
		return tools.Result{Text: "ran", Tainted: c.Depth > 0}, nil
	}
	h := &house{tools: []tools.Tool{exec}, model: byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole:
			return words("ok")
		case strings.HasSuffix(last.Text, "spawn"):
			return calls(with("s", "spawn", `{"task":"t"}`))
		}
		return calls(call("x", "exec"))
	}, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "spawn")
		h.want("ok", "ok")
		h.say("2", "look")
		if h.want("ok"); fmt.Sprint(tainted.values()) != "[false true true]" {
			t.Errorf("tainted: %v", tainted.values())
		}
	})
}

// A-062, R-S15: a subagent has no more than its parent has, whatever it calls.
func TestSubagentsHaveNoMore(t *testing.T) {
	var seen collected[string]
	secret := tool("secret", func(context.Context) (string, error) { return "", errors.New("it ran") })
	secret.Category = "admin"
	open := tool("open", nil)
	open.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		seen.add(fmt.Sprint(c.From.ID, c.From.Role, c.Depth, c.Origin, c.Whose(), c.Tainted))
		return tools.Result{Text: "opened", Tainted: true}, nil
	}
	h := &house{tools: []tools.Tool{secret, open, tool("message", nil)}}
	h.model = byTask(func(r llm.Request) llm.Message {
		switch last := lastOf(r); {
		case last.Role == llm.ToolRole && last.Name != "open":
			return words(last.Text)
		case last.Role == llm.ToolRole:
			return multi(1)
		case strings.HasSuffix(last.Text, "tainted"):
			return calls(call("o", "open"))
		}
		return multi(1)
	}, func(r llm.Request) llm.Message {
		if len(r.Messages) == 1 {
			if got := fmt.Sprint(names(r)); got != "[open]" {
				t.Errorf("it is told of %s", got)
			}
			return calls(call("1", "secret"), call("2", "open"), call("3", "multi_agent"), call("4", "spawn"), call("5", "new_task"), call("6", "message"))
		}
		for i, m := range r.Messages[2:] {
			if want := strings.Contains(m.Text, "' not found. Available: open"); want == (i == 1) {
				t.Errorf("call %d: %s", i+1, m.Text)
			}
		}
		return words("done")
	})
	h.tools[2].Category = "message"
	rules := tools.Rules{"admin": tools.Owners}
	h.set = func(s *agent.Settings) {
		source := agents.New(agents.Config{Runner: poolRunner{h}})
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, rules.Permit(tools.Fixed(h.tools), source), tools.Standard(tools.StandardConfig{})...)
		}
	}
	play(t, h, func(h *house) {
		for i, text := range []string{"go", "tainted"} {
			m := message(fmt.Sprint(i), text)
			m.From = chat.Sender{ID: "8", Role: chat.User}
			h.deliver(m)
			h.want(`{"success":true,"results":[{"task_name":"n0","success":true,"response":"done"}],"total":1}`)
		}
		for _, c := range h.subagents() {
			if !c.Tainted {
				t.Error("it forgets that it read untrusted content")
			}
		}
		if got := fmt.Sprintf("%q", seen.values()); got != `["8user1parenttest:8false" "8user0test:8true" "8user1parenttest:8true"]` {
			t.Errorf("used by %s", got)
		}
	})
}

// E-039: what a subagent found out by looking alone is not found out again in the
// turn; D-041: who may not fail ends with the first tool that does.
func TestEarlierAndStrict(t *testing.T) {
	look := tool("look", func(context.Context) (string, error) { return "seen", nil })
	look.ReadOnly = true
	h := &house{tools: []tools.Tool{look, tool("exec", func(context.Context) (string, error) { return "", errors.New("no such program") })}}
	use, worked := "look", new(atomic.Int64)
	h.model = byTask(func(r llm.Request) llm.Message {
		if n := len(h.asks); lastOf(r).Role == llm.User {
			return multi(1)
		} else if n < 6 {
			return multi(1)
		}
		return words(spoken(r, 1))
	}, func(r llm.Request) llm.Message {
		if len(r.Messages) == 1 {
			worked.Add(1)
			return calls(call("1", use))
		}
		return words("done")
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Second)
		h.want(`tool {"success":true,"results":[{"task_name":"n0","success":true,"response":"done\n\n(already done in this turn; this is the earlier result)"}],"total":1}`)
		h.asks, use = nil, "exec"
		h.say("2", "go")
		h.want(`tool {"success":true,"results":[{"task_name":"n0","success":true,"response":"done"}],"total":1}`)
		if n := worked.Load(); n != 3 {
			t.Errorf("worked %d times", n)
		}
		c, err := h.pool.Subagents().Spawn(h.t.Context(), tools.Subagent{ID: "s", Call: "s", Strict: true, Only: []string{"exec"}, At: chat.Address{Channel: "test", Chat: "1"}, Parent: "x", Task: "t"})
		if err == nil {
			c, err = h.pool.Subagents().Await(h.t.Context(), c.ID)
		}
		if err != nil || c.State != tools.SubagentFailed || c.Result != "exec: no such program" {
			t.Errorf("%v: %+v", err, c)
		}
		if _, err := h.pool.Subagents().Spawn(h.t.Context(), tools.Subagent{ID: "s", Call: "other"}); err == nil {
			t.Error("two calls have one subagent")
		}
	})
}

// What was found out in a turn is known until its end, however long that takes
// and whatever is tidied up meanwhile.
func TestEarlierInLongTurn(t *testing.T) {
	look := tool("look", func(context.Context) (string, error) { return "seen", nil })
	look.ReadOnly = true
	rest := tool("rest", func(context.Context) (string, error) { time.Sleep(50 * time.Second); return "rested", nil })
	h, parents, worked := &house{tools: []tools.Tool{look, rest}}, new(atomic.Int64), new(atomic.Int64)
	h.model = byTask(func(r llm.Request) llm.Message {
		switch parents.Add(1) {
		case 1, 5:
			return multi(1)
		case 2, 3, 4:
			return calls(call("1", "rest"))
		}
		return words(spoken(r, 1))
	}, func(r llm.Request) llm.Message {
		if len(r.Messages) == 1 {
			worked.Add(1)
			return calls(call("1", "look"))
		}
		return words("done")
	})
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "go")
		timetest.Sleep(10 * time.Minute)
		h.want(`tool {"success":true,"results":[{"task_name":"n0","success":true,"response":"done\n\n(already done in this turn; this is the earlier result)"}],"total":1}`)
		if n := worked.Load(); n != 1 {
			t.Errorf("worked %d times", n)
		}
	})
}

// What is known of subagents goes a week after their end, and with the
// conversation that they worked for.
func TestForgetSubagents(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Hour)}, model: byTask(spawning, worker(1))}
	play(t, withSubagents(h), func(h *house) {
		logs := func(id string) (n int) {
			for _, err := range h.store.Log("session/agent:"+id).Since(t.Context(), 0) {
				if n++; err != nil {
					t.Error(err)
				}
			}
			return n
		}
		h.say("1", "work")
		timetest.Sleep(2 * time.Minute)
		id := h.subagents()[0].ID
		h.say("2", "/agents stop all")
		timetest.Sleep(7*24*time.Hour - time.Hour)
		if logs(id) == 0 || len(h.subagents()) != 1 {
			t.Error("it is forgotten early")
		}
		timetest.Sleep(3 * time.Hour)
		if logs(id) != 0 || len(h.subagents()) != 0 {
			t.Error("it is not forgotten")
		}
		h.say("3", "work")
		timetest.Sleep(time.Second)
		id = h.subagents()[0].ID
		if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if logs(id) != 0 || len(h.subagents()) != 0 {
			t.Error("it outlives its conversation")
		}
		if n, _ := h.store.Queue("inbox").Len(t.Context()); n != 0 {
			t.Errorf("%d messages are left", n)
		}
	})
}

// A turn that ends without its subagents leaves none at work: here it crashed the
// process too often (P8).
func TestOrphans(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir, said := storetest.TempDir(t), map[string]string{}
		for life := range 2 {
			m := newMortal(t, dir, 1<<40)
			h := &house{t: t, store: m, said: said, tools: []tools.Tool{slowExec(time.Hour)}}
			h.model = byTask(func(llm.Request) llm.Message { return multi(2) }, worker(2)) // of which the first is interrupted
			if life == 1 {
				if _, err := store.NewTable(m.Bucket("tries"), store.Report[map[string]any]).Put(t.Context(), "trial", lastTry("test//1/1"), store.Any); err != nil {
					t.Fatal(err)
				}
			}
			withSubagents(h).start()
			if life == 0 {
				h.say("1", "go")
			}
			timetest.Sleep(2 * time.Second)
			synctest.Wait()
			all := h.subagents()
			for _, c := range all {
				if want := []tools.SubagentState{tools.SubagentActive, tools.SubagentStopped}[life]; c.State != want {
					t.Errorf("life %d: %s is %q", life, c.Label, c.State)
				}
			}
			if n, _ := m.Queue("inbox").Len(t.Context()); len(all) != 2 || n != 3*(1-life) {
				t.Errorf("life %d: %d subagents, %d messages, said %q", life, len(all), n, said)
			}
			m.left.Store(0)
			h.stop()
			m.Close()
		}
	})
}

// R-S15, D-093: four at once for one session; a hundred in all harm nobody.
func TestHundredSubagents(t *testing.T) {
	h := &house{tools: []tools.Tool{tool("exec", func(context.Context) (string, error) { return "ran", nil })}}
	h.model = byTask(func(r llm.Request) llm.Message {
		if last := lastOf(r); last.Role == llm.ToolRole {
			return words(last.Text)
		} else if strings.Contains(last.Text, "[Subagent") {
			return words("reported")
		}
		var all []llm.ToolCall
		for i := range 5 {
			all = append(all, with(fmt.Sprint(i), "spawn", fmt.Sprintf(`{"task":"t%d"}`, i)))
		}
		return calls(all...)
	}, func(r llm.Request) llm.Message {
		if len(r.Messages) == 1 {
			return calls(call("1", "exec"))
		}
		return words("slowly done")
	})
	before := runtime.NumGoroutine()
	play(t, withSubagents(h), func(h *house) {
		for i := range 25 {
			m := message("1", "go")
			m.At.Chat = fmt.Sprint(i)
			h.deliver(m)
		}
		synctest.Wait()
		if n := len(h.subagents()); n != 100 {
			t.Errorf("%d subagents", n)
		}
		h.mu.Lock()
		if got := h.said["re:test//7/1"]; got != "Error: Cannot spawn subagent: concurrency limit reached (4/4 running). Wait for a running subagent to complete before spawning a new one.\n\n[Analyze the error above and try a different approach.]" {
			t.Errorf("the fifth: %q", got)
		}
		h.mu.Unlock()
		timetest.Sleep(2 * time.Minute)
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		reports := 0
		for id := range h.said {
			if strings.Contains(id, "/report/") {
				reports++
			}
		}
		if reports != 100 || len(h.said) != 125 {
			t.Errorf("%d reports of %d replies", reports, len(h.said))
		}
		if n := runtime.NumGoroutine(); n > before+50 {
			t.Errorf("%d goroutines, %d before", n, before)
		}
	})
}

// A subagent's turn can be run again as any.
func TestRerunSubagent(t *testing.T) {
	h := &house{tools: []tools.Tool{slowExec(time.Second)}, model: byTask(spawning, worker(2))}
	play(t, withSubagents(h), func(h *house) {
		h.say("1", "work")
		timetest.Sleep(time.Minute)
		var b bytes.Buffer
		for line, err := range h.pool.Recording(h.t.Context(), chat.SessionID("agent:"+h.subagents()[0].ID)) {
			if err != nil {
				t.Fatal(err)
			}
			b.Write(line)
		}
		r, err := replay.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		turns := 0
		for turn := range r.Turns() {
			turns++
			if differences, err := agent.Rerun(h.t.Context(), mem.New(), r, turn); err != nil || len(differences) > 0 {
				t.Errorf("%v, %q", err, differences)
			}
		}
		if turns != 1 {
			t.Errorf("%d turns", turns)
		}
	})
}

// asRole is an exec that notes with which rights it is called.
func asRole(roles *collected[chat.Role]) tools.Tool {
	exec := tool("exec", nil)
	exec.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		roles.add(c.From.Role)
		return tools.Result{Text: "ran"}, nil
	}
	return exec
}

// R-S24: what is said is answered with the rights that the person has by now, and
// not at all if they may not talk any more.
func TestRightsOfWhoWaited(t *testing.T) {
	for now, want := range map[chat.Role]string{chat.Owner: "[owner] [worked: tool ran]", chat.User: "[user] [worked: tool ran]", chat.Unknown: "[] [(Stopped.)]"} {
		t.Run("now "+string(now), func(t *testing.T) {
			var roles collected[chat.Role]
			h := &house{tools: []tools.Tool{asRole(&roles)}, model: func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
				return worker(1)(r), nil
			}}
			h.conf = func(c *agent.Config) {
				c.Role = func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { return now, nil }
			}
			play(t, h, func(h *house) {
				h.say("1", "go")
				synctest.Wait()
				if got := fmt.Sprint(roles.values(), " ", h.sent); got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
			})
		})
	}
}

// R-S24: a subagent, and what comes of it, has the rights that the person has by
// now, and works for nobody who may not talk any more.
func TestRightsOfSubagents(t *testing.T) {
	const reported = "[begun reported 'it' completed successfully]  Task: go  Result: worked: tool ran]"
	for now, want := range map[chat.Role]string{
		chat.Owner: "[owner] " + reported, chat.User: "[user] " + reported, chat.Unknown: "[] [begun (Stopped.)]",
	} {
		t.Run("now "+string(now), func(t *testing.T) {
			var asked atomic.Bool // when the subagent is sent off
			var roles collected[chat.Role]
			h := withSubagents(&house{tools: []tools.Tool{asRole(&roles)}, model: byTask(spawning, worker(1))})
			h.conf = func(c *agent.Config) {
				c.Role = func(_ context.Context, at chat.Address, from chat.Sender) (chat.Role, error) {
					if at.Chat != "1" || from.ID != "7" {
						t.Errorf("asked for %+v at %+v", from, at)
					}
					if asked.Swap(true) {
						return now, nil
					}
					return chat.Owner, nil
				}
			}
			play(t, h, func(h *house) {
				h.say("1", "go")
				timetest.Sleep(time.Minute)
				synctest.Wait()
				h.mu.Lock()
				defer h.mu.Unlock()
				if got := fmt.Sprint(roles.values(), " ", h.sent); got != want {
					t.Errorf("got %s\nwant %s", got, want)
				}
			})
		})
	}
}
