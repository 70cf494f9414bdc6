package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store/storetest"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// /tools lists what the one who asks may use, by category: B-014, A-001.
func TestToolsCommand(t *testing.T) {
	look := giving("look_up", tools.Hints{Category: "web"}, tools.Result{})
	look.Description = "Looks it up. Then says it."
	old := giving("find_out", tools.Hints{Category: "web", AliasOf: "look_up"}, tools.Result{})
	secret := giving("secret", tools.Hints{Category: "owners only"}, tools.Result{})
	hidden := giving("hidden", tools.Hints{Hidden: true}, tools.Result{})
	h := &house{tools: []tools.Tool{secret, old, look, hidden, giving("add", tools.Hints{}, tools.Result{})}}
	rules := tools.Rules{"owners only": tools.Owners}
	h.set = func(s *agent.Settings) {
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, rules.Permit(tools.Fixed(h.tools)), tools.Standard(tools.StandardConfig{})...)
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "/tools")
		h.want("**general**\n- `add` – add\n\n**owners only**\n- `secret` – secret\n\n**web**\n- `look_up` – Looks it up")
		m := message("2", "/tools")
		m.From.Role = chat.User
		h.deliver(m)
		h.want("**general**\n- `add` – add\n\n**web**\n- `look_up` – Looks it up")
		h.say("3", "/tools all")
		h.want("**general**\n- `add` – add\n- `hidden` – hidden\n\n**owners only**\n- `secret` – secret\n\n**web**\n- `find_out` – another name of `look_up`\n- `look_up` – Looks it up")
		h.tools = nil
		h.say("4", "/tools")
		h.want("There are no tools here.")
	})
}

// C-045: statistics are for owners.
func TestToolStatsCommand(t *testing.T) {
	h := &house{conf: func(c *agent.Config) { c.ToolStats = func() string { return "all is well" } }}
	play(t, h, func(h *house) {
		h.say("1", "/toolstats")
		h.want("all is well")
		m := message("2", "/toolstats")
		m.From.Role = chat.User
		h.deliver(m)
		h.want("Only owners can see that.")
	})
}

// D-045: /context shows what is left out.
func TestContextCommand(t *testing.T) {
	read := giving("read", tools.Hints{ReadOnly: true}, tools.Result{Text: strings.Repeat("x", 2400)})
	h := &house{tools: []tools.Tool{read}}
	n := 0
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if strings.HasSuffix(spoken(r, 1), "go") {
			n++
			return calls(with("1", "read", fmt.Sprintf(`{"n":%d}`, n))), nil
		}
		return words("ok"), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "/context")
		h.want("Model: main, which takes 8000 tokens, 1000 of them for its answer.\n" +
			"The next request takes about 11: 1 of instructions, 10 of tools, 0 of conversation.\n" +
			"Messages: 0. Results of tools left out: 0. Pictures: 0.")
		for i := range 12 {
			h.say(fmt.Sprint("m", i), "go")
			timetest.Sleep(time.Minute)
		}
		synctest.Wait()
		h.sent = nil
		h.say("2", "/context")
		synctest.Wait()
		if !strings.Contains(h.sent[0], "Messages: 48. Results of tools left out: 2. Pictures: 0.") {
			t.Errorf("said %s", h.sent[0])
		}
	})
}

// /undo puts back what the last turn changed, after the turn under way, and once.
func TestUndoCommand(t *testing.T) {
	undone := 0
	h := &house{conf: func(c *agent.Config) {
		c.Undo = func(_ context.Context, id chat.SessionID) (string, error) {
			if undone++; undone > 1 {
				return "", errors.New("no room")
			}
			return "put back for " + string(id), nil
		}
	}}
	h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		time.Sleep(time.Minute)
		return words("done"), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Second)
		h.say("2", "/undo")
		timetest.Sleep(time.Second)
		h.want()
		timetest.Sleep(time.Minute)
		h.want("done", "put back for test:1")
		h.say("3", "/undo")
		h.want("I could not do that; the log says why.")
	})
	play(t, &house{}, func(h *house) {
		h.say("1", "/undo")
		h.want("I cannot undo anything here.")
	})
}

// TestUndoOnce: an /undo over which the process dies is not done again.
func TestUndoOnce(t *testing.T) {
	for n, done := 0, false; !done; n++ {
		timetest.Test(t, func(t *testing.T) {
			dir, said, undone := storetest.TempDir(t), map[string]string{}, 0
			for _, life := range []int{n, 1 << 40} {
				m := newMortal(t, dir, life)
				h := &house{t: t, store: m, said: said, conf: func(c *agent.Config) {
					c.Undo = func(context.Context, chat.SessionID) (string, error) { undone++; return "put back", nil }
					send := c.Send
					c.Send = func(ctx context.Context, r chat.Reply) error {
						if said[r.ID] != "" { // the outbox drops it
							return nil
						}
						return send(ctx, r)
					}
				}}
				h.start()
				go h.pool.Deliver(t.Context(), message("1", "/undo")) //nolint:errcheck // the process may die over it
				timetest.Sleep(time.Minute)
				synctest.Wait()
				h.stop()
				m.Close()
				done = m.where.Load() == nil && life == n
				if done {
					break
				}
			}
			got := said["re:test//1/1"]
			if undone > 1 || got != "put back" && !strings.HasPrefix(got, "I was interrupted") {
				t.Errorf("life %d: undone %d times, said %q", n, undone, said)
			}
		})
	}
}

func TestVerboseCommand(t *testing.T) {
	play(t, &house{}, func(h *house) {
		shown, hidden := "Steps are shown in this conversation. /verbose off hides them.", "Steps are not shown in this conversation. /verbose on shows them."
		show, hide := "Steps are shown from the next answer on. /verbose off hides them.", "Steps are hidden from the next answer on. /verbose on shows them again."
		h.say("ask", "/verbose")
		h.want(shown)
		if talks, err := h.pool.Sessions().Talks(h.t.Context(), ""); len(talks) > 0 || err != nil { // to ask changes nothing
			t.Errorf("there are %v, %v", talks, err)
		}
		for i, c := range [][2]string{{"", shown}, {" off", hide}, {"", hidden}, {" maybe", hidden}, {" ON", show}, {"", shown}} {
			h.say(fmt.Sprint(i), "/verbose"+c[0])
			h.want(c[1])
		}
	})
}

// What is kept for a conversation can go when it is over: after /new, and once it is forgotten.
func TestLeft(t *testing.T) {
	var left collected[chat.SessionID]
	h := &house{model: script(words("a")), conf: func(c *agent.Config) {
		c.Left = func(id chat.SessionID) { left.add(id) }
	}}
	play(t, h, func(h *house) {
		h.say("1", "hi")
		h.want("a")
		if len(left.values()) != 0 {
			t.Errorf("left %v", left.values())
		}
		h.say("2", "/new")
		synctest.Wait()
		if err := h.pool.Forget(t.Context(), "test:1"); err != nil || len(left.values()) != 2 {
			t.Errorf("left %v, %v", left.values(), err)
		}
	})
}

// Every command is one that can be given.
func TestCommands(t *testing.T) {
	play(t, &house{model: script()}, func(h *house) {
		for i, c := range agent.Commands(texts.English().Agent.Help) {
			h.say(fmt.Sprint(i), "/"+c.Name)
			synctest.Wait()
			if len(h.asks) != 0 {
				t.Fatalf("/%s went to the model", c.Name)
			}
		}
	})
}

// /context tells how large the next request would be: no larger than the model takes.
func TestContextOfLongTalks(t *testing.T) {
	h := &house{model: script(words("a"), words("b"), words("c"), words("d"))}
	play(t, h, func(h *house) {
		for i := range 4 {
			h.say(fmt.Sprint(i), strings.Repeat("word ", 4000))
			timetest.Sleep(time.Minute)
		}
		h.stop()
		h.sent = nil
		h.start()
		before := len(h.asks)
		h.say("c", "/context")
		synctest.Wait()
		var most, fixed, tools, talk int
		_, about, _ := strings.Cut(h.sent[0], "The next request takes ")
		if _, err := fmt.Sscanf(about, "about %d: %d of instructions, %d of tools, %d of", &most, &fixed, &tools, &talk); err != nil || most > 7000 {
			t.Errorf("%v, said %s", err, h.sent[0])
		}
		h.model = script(words("e"))
		h.say("5", "more")
		synctest.Wait()
		if len(h.asks) != before+1 {
			t.Errorf("%d requests", len(h.asks)-before)
		}
		h.reruns(5, nil)
	})
}

// Who may not change files may not undo what others changed.
func TestUndoOfOthers(t *testing.T) {
	edit := giving("edit", tools.Hints{Category: "files"}, tools.Result{})
	h := &house{tools: []tools.Tool{edit}, conf: func(c *agent.Config) {
		c.Undo = func(context.Context, chat.SessionID) (string, error) { return "put back", nil }
	}}
	h.set = func(s *agent.Settings) {
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			if scope.From.Role != chat.Owner {
				return tools.NewKit(ctx, scope, nil)
			}
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)})
		}
	}
	play(t, h, func(h *house) {
		m := message("1", "/undo")
		m.From.Role = chat.User
		h.deliver(m)
		h.want("You may not change files here, so there is nothing that you could undo.")
		h.say("2", "/undo")
		h.want("put back")
	})
}

// TestToolCommand: owners run a tool by hand, through the same pipeline as a model's call (B-018).
func TestToolCommand(t *testing.T) {
	add := giving("add", tools.Hints{JSON: true}, tools.Result{})
	var got collected[string]
	add.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		got.add(fmt.Sprint(c.Input))
		return tools.Result{Data: map[string]any{"message": "the sum is 3", "return_code": 0}}, nil
	}
	h := &house{tools: []tools.Tool{add}}
	h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		t.Error("a model was asked")
		return llm.Message{}, nil
	}
	play(t, h, func(h *house) {
		h.say("1", `/tool add {"a": 1, "b": 2}`)
		h.want("the sum is 3")
		h.say("2", `/tool add {"a": 1,`)
		h.want("I could not do that with add: Invalid JSON arguments for tool 'add': the JSON ends too early. " +
			"The tool was not run. Send the call again, with one complete JSON object as its arguments.")
		h.say("3", "/tool subtract {}")
		h.want("I could not do that with subtract: Tool 'subtract' not found. Available: add")
		h.say("4", "/tool")
		h.want(`Name a tool and its arguments: /tool calculator {"expression": "2+3"}. /tools lists all.`)
		m := message("5", `/tool add {"a": 1}`)
		m.From.Role = chat.User
		h.deliver(m)
		h.want("Only owners can see that.")
		if got := got.values(); len(got) != 1 || got[0] != "map[a:1 b:2]" {
			t.Errorf("the tool ran with %v", got)
		}
	})
}
