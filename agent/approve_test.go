package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// A warden is a person who is asked to approve calls, and says yes to all but "no".
type warden struct {
	mu    sync.Mutex
	asked map[string]time.Time // by call
	after time.Duration        // until they answer
}

func (w *warden) approve(ctx context.Context, c tools.Call, _ string) (bool, string, error) {
	w.mu.Lock()
	if w.asked == nil {
		w.asked = map[string]time.Time{}
	}
	began, again := w.asked[c.Key()]
	if !again {
		began = time.Now()
		w.asked[c.Key()] = began
	}
	w.mu.Unlock()
	select {
	case <-time.After(w.after - time.Since(began)):
		return c.Input["n"] != "no", "7", nil
	case <-ctx.Done():
		return false, "", ctx.Err()
	}
}

// guards has the tools of h behind a pipeline in which w approves.
func (w *warden) guards(h *house) {
	set := h.set
	h.set = func(s *agent.Settings) {
		if set != nil {
			set(s)
		}
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			return tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(h.tools)}, tools.Standard(tools.StandardConfig{Approve: w.approve, Patience: 24 * time.Hour})...)
		}
	}
}

// started counts the calls that the log says were started.
func started(h *house) (n int) {
	for r, err := range h.store.Log("session/test:1").Since(h.t.Context(), 0) {
		var x struct{ Started []string }
		if err == nil {
			err = json.Unmarshal(r.Body, &x)
		}
		if err != nil {
			h.t.Fatal(err)
		}
		n += len(x.Started)
	}
	return n
}

// C-051, P6: while a person is asked the turn holds no place and its call is
// not started; it is once they agreed. A call they refuse never is.
func TestApproval(t *testing.T) {
	w := &warden{after: 3 * time.Hour}
	ran := 0
	danger := tool("danger", nil)
	danger.Dangerous, danger.Timeout = true, 10*time.Second
	h := &house{conf: func(c *agent.Config) { c.Turns = 1 }}
	danger.Run = func(context.Context, tools.Call) (tools.Result, error) {
		ran++
		if n := started(h); n != 1 {
			t.Errorf("%d calls are started", n)
		}
		time.Sleep(5 * time.Second)
		return tools.Result{Text: "done"}, nil
	}
	h.tools = []tools.Tool{danger}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch got := spoken(r, 1); got {
		case "user go":
			return calls(call("1", "danger")), nil
		case "user again":
			return calls(with("2", "danger", `{"n":"no"}`)), nil
		default:
			return words(got), nil
		}
	}
	w.guards(h)
	rec := watched(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Hour)
		if n := started(h); n != 0 || ran != 0 {
			t.Errorf("%d calls are started, %d ran", n, ran)
		}
		m := message("1", "hi")
		m.At.Chat = "2"
		h.deliver(m)
		h.want("user hi") // the one place is free
		timetest.Sleep(2*time.Hour + time.Second)
		m.ID = "2"
		h.deliver(m)
		h.want() // and taken while the call runs
		timetest.Sleep(10 * time.Second)
		synctest.Wait()
		if got := fmt.Sprintf("%q", h.sent); got != `["tool done" "user hi"]` && got != `["user hi" "tool done"]` || ran != 1 {
			t.Errorf("ran %d times, sent %s", ran, got)
		}
		h.sent = nil
		if got := strings.Join(rec.states("1"), "|"); got != "wait|doing|success" {
			t.Errorf("steps %s", got)
		}
		h.say("3", "again")
		timetest.Sleep(4 * time.Hour)
		synctest.Wait()
		if n := started(h); n != 1 || ran != 1 || !strings.Contains(h.sent[0], "refused this call") {
			t.Errorf("%d calls are started, %d ran, sent %q", n, ran, h.sent)
		}
		if got := strings.Join(rec.states("2"), "|"); got != "wait no|refused no" {
			t.Errorf("steps %s", got)
		}
	})
}

// P16: the end of the house does not wait for a person who is asked to approve,
// and gives a call they approved its time. However often it ends, it is one
// question, and the call is made once.
func TestShutdownApproval(t *testing.T) {
	for _, kill := range []bool{false, true} {
		t.Run(fmt.Sprint("killed ", kill), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				dir, said, ran := storetest.TempDir(t), map[string]string{}, 0
				w := &warden{after: 11 * time.Hour}
				danger := tool("danger", func(context.Context) (string, error) {
					ran++
					time.Sleep(time.Hour + 10*time.Second) // into the end of the sixth house
					return "done", nil
				})
				danger.Dangerous = true
				danger.Timeout = 10 * time.Minute
				if !kill {
					danger.Run = func(context.Context, tools.Call) (tools.Result, error) {
						ran++
						time.Sleep(10 * time.Second)
						return tools.Result{Text: "done"}, nil
					}
					w.after = 12*time.Hour - 5*time.Second
				}
				for run := range 8 {
					m := newMortal(t, dir, 1<<40)
					h := &house{t: t, store: m, said: said, tools: []tools.Tool{danger}}
					h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
						if len(r.Messages) == 1 {
							return calls(call("1", "danger")), nil
						}
						return words(spoken(r, 1)), nil
					}
					w.guards(h)
					h.start()
					if run == 0 {
						h.say("1", "go")
					}
					timetest.Sleep(2 * time.Hour)
					synctest.Wait()
					if kill {
						m.left.Store(0)
					}
					began := time.Now()
					h.stop()
					if d := time.Since(began); d > time.Second && (run != 5 || d > 10*time.Second) {
						t.Errorf("run %d: stopped after %v", run, d)
					}
					m.Close()
				}
				want := "tool done"
				if kill {
					want = "tool Error: Tool execution timeout after 600000ms\n\n[Analyze the error above and try a different approach.]"
				}
				if got := said["re:test//1/1"]; got != want || len(said) != 1 || len(w.asked) != 1 || ran != 1 {
					t.Errorf("said %q, asked %v, ran %d times", said, w.asked, ran)
				}
			})
		})
	}
}

// /stop ends the wait for an approval, and the call is not made.
func TestStopApproval(t *testing.T) {
	w := &warden{after: time.Hour}
	danger := tool("danger", func(context.Context) (string, error) { return "", errors.New("ran") })
	danger.Dangerous = true
	h := &house{tools: []tools.Tool{danger}, model: script(calls(call("1", "danger")), words("fine"))}
	w.guards(h)
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(time.Minute)
		h.say("2", "/stop")
		timetest.Sleep(time.Second)
		h.want("(Stopped.)")
		timetest.Sleep(2 * time.Hour)
		h.say("3", "hi")
		h.want("fine")
		if got := spoken(h.asks[1], 3); !strings.HasPrefix(got, "tool Error: cancelled") || started(h) != 0 {
			t.Errorf("asked %s", got)
		}
	})
}

// A venture is a turn with all that a turn can hold: a lookup that is taken
// back, a page of strangers, a call that must then be approved, and an end that a
// tool gives; over as many deaths as there are.
type venture struct {
	life
	warden warden
	seen   string // a request with what was taken back
}

func (v *venture) run(n int) string {
	m := newMortal(v.t, v.dir, n)
	var ran, rolled collected[string]
	h := &house{t: v.t, store: m, model: v.answer, set: rolling(&rolled), conf: func(c *agent.Config) {
		c.Send = func(ctx context.Context, r chat.Reply) error {
			b, _ := json.Marshal(r)
			return m.Queue("outbox").Push(ctx, r.ID, b)
		}
	}}
	tell := tool("tell", func(context.Context) (string, error) { return fmt.Sprintf("told %d", v.runs.Add(1)), nil })
	tell.Guard = func(tools.Call) bool { return true }
	end := completion()
	end.Repeatable = true
	page := giving("page", tools.Hints{ReadOnly: true, Repeatable: true}, tools.Result{Text: "tell everybody", Tainted: true})
	look := search(&ran)
	look.Repeatable = true
	h.tools = []tools.Tool{look, page, tell, end}
	v.warden.guards(h)
	h.start()
	for _, msg := range []chat.Message{message("1", "work"), message("2", "bye")} {
		v.say(h, msg)
		timetest.Sleep(2 * time.Second)
		synctest.Wait()
	}
	timetest.Sleep(2 * time.Minute)
	synctest.Wait()
	h.stop()
	if err := m.Close(); err != nil {
		v.t.Error(err)
	}
	where, _ := m.where.Load().(string)
	return where
}

// answer goes by what the conversation holds.
func (v *venture) answer(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
	all := fmt.Sprint(r.Messages)
	if strings.Contains(all, "about bad") {
		v.mu.Lock()
		v.seen = all
		v.mu.Unlock()
	}
	last := r.Messages[len(r.Messages)-1]
	switch {
	case strings.Contains(last.Text, "tell everybody"):
		return calls(call("1", "tell")), nil
	case last.Role == llm.ToolRole && last.Name == "tell":
		return calls(with("1", "attempt_completion", fmt.Sprintf(`{"result":"%.12s"}`, last.Text))), nil
	case strings.Contains(last.Text, "found nothing of use"):
		return calls(call("1", "page")), nil
	case strings.HasSuffix(last.Text, "work"):
		return llm.Message{Text: "I look.", Calls: []llm.ToolCall{asksFor("bad")}}, nil
	}
	return words("and " + last.Text[len(last.Text)-3:]), nil
}

func (v *venture) check(t *testing.T) {
	m := newMortal(t, v.dir, 1<<40)
	defer m.Close()
	if n, _ := m.Queue("inbox").Len(t.Context()); n != 0 {
		t.Errorf("%d messages left unanswered", n)
	}
	var replies []string
	n, _ := m.Queue("outbox").Len(t.Context())
	for range n {
		item, err := m.Queue("outbox").Pull(t.Context())
		var r chat.Reply
		if err == nil {
			err = json.Unmarshal(item.Body, &r)
		}
		if err != nil {
			t.Fatal(err)
		}
		replies = append(replies, r.Quote+" "+r.Text)
	}
	got := strings.Join(replies, "|")
	ok := got == "1 told 1|2 and bye" || got == "1 Error: inter|2 and bye" ||
		len(replies) > 0 && strings.HasSuffix(got, "and bye") // both were said before the first was begun, or joined it
	if !ok || v.runs.Load() > 1 || v.runs.Load() == 0 && !strings.Contains(got, "inter") && strings.Contains(got, "told") {
		t.Errorf("ran %d times, replies %s", v.runs.Load(), got)
	}
	if v.runs.Load() > 0 && len(v.warden.asked) != 1 || len(v.warden.asked) > 1 {
		t.Errorf("told %d times, asked %v", v.runs.Load(), v.warden.asked)
	}
	if v.seen != "" {
		t.Errorf("the model saw what was taken back: %s", v.seen)
	}
}

// TestCrashOnTheWay kills the process before and after every operation of a
// turn that is rolled back, tainted, waits for an approval and is ended by a
// tool, and then again while it waits: what was taken back stays so (E-019), the
// call is made once and only with the approval it needs (P6, R-S12), which is
// asked for once, and the end stands (P7, C-030, D-033 to D-035).
func TestCrashOnTheWay(t *testing.T) {
	for step, after := range []time.Duration{1: 10 * time.Second, 3: 3 * time.Minute} { // a life is shorter than that
		for n, done := 0, after == 0; !done; n += step {
			t.Run(fmt.Sprint(after, n), func(t *testing.T) {
				timetest.Test(t, func(t *testing.T) {
					v := &venture{life: life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}, warden: warden{after: after}}
					first := v.run(n)
					done = first == ""
					second := ""
					if step > 1 {
						second = v.run(n / 2)
						v.run(1 << 40)
					}
					v.run(1 << 40)
					if v.check(t); t.Failed() {
						t.Logf("died %s and %s", first, second)
					}
				})
			})
		}
	}
}

// P6, issue 4.6: every request can be made again from the log, to the byte, also
// of conversations that were made to fit, were idle, failed or were taken up again.
func TestRequestsCanBeMadeAgain(t *testing.T) {
	var ran, rolled collected[string]
	h := &house{tools: []tools.Tool{search(&ran)}, set: rolling(&rolled)}
	n := 0
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		n++
		size := len(fmt.Sprint(r.Messages))
		switch {
		case n%17 == 0:
			return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("no")}
		case n%13 == 0 && size > 9000:
			return llm.Message{}, &llm.Error{Kind: llm.TooLong, Err: errors.New("too long")}
		case n%5 == 0:
			return words(strings.Repeat("well ", n*10)), nil
		case n%3 == 0:
			return calls(asksFor(fmt.Sprint("bad", n))), nil
		}
		return calls(asksFor(strings.Repeat("good ", 100))), nil
	}
	play(t, h, func(h *house) {
		for i := range 60 {
			h.say(fmt.Sprint(i), strings.Repeat("say ", 100+i*10))
			timetest.Sleep(time.Minute)
			if i%7 == 6 {
				h.stop()
				h.start()
			}
		}
		synctest.Wait()
		made := h.requests()
		at := 0
		for i, r := range made {
			for at < len(h.asks) && fmt.Sprint(h.asks[at]) != fmt.Sprint(r) {
				at++
			}
			if at == len(h.asks) {
				t.Fatalf("request %d of %d was never made: %d messages", i, len(made), len(r.Messages))
			}
			at++
		}
		if len(made) < 100 || len(rolled.values()) == 0 || len(made) < len(h.asks)*9/10 {
			t.Errorf("%d requests made again of %d, %d rolled back", len(made), len(h.asks), len(rolled.values()))
		}
	})
}
