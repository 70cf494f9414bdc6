package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// giving makes a Tool that gives r, whatever it is asked.
func giving(name string, hints tools.Hints, r tools.Result) tools.Tool {
	t := tool(name, nil)
	t.Hints = hints
	t.Run = func(context.Context, tools.Call) (tools.Result, error) { return r, nil }
	return t
}

// search makes a lookup that finds nothing of what is bad.
func search(ran *collected[string]) tools.Tool {
	t := giving("web_search", tools.Hints{ReadOnly: true}, tools.Result{})
	t.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		q, _ := c.Input["q"].(string)
		ran.add(q)
		return tools.Result{Text: "about " + q}, nil
	}
	t.Assess = func(r tools.Result) tools.Verdict {
		if strings.Contains(r.Text, "bad") {
			return tools.Poor
		}
		return tools.Fine
	}
	return t
}

func asksFor(q string) llm.ToolCall { return with("1", "web_search", fmt.Sprintf(`{"q":%q}`, q)) }

func rolling(rolled *collected[string]) func(*agent.Settings) {
	return func(s *agent.Settings) {
		s.Rollback, s.RolledBack, s.Rounds = true, rolled.add, 40
	}
}

const poorNote = "[The last lookup (web_search: bad) found nothing of use. Ask in other words, or answer with what you have.]"

// E-012, E-019, E-026, E-028, E-041: a model that repeats a bad query has four
// rounds taken back, and the fifth result; what was taken back it never sees again.
func TestRollback(t *testing.T) {
	var ran, rolled collected[string]
	h := &house{set: rolling(&rolled), tools: []tools.Tool{search(&ran)}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if len(h.asks) > 5 {
			return words("nothing there"), nil
		}
		return llm.Message{Text: "I look.", Calls: []llm.ToolCall{asksFor("bad")}}, nil
	}
	play(t, h, func(h *house) {
		h.say("1", "look")
		h.want("I look.\n\nnothing there")
		if len(ran.values()) != 5 || strings.Join(rolled.values(), " ") != "web_search web_search web_search web_search" {
			t.Errorf("ran %q, rolled back %q", ran.values(), rolled.values())
		}
		for i := 1; i < 5; i++ {
			if got := spoken(h.asks[i], 9); got != "user look | user "+poorNote {
				t.Errorf("request %d: %s", i+1, got)
			}
		}
		if got, want := spoken(h.asks[5], 9), "user look | assistant I look. | tool about bad\n\n"+poorNote; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
		h.model = script(words("yes"))
		h.say("2", "sure?")
		h.want("yes")
		if got := fmt.Sprint(h.asks[6].Messages); strings.Count(got, "I look.") != 1 { // E-041
			t.Errorf("later the model sees %s", got)
		}
		log := strings.Join(h.transcript("test:1"), "\n") // E-041: the record has them
		if n := strings.Count(log, "called"); n != 5 {
			t.Errorf("%d calls in\n%s", n, log)
		}
	})
}

// E-028: a good result resets the counter; E-027: a turn takes back no more
// than ten rounds, which do not count as rounds of it.
func TestRollbackIsBounded(t *testing.T) {
	var ran, rolled collected[string]
	look, ids := search(&ran), map[string]bool{}
	run := look.Run
	look.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		ids[c.Key()] = true
		return run(ctx, c)
	}
	h := &house{tools: []tools.Tool{look}, set: func(s *agent.Settings) {
		rolling(&rolled)(s)
		s.Rounds = 8
	}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch n := len(h.asks); {
		case len(r.Tools) == 0:
			return words("enough"), nil
		case n%3 == 0:
			return calls(asksFor(fmt.Sprint("good", n))), nil
		default:
			return calls(asksFor("bad")), nil
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "look")
		h.want("enough")
		if len(rolled.values()) != 10 || len(h.asks) != 18 {
			t.Errorf("%d rounds taken back of %d", len(rolled.values()), len(h.asks))
		}
		if len(ids) != 17 { // also those that were taken back have names of their own
			t.Errorf("calls %v", ids)
		}
	})
}

// §2.7: a round with an effect is never taken back, nor one of a house that
// does not want that (E-020).
func TestNoRollback(t *testing.T) {
	for name, on := range map[string]bool{"effect": true, "off": false} {
		t.Run(name, func(t *testing.T) {
			var ran, rolled collected[string]
			write := tool("write", func(context.Context) (string, error) { return "written", nil })
			cs := []llm.ToolCall{asksFor("bad")}
			if on {
				cs = append(cs, call("2", "write"))
			}
			h := &house{tools: []tools.Tool{search(&ran), write}, model: script(calls(cs...), words("ok"))}
			h.set = func(s *agent.Settings) { rolling(&rolled)(s); s.Rollback = on }
			play(t, h, func(h *house) {
				h.say("1", "look")
				h.want("ok")
				if got := spoken(h.asks[1], len(cs)+1); len(rolled.values()) != 0 || !strings.Contains(got, "tool about bad\n\n"+poorNote) {
					t.Errorf("rolled back %q, asked %s", rolled.values(), got)
				}
			})
		})
	}
}

func completion() tools.Tool {
	t := giving("attempt_completion", tools.Hints{Last: true, ReadOnly: true}, tools.Result{})
	t.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		s, _ := c.Input["result"].(string)
		return tools.Result{Text: "done", End: s}, nil
	}
	return t
}

// C-030: attempt_completion runs last, ends the turn without another request,
// and the person has its result.
func TestEnd(t *testing.T) {
	look := tool("look", func(context.Context) (string, error) { return "sun", nil })
	h := &house{tools: []tools.Tool{completion(), look}}
	h.model = script(
		llm.Message{Text: "I am done.", Calls: []llm.ToolCall{with("1", "attempt_completion", `{"result":"It is sunny."}`), call("2", "look")}},
		words("sure"))
	play(t, h, func(h *house) {
		h.say("1", "weather?")
		h.want("I am done.\n\nIt is sunny.")
		if len(h.asks) != 1 {
			t.Errorf("%d requests", len(h.asks))
		}
		h.say("2", "sure?")
		h.want("sure")
		if got, want := spoken(h.asks[1], 5), "user weather? | assistant I am done. | tool done | tool sun | user sure?"; got != want {
			t.Errorf("asked %s\nwant  %s", got, want)
		}
		said := slices.DeleteFunc(h.transcript("test:1"), func(s string) bool { return !strings.HasPrefix(s, "said ") })
		if got := strings.Join(said, "|"); got != "said  I am done.|said attempt_completion It is sunny.|said  sure" {
			t.Errorf("the transcript says %s", got)
		}
	})
}

// P1, P7: what was said after a tool ended the turn, and before a crash let it
// end, is answered, and the end is told.
func TestEndThenCrash(t *testing.T) {
	h := &house{store: mem.New(), tools: []tools.Tool{completion()}, model: script(words("You are welcome."))}
	timetest.Test(t, func(t *testing.T) {
		h.t = t
		one, two := message("1", "weather?"), message("2", "thanks")
		one.Time, two.Time = one.Time.Add(-time.Minute), two.Time.Add(-time.Minute) // they waited, and are taken together
		heard, _ := json.Marshal(one)
		for _, r := range []string{
			`{"heard":` + string(heard) + `}`, `{"said":{"role":"assistant","calls":[{"id":"a","name":"attempt_completion","args":"{}"}]}}`,
			`{"started":["a"]}`, `{"finished":{"role":"tool","call":"a","name":"attempt_completion","text":"done"},"result":{"end":"It is sunny."}}`,
		} {
			if _, err := h.store.Log("session/test:1").Append(t.Context(), store.Any, []byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		for _, m := range []chat.Message{one, two} {
			b, _ := json.Marshal(m)
			if err := h.store.Queue("inbox").Push(t.Context(), m.Key(), b); err != nil {
				t.Fatal(err)
			}
		}
		h.start()
		timetest.Sleep(time.Minute)
		h.want("It is sunny.\n\nYou are welcome.")
		if got, want := spoken(h.asks[0], 9), "user weather? | assistant  | tool done | user thanks"; got != want {
			t.Errorf("asked %s", got)
		}
		h.stop()
	})
}

// C-030, A-014: what a tool said at the end is the answer, also when after a crash
// no tools are to be had, and what was called can be told.
func TestEndWithoutTools(t *testing.T) {
	h := &house{store: mem.New()}
	h.set = func(s *agent.Settings) {
		s.Kit = func(context.Context, tools.Scope) (*tools.Kit, error) { return nil, errors.New("no tools today") }
	}
	timetest.Test(t, func(t *testing.T) {
		h.t = t
		m := message("1", "weather?")
		heard, _ := json.Marshal(m)
		for _, r := range []string{
			`{"heard":` + string(heard) + `}`, `{"said":{"role":"assistant","calls":[{"id":"a","name":"attempt_completion","args":"{}"}]}}`,
			`{"started":["a"]}`, `{"finished":{"role":"tool","call":"a","name":"attempt_completion","text":"done"},"result":{"end":"It is sunny."}}`,
		} {
			if _, err := h.store.Log("session/test:1").Append(t.Context(), store.Any, []byte(r)); err != nil {
				t.Fatal(err)
			}
		}
		h.start()
		h.deliver(m)
		h.want("It is sunny.")
		if all, err := h.pool.Sessions().Calls(t.Context(), "test:1", h.pool.Tools(t.Context(), "test:1")); err != nil || len(all) != 1 {
			t.Errorf("%+v, %v", all, err)
		}
		h.stop()
	})
}

// C-035: a user's tool of a system tool's name is the only one told of, and the one that runs.
func TestOverride(t *testing.T) {
	own := giving("attempt_completion", tools.Hints{}, tools.Result{Text: "noted", End: "my own end"})
	own.Description = "mine"
	h := &house{model: script(calls(call("1", "attempt_completion")))}
	h.set = func(s *agent.Settings) {
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed{completion()}, tools.Fixed{own}}, tools.Standard(tools.StandardConfig{})...)
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "go")
		h.want("my own end")
		if specs := h.asks[0].Tools; len(specs) != 1 || specs[0].Description != "mine" {
			t.Errorf("told of %v", specs)
		}
	})
}

// C-041: the third timeout of a tool pauses the work, and the next message resumes it.
func TestStrikes(t *testing.T) {
	hang := tool("hang", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	hang.Timeout = time.Second
	h := &house{tools: []tools.Tool{hang}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if strings.HasSuffix(spoken(r, 1), "go on") {
			return words("resumed"), nil
		}
		return calls(call("1", "hang")), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Minute)
		synctest.Wait()
		if len(h.asks) != 3 || len(h.sent) != 1 || !strings.HasPrefix(h.sent[0], "The same error came up three times, so the task is paused.\nError: ") {
			t.Errorf("%d requests, said %q", len(h.asks), h.sent)
		}
		h.sent = nil
		h.say("2", "go on")
		h.want("resumed")
	})
}

// C-053: in a chat an answer without a call ends the turn.
func TestPlainReplyEnds(t *testing.T) {
	play(t, &house{tools: []tools.Tool{completion()}, model: script(words("a"), words("b"), words("c"), words("d"))}, func(h *house) {
		for i, want := range []string{"a", "b", "c", "d"} {
			h.say(fmt.Sprint(i), "hi")
			h.want(want)
		}
	})
}

// D-048: with two rounds and a model that always calls, one has
// tools, the last has none, and the turn ends with the words for it.
func TestRoundLimit(t *testing.T) {
	h := &house{tools: []tools.Tool{giving("again", tools.Hints{}, tools.Result{Text: "more"})}, set: func(s *agent.Settings) { s.Rounds = 2 }}
	h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		return calls(call("1", "again")), nil
	}
	play(t, h, func(h *house) {
		h.say("1", "dig")
		h.want("I reached the maximum number of tool call iterations (2) without completing the task. You can try breaking the task into smaller steps.")
		if len(h.asks) != 2 || len(h.asks[0].Tools) != 1 || len(h.asks[1].Tools) != 0 {
			t.Errorf("requests %v", h.asks)
		}
	})
}

// A-019, C-005, D-032, D-036, E-022: whatever becomes of calls, each has one
// result with its ID, in the order asked.
func TestEveryCallHasAResult(t *testing.T) {
	empty := giving("empty", tools.Hints{}, tools.Result{})
	h := &house{tools: []tools.Tool{empty, slow(), giving("fine", tools.Hints{ReadOnly: true}, tools.Result{Text: "x"}), giving("burst", tools.Hints{}, tools.Result{})}}
	broken := func(t tools.Tool) tools.Tool {
		inner := t.Run
		t.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			switch c.Name {
			case "fine":
				return tools.Result{}, errors.New("Tool execution failed: no room")
			case "burst":
				panic("the pipeline itself is broken")
			}
			return inner(ctx, c)
		}
		return t
	}
	h.set = func(s *agent.Settings) {
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, append([]tools.Middleware{broken}, tools.Standard(tools.StandardConfig{})...)...)
		}
	}
	h.model = script(calls(call("", "fine"), call("a", "empty"), call("a", "nope"), call("c", "burst"), call("b", "fine")), words("ok"))
	play(t, h, func(h *house) {
		h.say("1", "go")
		h.want("ok")
		ms := h.asks[1].Messages
		cs := ms[1].Calls
		if len(cs) != 5 || len(ms) != 7 {
			t.Fatalf("%d calls and %d messages: %+v", len(cs), len(ms), ms)
		}
		for i, c := range cs {
			if m := ms[2+i]; m.Role != llm.ToolRole || m.Call != c.ID || m.Name != c.Name || m.Text == "" {
				t.Errorf("the result of %v is %+v", c, m)
			}
		}
		got := spoken(h.asks[1], 5)
		for _, want := range []string{"tool Error: Tool execution failed: no room", "(empty completed with no output)", "tool Error: burst crashed: the pipeline itself is broken."} {
			if !strings.Contains(got, want) {
				t.Errorf("asked %s, which lacks %q", got, want)
			}
		}
	})
}

// R-S12: once there was untrusted content, the rest of the turn knows, and the next turn.
func TestTaint(t *testing.T) {
	var tainted collected[string]
	tell := tool("tell", nil)
	tell.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		tainted.add(fmt.Sprintln(c.Tainted, c.Round, c.Message))
		return tools.Result{Text: "ok"}, nil
	}
	page := giving("page", tools.Hints{ReadOnly: true}, tools.Result{Text: "obey me", Tainted: true})
	h := &house{tools: []tools.Tool{tell, page}}
	h.model = script(calls(with("1", "tell", `{"n":1}`), call("2", "page"), with("3", "tell", `{"n":2}`)), calls(call("4", "tell")), words("a"), calls(call("1", "tell")), words("b"))
	play(t, h, func(h *house) {
		h.say("m1", "read it")
		h.want("a")
		h.say("m2", "again")
		h.want("b")
		if got := strings.Join(strings.Fields(strings.Join(tainted.values(), "")), " "); got != "false 1 m1 true 1 m1 true 2 m1 true 1 m2" {
			t.Errorf("tainted %s", got)
		}
	})
}

// of the same calls of an answer only the first is made.
func TestTwins(t *testing.T) {
	n := 0
	pay := tool("pay", func(context.Context) (string, error) { n++; return "paid", nil })
	h := &house{tools: []tools.Tool{pay}, model: script(calls(call("1", "pay"), call("2", "pay")), words("ok"))}
	play(t, h, func(h *house) {
		h.say("1", "pay")
		h.want("ok")
		if got, want := spoken(h.asks[1], 2), "tool paid | tool identical call in the same batch was not executed again; repeat it in a later step if you mean it"; got != want || n != 1 {
			t.Errorf("paid %d times, asked %s", n, got)
		}
	})
}

// D-056: a tool knows whether the model still sees a result, whole.
func TestShown(t *testing.T) {
	var keys []string
	var shown []string
	read := giving("read", tools.Hints{ReadOnly: true}, tools.Result{})
	read.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		var now []string
		for _, k := range keys {
			now = append(now, fmt.Sprint(c.Shown(k)))
		}
		shown = append(shown, strings.Join(now, ","))
		keys = append(keys, c.Key())
		return tools.Result{Text: strings.Repeat("x", 2200)}, nil
	}
	turns := 0
	h := &house{tools: []tools.Tool{read}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if strings.HasSuffix(spoken(r, 1), "go") {
			turns++
			return calls(with("1", "read", fmt.Sprintf(`{"n":%d}`, turns))), nil
		}
		return words("ok"), nil
	}
	play(t, h, func(h *house) {
		for i := range 13 {
			h.say(fmt.Sprint(i), "go")
			h.want("ok")
			if i == 2 { // also after a restart, and without the results that /retry took away
				h.stop()
				h.start()
			}
		}
		if shown[3] != "true,true,true" {
			t.Errorf("at first %q", shown[:4])
		}
		last := shown[len(shown)-1]
		if got := spoken(h.asks[len(h.asks)-1], 60); !strings.HasPrefix(last, "false,false,true") || !strings.HasSuffix(last, ",true") ||
			!strings.HasPrefix(got, "user go | assistant  | tool [read result omitted from context]") {
			t.Errorf("at last %q", last)
		}
		h.say("r", "/retry")
		h.want("ok")
		if last := shown[len(shown)-1]; !strings.HasSuffix(last, ",false") {
			t.Errorf("after /retry %q", last)
		}
	})
}

// D-052: a picture that a tool read is shown to a model with eyes behind the
// results, and to others not at all.
func TestPicturesRead(t *testing.T) {
	for _, eyes := range []bool{true, false} {
		t.Run(fmt.Sprint("eyes ", eyes), func(t *testing.T) {
			read := giving("read_file", tools.Hints{ReadOnly: true}, tools.Result{Text: "a.png: 1 picture", Pictures: []string{"a.png"}})
			look := tool("look", func(context.Context) (string, error) { return "sun", nil })
			h := &house{tools: []tools.Tool{read, look}, model: script(calls(call("1", "read_file"), call("2", "look")), words("a cat"), words("yes"))}
			ws := desk(t, "a.png")
			sees(h, ws, 100_000)
			if set := h.set; !eyes {
				h.set = func(s *agent.Settings) {
					set(s)
					m := s.Models["main"]
					m.Vision = false
					s.Models["main"] = m
				}
			}
			play(t, h, func(h *house) {
				h.say("1", "what is it?")
				h.want("a cat")
				h.say("2", "sure?")
				h.want("yes")
				want := "user what is it? | assistant  | tool a.png: 1 picture | tool sun"
				if eyes {
					want += " | user [picture read by read_file: a.png]"
				}
				if got := spoken(h.asks[1], 9); got != want {
					t.Errorf("asked %s\nwant  %s", got, want)
				}
				last := h.asks[1].Messages[len(h.asks[1].Messages)-1]
				if eyes != (len(last.Images) == 1) {
					t.Errorf("%d pictures", len(last.Images))
				}
				if got := spoken(h.asks[2], 9); got != want+" | assistant a cat | user sure?" {
					t.Errorf("then asked %s", got)
				}
			})
		})
	}
}

// A recorder is a live view that keeps the steps.
type recorder struct {
	mu    sync.Mutex
	steps []chat.Step
}

func (r *recorder) Show(string) {}
func (r *recorder) Close()      {}
func (r *recorder) Step(s chat.Step) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steps = append(r.steps, s)
}

// states returns the steps of a call, as "state tip".
func (r *recorder) states(call string) (all []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.steps {
		if s.Call == call {
			all = append(all, strings.TrimSpace(string(s.State)+" "+s.Tip))
		}
	}
	return all
}

func watched(h *house) *recorder {
	r := &recorder{}
	conf := h.conf
	h.conf = func(c *agent.Config) {
		if conf != nil {
			conf(c)
		}
		c.Live = func(context.Context, chat.Reply) chat.Live { return r }
	}
	return r
}

// streamed answers with calls whose arguments come in pieces, one each 100 ms.
func streamed(stream func(llm.Delta), pieces int, cs ...llm.ToolCall) llm.Message {
	for _, c := range cs {
		for i := range pieces {
			part := c
			part.Args = c.Args[:len(c.Args)*(i+1)/pieces]
			stream(llm.Delta{Call: &part})
			time.Sleep(100 * time.Millisecond)
		}
	}
	return calls(cs...)
}

// B-059: when a tool says what people are to read of its result, their step shows that and not
// what the model reads, in the line (in which nothing can be markup) and in the card.
func TestStepShowsWhatTheToolSays(t *testing.T) {
	results := []tools.Result{
		{Text: `{"return_code":0}`, Shown: "[calc]\nresult: 12"},
		{Text: "failed\nTraceback", Failed: true, Shown: "it failed (return code: 1)"},
	}
	calc := tool("calc", nil)
	calc.Preview = func(texts.Steps, map[string]any) string { return "three times four" }
	calc.Run = func(context.Context, tools.Call) (tools.Result, error) {
		r := results[0]
		results = results[1:]
		return r, nil
	}
	h := &house{tools: []tools.Tool{calc}}
	calls := 0
	h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		if calls++; calls > 2 {
			return words("ok"), nil
		}
		return llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{with(fmt.Sprint(calls), "calc", "{}")}}, nil
	}
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		h.want("ok")
		if got, want := strings.Join(rec.states("1"), "|"), "doing three times four|success calc result: 12"; got != want {
			t.Errorf("steps %s, want %s", got, want)
		}
		if got, want := strings.Join(rec.states("2"), "|"), "doing three times four|error it failed (return code: 1)"; got != want {
			t.Errorf("steps %s, want %s", got, want)
		}
		for _, s := range rec.steps {
			if s.Call == "1" && s.State == chat.Done && s.Result != "[calc]\nresult: 12" {
				t.Errorf("the card shows %q", s.Result)
			}
		}
		if got := spoken(h.asks[1], 1); got != `tool {"return_code":0}` {
			t.Errorf("the model read %q", got)
		}
	})
}

// C-006 to C-017, E-042: while arguments come in the step waits and its
// parameters grow; then it runs, and ends with its result, under one ID, merged;
// the tool runs once.
func TestStepsWhileArgumentsComeIn(t *testing.T) {
	ran := 0
	write := tool("write_file", nil)
	write.Display, write.Aliases = "Write a file", map[string]string{"file": "path"}
	write.Preview = func(_ texts.Steps, p map[string]any) string {
		if p["path"] == "panic" {
			panic("oh")
		}
		return fmt.Sprint("writes ", p["path"])
	}
	write.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		ran++
		c.Say("half [done]")
		if c.Input["text"] == "no" {
			return tools.Failf(tools.CodeError, "no room\nat all"), nil
		}
		return tools.Result{Text: strings.Repeat("é", 300)}, nil
	}
	long := strings.Repeat("long ", 100)
	answers := [][]llm.ToolCall{
		{with("1", "write_file", fmt.Sprintf(`{"file":"a.txt","text":%q,"list":[1,2]}`, long))},
		{with("1", "write_file", `{"path":"panic","text":"no"}`)}, // an ID that was used
	}
	h := &house{tools: []tools.Tool{write}}
	h.model = func(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if len(answers) == 0 {
			return words("ok"), nil
		}
		cs := answers[0]
		answers = answers[1:]
		return streamed(stream, 20, cs...), nil
	}
	rec := watched(h)
	play(t, h, func(h *house) {
		began := time.Now()
		h.say("1", "go")
		timetest.Sleep(time.Minute)
		h.want("ok")
		if ran != 2 {
			t.Errorf("ran %d times", ran)
		}
		if got, want := strings.Join(rec.states("1"), "|"),
			"wait writes a.txt|wait writes a.txt|wait writes a.txt|wait writes a.txt|doing writes a.txt|doing half done|success half done"; got != want {
			t.Errorf("steps %s\nwant  %s", got, want)
		}
		if got, want := strings.Join(rec.states("call_1_0"), "|"), "wait writes <nil>|wait writes <nil>|wait writes <nil>|doing writes <nil>|doing half done|error half done"; got != want {
			t.Errorf("steps %s\nwant  %s", got, want)
		}
		grown, over := "", chat.Step{}
		for _, s := range rec.steps {
			if s.Call != "1" {
				continue
			}
			text, _ := s.Params["text"].(string)
			if len(text) < len(grown) || !strings.HasPrefix(text, grown) {
				t.Errorf("the text was %q and is %q", grown, text)
			}
			grown, over = text, s
		}
		if over.Name != "Write a file" || over.Tool != "write_file" || over.Params["path"] != "a.txt" || over.Params["file"] != nil || grown != long[:200] {
			t.Errorf("the step is %+v", over)
		}
		if b, _ := json.Marshal(over.Params["list"]); string(b) != "[1,2]" {
			t.Errorf("the list is %s", b)
		}
		if over.Result != strings.Repeat("é", 200) || !over.Began.Equal(began) || over.Took != 2000 { // C-012, C-013
			t.Errorf("the step is %+v", over)
		}
		last := rec.steps[len(rec.steps)-1]
		if last.Error != "no room" || last.Result != "" {
			t.Errorf("the failed step is %+v", last)
		}
		// C-004: the model reads the result, whole, and nothing of what the step shows.
		if got, want := spoken(h.asks[1], 1), "tool "+strings.Repeat("é", 300); got != want {
			t.Errorf("the model read %q", got)
		}
		if got := spoken(h.asks[2], 1); !strings.HasPrefix(got, "tool Error: no room\nat all\n") || strings.Contains(got, "half") {
			t.Errorf("the model read %q", got)
		}
	})
}

// R-S26: no step shows the user and the password of an address, not even while
// the arguments come in and it is not known yet what is the host.
func TestStepsHideLogins(t *testing.T) {
	const address = "https://user:hunter2@example.com/path"
	fetch := tool("fetch", nil)
	fetch.Preview = func(_ texts.Steps, p map[string]any) string { return fmt.Sprintf("Reading %.24s", p["url"]) }
	fetch.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		c.Say("now at " + address)
		if c.Name == "plain" {
			return tools.Result{Text: strings.Repeat("x", 185) + address}, nil
		}
		return tools.Failf(tools.CodeError, "cannot read %s%s", strings.Repeat("x", 90), address), nil
	}
	plain := fetch
	plain.Name, plain.Preview = "plain", nil
	args := fmt.Sprintf(`{"url":%q,"more":{"list":[%[1]q]},"text":%q}`, address, strings.Repeat("x", 185)+address)
	h := &house{tools: []tools.Tool{fetch, plain}}
	h.model = func(_ context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if spoken(r, 1) == "user go" {
			return streamed(stream, len(args), with("1", "fetch", args), with("2", "plain", args)), nil
		}
		return words("ok"), nil
	}
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(5 * time.Minute)
		h.want("ok")
		for _, s := range rec.steps {
			all, _ := json.Marshal(s)
			if shown := string(all); strings.Contains(shown, "user") || strings.Contains(shown, "hunt") || strings.Contains(shown, ":h") {
				t.Errorf("shown: %s", shown)
			}
		}
		if tip := rec.steps[len(rec.steps)-1].Tip; tip != "now at https://…@example.com/path" {
			t.Errorf("the tip is %q", tip)
		}
	})
}

// C-015: what waits for a person, after its arguments came in faster than they
// are shown, is shown with all of them.
func TestStepsThatWait(t *testing.T) {
	danger := giving("danger", tools.Hints{Dangerous: true}, tools.Result{Text: "ok"})
	h := &house{tools: []tools.Tool{danger, giving("plain", tools.Hints{}, tools.Result{Text: "ok"})}}
	h.model = func(_ context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if spoken(r, 1) == "user go" {
			return streamed(stream, 20, with("1", "danger", `{"path":"gone.txt"}`), with("2", "plain", `{"path":"next.txt"}`)), nil
		}
		return words("ok"), nil
	}
	(&warden{after: time.Hour}).guards(h)
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Minute)
		last := map[string]chat.Step{}
		rec.mu.Lock()
		for _, s := range rec.steps {
			last[s.Call] = s
		}
		rec.mu.Unlock()
		if a, b := last["1"], last["2"]; a.State != chat.Waiting || a.Params["path"] != "gone.txt" || b.State != chat.Waiting || b.Params["path"] != "next.txt" {
			t.Errorf("the steps are %+v, %+v", a, b)
		}
		timetest.Sleep(2 * time.Hour)
	})
}

// A call that was coming in and never came is no step that waits for ever; one
// that came in again after a broken stream is the same step (C-012).
func TestStepsOfBrokenStreams(t *testing.T) {
	look := tool("look", func(context.Context) (string, error) { return "sun", nil })
	h := &house{tools: []tools.Tool{look}}
	first := true
	h.model = func(_ context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if !first {
			return words("ok"), nil
		}
		first = false
		streamed(stream, 1, call("", "look"), call("b", "look"))
		stream(llm.Delta{Reset: true})
		return streamed(stream, 1, call("", "look")), nil
	}
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Minute)
		h.want("ok")
		if a, b := strings.Join(rec.states("call_0_0"), "|"), strings.Join(rec.states("b"), "|"); a != "wait|doing|success" || b != "wait|error" {
			t.Errorf("steps %s and %s", a, b)
		}
		if s := rec.steps[slices.IndexFunc(rec.steps, func(s chat.Step) bool { return s.State == chat.Failed })]; s.Error != "" {
			t.Errorf("it says %q", s.Error)
		}
	})
}

// §2.7: the step of a lookup that is taken back says so.
func TestStepsOfRollback(t *testing.T) {
	var ran, rolled collected[string]
	h := &house{set: rolling(&rolled), tools: []tools.Tool{search(&ran)}, model: script(calls(asksFor("bad")), words("ok"))}
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		h.want("ok")
		if got := strings.Join(rec.states("1"), "|"); got != "doing bad|success ↩ retrying" {
			t.Errorf("steps %s", got)
		}
	})
}

// §2.10: the reply keeps one line on the tools, unless the person wants none.
func TestReplySteps(t *testing.T) {
	var lines collected[string]
	nap := giving("nap", tools.Hints{Display: "Sleep"}, tools.Result{})
	nap.Run = func(context.Context, tools.Call) (tools.Result, error) {
		time.Sleep(2 * time.Second)
		return tools.Result{Text: "ok"}, nil
	}
	say := giving("say", tools.Hints{Category: "message"}, tools.Result{Text: "said"}) // which is seen anyway
	h := &house{tools: []tools.Tool{nap, say, tool("fail", func(context.Context) (string, error) { return "", errors.New("no") })}}
	h.conf = func(c *agent.Config) {
		send := c.Send
		c.Send = func(ctx context.Context, r chat.Reply) error { lines.add(r.Steps); return send(ctx, r) }
	}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if strings.HasSuffix(spoken(r, 1), "go") {
			return calls(call("1", "nap"), with("2", "nap", `{"n":1}`), call("3", "fail"), call("4", "say")), nil
		}
		return words("ok"), nil
	}
	rec := watched(h)
	play(t, h, func(h *house) {
		for i, text := range []string{"go", "hi", "/verbose off", "go", "/verbose on", "go"} {
			h.say(fmt.Sprint(i), text)
			timetest.Sleep(time.Minute)
			if text == "/verbose off" {
				rec.steps = nil
			}
			if i == 3 && len(rec.steps) != 0 {
				t.Errorf("shown %v", rec.steps)
			}
		}
		synctest.Wait()
		line := "🔧 Sleep ×2, fail – 4 s, 1 failed"
		if got, want := strings.Join(lines.values(), "|"), line+"||||"+"|"+line; got != want {
			t.Errorf("lines %q, want %q", got, want)
		}
	})
}

// P14, C-006: a tool that was given up on may still speak, and ask what is
// shown: nobody hears it, and nothing breaks.
func TestStraySpeaks(t *testing.T) {
	stray := tool("stray", nil)
	stray.Timeout = time.Second
	spoke := false
	stray.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		for range 50 {
			time.Sleep(100 * time.Millisecond)
			c.Say("still here")
			c.Shown(c.Key())
		}
		spoke = true
		return tools.Result{Text: "at last"}, nil
	}
	read := giving("read", tools.Hints{ReadOnly: true}, tools.Result{Text: "x"})
	h := &house{tools: []tools.Tool{stray, read}}
	h.model = func(_ context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		time.Sleep(time.Second)
		switch len(r.Messages) {
		case 1:
			return calls(call("1", "stray")), nil
		case 3:
			return streamed(stream, 5, call("2", "read")), nil
		}
		return words("ok"), nil
	}
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(10 * time.Second)
		h.want("ok")
		if got := rec.states("1"); !spoke || got[len(got)-1] != "error still here" {
			t.Errorf("spoke %v, steps %q", spoke, got)
		}
	})
}

// R-S12: what people quote or pass on is what strangers wrote, also when it is
// answered anew; what the agent itself said is not.
func TestTaintOfQuotes(t *testing.T) {
	var tainted collected[bool]
	tell := tool("tell", nil)
	tell.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		tainted.add(c.Tainted)
		return tools.Result{Text: "ok"}, nil
	}
	h := &house{tools: []tools.Tool{tell}}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if r.Messages[len(r.Messages)-1].Role == llm.User {
			return calls(call("1", "tell")), nil
		}
		return words("done"), nil
	}
	play(t, h, func(h *house) {
		for i, q := range []*chat.Quote{nil, {From: "Mallory", Text: "obey me", Forwarded: true}, {From: "Mallory", Text: "obey me"}, {From: "you", Text: "I said"}} {
			m := message(fmt.Sprint("m", i), "do as it says")
			m.Quote = q
			h.deliver(m)
			synctest.Wait()
			h.say(fmt.Sprint("r", i), "/retry")
			synctest.Wait()
			h.say(fmt.Sprint("n", i), "/new")
			synctest.Wait()
		}
		if want := []bool{false, false, true, true, true, true, false, false}; !slices.Equal(tainted.values(), want) {
			t.Errorf("tainted %v, want %v", tainted.values(), want)
		}
	})
}

// The calls of a round are listed in the order asked, whichever ended first.
func TestCallsInTheOrderAsked(t *testing.T) {
	h := &house{model: script(calls(call("1", "slow"), call("2", "quick")), calls(call("3", "quick")), words("done"))}
	for name, takes := range map[string]time.Duration{"slow": time.Minute, "quick": time.Second} {
		look := tool(name, func(context.Context) (string, error) { time.Sleep(takes); return name, nil })
		look.ReadOnly, look.Timeout = true, time.Hour
		h.tools = append(h.tools, look)
	}
	play(t, h, func(h *house) {
		h.say("1", "look")
		timetest.Sleep(time.Hour)
		h.want("done")
		all, err := h.pool.Sessions().Calls(t.Context(), "test:1", h.pool.Tools(t.Context(), "test:1"))
		var names []string
		for _, c := range all {
			names = append(names, c.Function.Name)
		}
		if got := strings.Join(names, " "); got != "slow quick quick" || err != nil {
			t.Errorf("listed %q, %v", got, err)
		}
	})
}
