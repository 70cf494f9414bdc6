package agent_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/storetest"
	"parley/timetest"
	"parley/tools"
)

// errand is what a job on the clock delivers.
func errand(id, text string, e chat.RunOptions) chat.Message {
	m := message(id, text)
	m.Account, m.Origin, m.Options = "cron", chat.FromSchedule, &e
	e.Job = "j"
	return m
}

// An ear is told how errands ended.
type ear struct {
	mu   sync.Mutex
	ends []string
}

func (e *ear) hear(_ context.Context, end agent.End) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ends = append(e.ends, fmt.Sprintf("%s %s %q %d %v", end.Message.ID, end.Outcome, end.Text, end.Tokens, end.Tainted))
	return nil
}

func (e *ear) want(t *testing.T, ends ...string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if fmt.Sprint(e.ends) != fmt.Sprint(ends) {
		t.Errorf("told of %q\nwant %q", e.ends, ends)
	}
	e.ends = nil
}

func (e *ear) conf(c *agent.Config) { c.Ended = e.hear }

// What a job says is no person's: it waits for a turn that is under way, has one
// of its own, and its answer quotes nothing.
func TestErrandIsApart(t *testing.T) {
	slow := tool("slow", func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "ok", nil })
	var replies collected[chat.Reply]
	e := &ear{}
	h := &house{tools: []tools.Tool{slow}, model: script(calls(call("1", "slow")), words("done"), words("reminded"))}
	h.conf = func(c *agent.Config) {
		e.conf(c)
		send := c.Send
		c.Send = func(ctx context.Context, r chat.Reply) error { replies.add(r); return send(ctx, r) }
	}
	play(t, h, func(h *house) {
		h.say("1", "work")
		timetest.Sleep(time.Second)
		h.deliver(errand("j/1", "remind me", chat.RunOptions{}))
		timetest.Sleep(time.Minute)
		h.want("done", "reminded")
		e.want(t, `j/1 answered "reminded" 0 false`)
		sent := replies.values()
		if reply := sent[len(sent)-1]; reply.Quote != "" || len(reply.Also) > 0 {
			t.Errorf("the answer quotes %q and %q, which nobody said", reply.Quote, reply.Also)
		}
		if got := spoken(h.asks[2], 1); got != "user remind me" {
			t.Errorf("asked %q", got)
		}
	})
}

// A quiet job speaks only when there is something to say, and its failure is
// for the history of its runs.
func TestQuietErrand(t *testing.T) {
	e, shown := &ear{}, 0
	answers := script(words("NOTHING_TO_SAY"), words("Looked, all is as it was.\n\n**NOTHING_TO_SAY**."), words("It has changed!"))
	h := &house{conf: e.conf, live: func(string) { shown++ }}
	h.model = func(ctx context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		if strings.Contains(spoken(r, 1), "fail") {
			return llm.Message{}, &llm.Error{Kind: llm.BadRequest, Err: errors.New("no")}
		}
		if last := r.Messages[len(r.Messages)-1].Text; !strings.Contains(strings.SplitN(last, "\n", 2)[0], "NOTHING_TO_SAY alone") {
			t.Errorf("the model is not told how to say nothing: %s", last)
		}
		stream(llm.Delta{Text: "It"})
		return answers(ctx, r, stream)
	}
	play(t, h, func(h *house) {
		for i := range 3 {
			h.deliver(errand(fmt.Sprint(i), "watch", chat.RunOptions{Quiet: true}))
			synctest.Wait()
		}
		h.want("It has changed!")
		h.deliver(errand("4", "fail", chat.RunOptions{Quiet: true}))
		h.want()
		e.mu.Lock()
		if got := strings.Join(e.ends, "\n"); strings.Count(got, "nothing to say") != 2 || !strings.Contains(got, `2 answered "It has changed!"`) || !strings.Contains(got, "4 failed") {
			t.Errorf("told of %s", got)
		}
		e.mu.Unlock()
		if shown > 0 {
			t.Errorf("%d drafts of quiet answers were shown", shown)
		}
	})
}

// A fresh errand knows nothing of the ones before it, in a session of its own,
// and the chat is told the result only.
func TestFreshErrand(t *testing.T) {
	var n atomic.Int64
	e := &ear{}
	h := &house{conf: e.conf, model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		return words(fmt.Sprint("result ", n.Add(1))), nil
	}}
	play(t, h, func(h *house) {
		h.say("p", "hello")
		h.want("result 1")
		for i := range 25 {
			m := errand(fmt.Sprint("r", i), "look", chat.RunOptions{Fresh: true})
			m.In = "cron:j"
			h.deliver(m)
			h.want(fmt.Sprint("result ", i+2))
			if got := len(h.asks[i+1].Messages); got != 1 {
				t.Fatalf("run %d was shown %d messages", i, got)
			}
		}
		said := 0
		for x, err := range h.pool.Sessions().Transcript(t.Context(), "cron:j") {
			if err != nil {
				t.Fatal(err)
			}
			if x.Kind == chat.Said {
				said++
			}
		}
		if said != 20 {
			t.Errorf("%d runs are kept, want 20", said)
		}
		if u, err := h.pool.Budget().Usage(t.Context()); err != nil || len(u) != 1 || u[0].Turns != 26 {
			t.Errorf("usage %v, %v", u, err)
		}
	})
}

// A job may be answered by a tool instead of a model, and by a model of its own.
func TestErrandOfTool(t *testing.T) {
	e := &ear{}
	count := tool("count", nil)
	count.Schema = []byte(`{"type":"object","properties":{"of":{"type":"string"}},"required":["of"]}`)
	count.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		return tools.Result{Text: fmt.Sprintf("3 %s (%s)", c.Input["of"], c.Origin), Tainted: true}, nil
	}
	weather := tool("weather", nil)
	weather.JSON = true
	weather.Run = func(context.Context, tools.Call) (tools.Result, error) {
		return tools.Result{Data: map[string]any{"degrees": 22, "city": "Rome"}}, nil
	}
	h := &house{conf: e.conf, tools: []tools.Tool{count, weather}, model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		t.Error("a model was asked")
		return words(""), nil
	}}
	h.set = func(s *agent.Settings) {
		s.Models["cheap"] = agent.Model{Model: llm.ModelFunc(script(words("cheap words"))), Window: 8000}
	}
	play(t, h, func(h *house) {
		h.deliver(errand("1", "count", chat.RunOptions{Tool: "count", Args: `{"of":"apples"}`}))
		h.want("3 apples (schedule)")
		e.want(t, `1 answered "3 apples (schedule)" 0 true`)
		h.deliver(errand("2", "count", chat.RunOptions{Tool: "count", Args: `{}`}))
		synctest.Wait()
		if len(h.sent) != 1 || !strings.HasPrefix(h.sent[0], "I could not do that with count: ") || strings.Contains(h.sent[0], "Analyze") {
			t.Errorf("sent %q", h.sent)
		}
		h.sent = nil
		e.mu.Lock()
		if len(e.ends) != 1 || !strings.HasPrefix(e.ends[0], "2 failed ") {
			t.Errorf("told of %q", e.ends)
		}
		e.mu.Unlock()
		h.deliver(errand("3", "say", chat.RunOptions{Model: "cheap"}))
		h.want("cheap words")
		h.deliver(errand("4", "", chat.RunOptions{Tool: "weather", Args: `{}`})) // people read no JSON
		h.want("- city: Rome\n- degrees: 22")
	})
}

// What strangers wrote taints the turn of an errand that brings it (R-S12, R-S14).
func TestTaintedErrand(t *testing.T) {
	var tainted collected[bool]
	look := tool("look", nil)
	look.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		tainted.add(c.Tainted)
		return tools.Result{Text: "ok"}, nil
	}
	play(t, &house{tools: []tools.Tool{look}, model: script(calls(call("1", "look")), words("a"), calls(call("1", "look")), words("b"))}, func(h *house) {
		m := errand("1", "look", chat.RunOptions{})
		m.Tainted = true
		h.deliver(m)
		h.want("a")
		h.deliver(errand("2", "look", chat.RunOptions{}))
		h.want("b")
		if fmt.Sprint(tainted.values()) != "[true true]" {
			t.Errorf("tainted: %v", tainted.values())
		}
	})
}

// P7: the clock hears how an errand ended, whatever way it ends, and while its
// message is in the inbox: a crash between the two tells it again.
func TestEndIsToldFirst(t *testing.T) {
	dir := ""
	slow := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	stop := func(h *house) { h.say("s", "/stop") }
	look := chat.RunOptions{Tool: "look", Args: "{}"}
	quietly := look
	quietly.Quiet = true
	for _, c := range []struct {
		name   string
		errand chat.RunOptions
		look   func(context.Context) (string, error)
		then   func(*house)
		set    func(*agent.Settings)
		want   string // how it ended
		said   string // in the chat
	}{
		{"answered", look, nil, nil, nil, "answered", "ok"},
		{"failed", look, func(context.Context) (string, error) { return "", errors.New("no") }, nil, nil, "failed", "I could not do that with look: no"},
		{"no such tool", chat.RunOptions{Tool: "gone"}, nil, nil, nil, "failed", "I could not do that with gone: "},
		{"panic", look, nil, nil, func(s *agent.Settings) {
			s.Kit = func(context.Context, tools.Scope) (*tools.Kit, error) { panic("no tools") }
		}, "failed", "Something went wrong inside me. The error is in my log. Please try again."},
		{"stopped", look, slow, stop, nil, "stopped", "(Stopped.)"},
		{"stopped as it begins", look, nil, nil, nil, "stopped", "(Stopped.)"},
		{"quiet and stopped", quietly, slow, stop, nil, "stopped", "(Stopped.)"},
		{"a new conversation", look, slow, func(h *house) { h.say("n", "/new") }, nil, "stopped", "(Stopped.)"},
		{"forgotten", look, slow, func(h *house) {
			if err := h.pool.Forget(h.t.Context(), "test:1"); err != nil {
				h.t.Error(err)
			}
		}, nil, "stopped", ""},
		{"too old", look, nil, nil, func(s *agent.Settings) { s.MaxAge = time.Nanosecond }, "too old", "I was away, "},
		{"over the limit", look, nil, nil, func(s *agent.Settings) { s.Limits.Job.Turns = 1 }, "over the limit", "Today's limit for this job is reached: 1 of 1 answers."},
		{"parked", look, slow, func(h *house) {
			h.stop()
			if _, err := store.NewTable(h.store.Bucket("tries"), store.Report[map[string]any]).Put(h.t.Context(), "trial", lastTry("test/cron/1/1"), store.Any); err != nil {
				h.t.Fatal(err)
			}
			h.store.Close()
			h.store = newMortal(h.t, dir, 1<<40)
			h.start()
		}, nil, "parked", "I crashed three times over this message, "},
	} {
		t.Run(c.name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				m := errand("1", "go", c.errand)
				var ends []string
				dir = storetest.TempDir(t)
				h := &house{t: t, store: newMortal(t, dir, 1<<40), set: c.set}
				if c.look == nil {
					c.look = func(context.Context) (string, error) { return "ok", nil }
				}
				h.tools = []tools.Tool{tool("look", c.look)}
				h.conf = func(conf *agent.Config) {
					conf.Ended = func(ctx context.Context, e agent.End) error {
						if e.Message.ID != m.ID {
							return nil
						}
						if n, err := h.store.Queue("inbox").Len(ctx); n == 0 || err != nil {
							t.Errorf("told when the message is gone; %v", err)
						}
						if ends = append(ends, e.Outcome); len(ends) == 1 {
							return errors.New("disk full")
						}
						return nil
					}
					conf.Begun = func(ctx context.Context, _ chat.SessionID, _ chat.Message) (context.Context, func(string)) {
						if c.name == "stopped as it begins" {
							stop(h)
						}
						return ctx, func(string) {}
					}
				}
				h.start()
				if c.want == "over the limit" {
					h.deliver(errand("0", "go", look))
				}
				timetest.Sleep(time.Second)
				h.deliver(m)
				timetest.Sleep(time.Second)
				if c.then != nil {
					c.then(h)
				}
				timetest.Sleep(2 * time.Minute)
				synctest.Wait()
				if fmt.Sprint(ends) != fmt.Sprint([]string{c.want, c.want}) {
					t.Errorf("told %q, want %q twice", ends, c.want)
				}
				if got := h.said["re:"+m.Key()]; !strings.HasPrefix(got, c.said) || (got == "") != (c.said == "") {
					t.Errorf("said %q, want %q", got, c.said)
				}
				if n, err := h.store.Queue("inbox").Len(t.Context()); n > 0 || err != nil {
					t.Errorf("%d messages wait, %v", n, err)
				}
				h.stop()
				h.store.Close()
			})
		})
	}
}

// What a person says while an errand is answered waits for its end: it is
// another's turn, maybe with another model, at another's expense, and in silence.
func TestNobodyJoinsAnErrand(t *testing.T) {
	slow := tool("slow", func(context.Context) (string, error) { time.Sleep(10 * time.Second); return "ok", nil })
	h := &house{tools: []tools.Tool{slow}, model: script(calls(call("1", "slow")), words("NOTHING_TO_SAY"), words("hello"))}
	play(t, h, func(h *house) {
		h.deliver(errand("1", "watch", chat.RunOptions{Quiet: true}))
		timetest.Sleep(time.Second)
		h.say("2", "hi")
		timetest.Sleep(time.Minute)
		h.want("hello")
		if got := spoken(h.asks[1], 1); got != "tool ok" {
			t.Errorf("the errand is asked %q", got)
		}
	})
}

// An errand is answered again as it was answered: by its tool or its model, and
// not in silence. It is no run of the job, and who wants it pays.
func TestRetryErrand(t *testing.T) {
	var n atomic.Int64
	e := &ear{}
	count := tool("count", func(context.Context) (string, error) { return fmt.Sprint(n.Add(1)), nil })
	h := &house{conf: e.conf, tools: []tools.Tool{count}, model: script(words("no"))}
	h.set = func(s *agent.Settings) {
		s.Limits.Job.Turns = 2
		s.Models["cheap"] = agent.Model{Model: llm.ModelFunc(script(words("NOTHING_TO_SAY"), words("NOTHING_TO_SAY"))), Window: 8000}
	}
	play(t, h, func(h *house) {
		h.deliver(errand("1", "", chat.RunOptions{Tool: "count", Args: "{}"}))
		h.want("1")
		e.want(t, `1 answered "1" 0 false`)
		for i := range 3 {
			h.say(fmt.Sprint("r", i), "/retry")
			h.want(fmt.Sprint(i + 2))
			if i == 1 {
				h.stop()
				h.start()
			}
		}
		h.deliver(errand("2", "watch", chat.RunOptions{Quiet: true, Model: "cheap"}))
		h.want()
		e.want(t, `2 nothing to say "NOTHING_TO_SAY" 0 false`)
		h.say("r4", "/retry")
		h.want("There is nothing to say.")
		e.want(t)
		if len(h.asks) > 0 {
			t.Errorf("another model was asked: %v", h.asks)
		}
	})
}

// What a scheduled job said is not said again once the job is removed.
func TestRetryOfRemovedJob(t *testing.T) {
	there := true
	h := &house{model: script(words("drink water"), words("drink more water"))}
	h.conf = func(c *agent.Config) {
		c.HasJob = func(_ context.Context, id string) bool { return there && id == "j" }
	}
	play(t, h, func(h *house) {
		h.deliver(errand("1", "remind me", chat.RunOptions{Job: "j"}))
		h.want("drink water")
		h.say("2", "/retry")
		h.want("drink more water")
		h.deliver(errand("3", "", chat.RunOptions{Job: "j", Tool: "none"}))
		synctest.Wait()
		there = false
		asked := len(h.asks)
		h.say("4", "/retry")
		synctest.Wait()
		if last := h.sent[len(h.sent)-1]; last != "The last answer came from a scheduled job that no longer exists." || len(h.asks) != asked {
			t.Errorf("said %q, asked %d times", last, len(h.asks)-asked)
		}
	})
}

// Nor is it said again if the last answer was itself asked for with /retry, also
// after a restart.
func TestRetryOfRetryOfRemovedJob(t *testing.T) {
	there := true
	h := &house{model: script(words("drink water"), words("drink more water"), words("drink even more"))}
	h.conf = func(c *agent.Config) {
		c.HasJob = func(_ context.Context, id string) bool { return there && id == "j" }
	}
	play(t, h, func(h *house) {
		h.deliver(errand("1", "remind me", chat.RunOptions{Job: "j"}))
		h.want("drink water")
		h.say("2", "/retry")
		h.want("drink more water")
		h.say("3", "/retry")
		h.want("drink even more")
		h.stop()
		h.start()
		there = false
		asked := len(h.asks)
		h.say("4", "/retry")
		synctest.Wait()
		if last := h.sent[len(h.sent)-1]; last != "The last answer came from a scheduled job that no longer exists." || len(h.asks) != asked {
			t.Errorf("said %q, asked %d times", last, len(h.asks)-asked)
		}
	})
}

// The result of a tool that answers is told once, and without what is meant for
// a model: also if it found nothing, read a picture, or spoke to the person itself.
func TestWhatToolsOfErrandsGive(t *testing.T) {
	e := &ear{}
	h := &house{conf: e.conf, tools: []tools.Tool{
		giving("search", tools.Hints{ReadOnly: true}, tools.Result{Text: "nothing found", Verdict: tools.Poor}),
		giving("picture", tools.Hints{ReadOnly: true}, tools.Result{Text: "a cat", Pictures: []string{"cat.png"}}),
		giving("message", tools.Hints{}, tools.Result{Text: "sent", Told: "stand up!"}),
	}}
	h.set = func(s *agent.Settings) { s.Rollback = true }
	play(t, h, func(h *house) {
		for id, want := range map[string]string{"search": "nothing found", "picture": "a cat", "message": ""} {
			h.deliver(errand(id, "", chat.RunOptions{Tool: id, Args: "{}"}))
			if want == "" {
				h.want()
			} else {
				h.want(want)
			}
			e.want(t, fmt.Sprintf("%s answered %q 0 false", id, want))
		}
	})
}

// A job whose model is gone from the config is answered by the one that there is.
func TestErrandOfModelThatIsGone(t *testing.T) {
	play(t, &house{model: script(words("done"))}, func(h *house) {
		h.deliver(errand("1", "go", chat.RunOptions{Model: "gone"}))
		h.want("done")
	})
}

// C-051: nobody is there who could approve of the call of an errand. It is
// refused after a while, and the clock is told.
func TestErrandThatNobodyApproves(t *testing.T) {
	e, never := &ear{}, &warden{after: 1000 * time.Hour}
	danger := tool("danger", func(context.Context) (string, error) {
		t.Error("it was called")
		return "", nil
	})
	danger.Dangerous = true
	h := &house{conf: e.conf, tools: []tools.Tool{danger}}
	never.guards(h)
	play(t, h, func(h *house) {
		h.deliver(errand("1", "", chat.RunOptions{Tool: "danger", Args: "{}"}))
		timetest.Sleep(25 * time.Hour)
		synctest.Wait()
		e.mu.Lock()
		defer e.mu.Unlock()
		if len(e.ends) != 1 || !strings.HasPrefix(e.ends[0], `1 failed "I could not do that with danger: nobody approved`) {
			t.Errorf("told of %q", e.ends)
		}
	})
}

// D-093: /stop ends the run of a job in a session of its own, too, where its
// answer would come; /new and other chats leave it alone.
func TestStopARun(t *testing.T) {
	e := &ear{}
	h := &house{conf: e.conf, model: func(ctx context.Context, _ llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		<-ctx.Done()
		return llm.Message{}, ctx.Err()
	}}
	play(t, h, func(h *house) {
		m := errand("1", "look", chat.RunOptions{Fresh: true, Quiet: true})
		m.In = "cron:j"
		h.deliver(m)
		timetest.Sleep(time.Second)
		elsewhere := message("s1", "/stop")
		elsewhere.At.Chat = "2"
		h.deliver(elsewhere)
		h.want("There is nothing to stop.")
		h.say("n", "/new")
		h.want("A new conversation. What is on your mind?")
		h.say("s2", "/stop")
		h.want("(Stopped.)")
		e.want(t, `1 stopped "(Stopped.)" 40 false`) // about as many as the limits count
	})
}

// People read who spoke when no person did.
func TestErrandInTranscript(t *testing.T) {
	play(t, &house{model: script(words("hi"))}, func(h *house) {
		h.deliver(errand("1", "remind me", chat.RunOptions{}))
		h.want("hi")
		for x, err := range h.pool.Sessions().Transcript(t.Context(), "test:1") {
			if err != nil || x.Kind == chat.Heard && x.Who != "a scheduled job" {
				t.Errorf("%+v, %v", x, err)
			}
		}
	})
}

// TestCrashOfErrands kills the process before and after each operation of the
// store that three errands make: one in the chat, one in a session of its own
// and one of a tool. Each is answered once, pays at most once, and the clock
// hears how it ended before its message is gone (P6, P7, P12). Each time it is
// run it looks at one operation in three.
func TestCrashOfErrands(t *testing.T) {
	for n, done := rand.IntN(3), false; !done; n += 3 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				b := &bureau{life: life{t: t, dir: storetest.TempDir(t), taken: map[string]bool{}}, paid: map[string]int{}}
				where := b.run(n)
				if done = where == ""; !done {
					b.run(1 << 40)
				}
				if b.check(t, where); t.Failed() {
					t.Logf("died %s", where)
				}
			})
		})
	}
}

// A bureau is what errands come to, over as many deaths as there are.
type bureau struct {
	life
	mu   sync.Mutex
	paid map[string]int // by message
}

// run has the errands done on a store that dies after so many operations, and
// returns where that was, or "".
func (b *bureau) run(life int) string {
	m := newMortal(b.t, b.dir, life)
	h := &house{t: b.t, store: m, conf: func(c *agent.Config) {
		c.Send = func(ctx context.Context, r chat.Reply) error {
			return m.Queue("outbox").Push(ctx, r.ID, []byte(r.Text))
		}
		c.Ended = func(ctx context.Context, e agent.End) error {
			_, err := m.Bucket("clock").Put(ctx, e.Message.ID, []byte(e.Outcome), store.Any)
			return err
		}
	}}
	pay := tool("pay", nil)
	pay.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.paid[c.Turn]++
		return tools.Result{Text: "paid"}, nil
	}
	h.tools = []tools.Tool{pay}
	h.model = func(_ context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		if last := r.Messages[len(r.Messages)-1]; last.Role == llm.ToolRole {
			return words(last.Text), nil
		}
		return calls(call(fmt.Sprint("c", len(r.Messages)), "pay")), nil
	}
	h.start()
	for i, e := range []chat.RunOptions{{}, {Fresh: true}, {Fresh: true, Quiet: true}, {Tool: "pay", Args: "{}"}} {
		errand := errand(fmt.Sprint(i), "pay", e)
		if e.Fresh {
			errand.In = "cron:j"
		}
		b.say(h, errand)
		synctest.Wait()
	}
	timetest.Sleep(time.Minute)
	synctest.Wait()
	h.stop()
	if err := m.Close(); err != nil {
		b.t.Error(err)
	}
	where, _ := m.where.Load().(string)
	return where
}

// check reads what it came to. A call that a death interrupted may not have been made.
func (b *bureau) check(t *testing.T, where string) {
	db := newMortal(t, b.dir, 1<<40)
	defer db.Close()
	inbox, _ := db.Queue("inbox").Len(t.Context())
	outbox, _ := db.Queue("outbox").Len(t.Context())
	if inbox != 0 || outbox != 4 {
		t.Errorf("%d wait, %d are answered", inbox, outbox)
	}
	for i := range 4 {
		how, _, err := db.Bucket("clock").Get(t.Context(), fmt.Sprint(i))
		broken := i == 3 && string(how) == "failed" // the tool was interrupted
		if n := b.paid[fmt.Sprint("test/cron/1/", i)]; err != nil || string(how) != "answered" && !broken || n > 1 || n == 0 && where == "" {
			t.Errorf("%d ended %q, %v, and paid %d times", i, how, err, n)
		}
	}
}

// D-097: what a job's subagents do, and the answer to what they report, comes of
// the job, so that it makes no jobs either; what a person's subagents do does not.
func TestOriginOfSubagents(t *testing.T) {
	for _, c := range []struct {
		m    chat.Message
		want string
	}{
		{errand("j/1", "go", chat.RunOptions{}), "[schedule schedule]"},
		{message("1", "go"), "[parent subagent]"},
	} {
		var origins collected[chat.Origin]
		look := tools.New("read_file", "Looks.", func(_ context.Context, c tools.Call, _ struct{}) (tools.Result, error) {
			origins.add(c.Origin)
			return tools.Result{Text: "seen"}, nil
		})
		h := &house{tools: []tools.Tool{look}}
		looking := func(r llm.Request) llm.Message {
			if lastOf(r).Role == llm.ToolRole {
				return words("done")
			}
			return calls(call("c", "read_file"))
		}
		h.model = byTask(func(r llm.Request) llm.Message {
			if last := lastOf(r); last.Role == llm.User && !strings.Contains(last.Text, "[Subagent") {
				return calls(with("s", "spawn", `{"task":"look around"}`))
			}
			return looking(r)
		}, looking)
		play(t, withSubagents(h), func(h *house) {
			h.deliver(c.m)
			timetest.Sleep(time.Minute)
			synctest.Wait()
			if got := fmt.Sprint(origins.values()); got != c.want {
				t.Errorf("came of %s\nwant %s", got, c.want)
			}
		})
	}
}
