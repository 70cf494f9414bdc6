package agent_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
)

// paid answers every request with text, for 100 tokens and half of the money.
func paid(text string) func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
	return func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		return cost(words(text)), nil
	}
}

func cost(m llm.Message) llm.Message {
	m.Model, m.Usage = "main", llm.Usage{In: 80, Out: 20}
	return m
}

// limited is a house with limits.
func limited(l budget.Limits) *house {
	return &house{model: paid("ok"), set: func(s *agent.Settings) {
		s.Limits = l
		s.Price = func(_ string, u llm.Usage) (float64, bool) { return float64(u.In+u.Out) / 200, true }
	}}
}

const raisable = " It resets at midnight (UTC). An owner can raise it with /raise "

// TestLimits is R-S15: of each kind there is so much a day for each person,
// session and job, and for all together. What is over it costs nothing, and who
// asks is told so, each time.
func TestLimits(t *testing.T) {
	kinds := map[string]budget.Limit{"answers": {Turns: 2}, "requests": {Requests: 2}, "tokens": {Tokens: 200}, "money": {Money: 1}}
	shares := map[string]string{"answers": "2 of 2 answers", "requests": "2 of 2 requests", "tokens": "200 of 200 tokens", "money": "cost 1 of 1 (in the currency of your prices)"}
	for _, c := range []struct {
		whose, name string
		limits      func(budget.Limit) budget.Limits
		say         func(id string) chat.Message
		other       func(id string) chat.Message // whom it does not concern; nil: there is nobody
	}{
		{"you", "owner", func(l budget.Limit) budget.Limits { return budget.Limits{Person: l} }, own("1"), guest("7")},
		{"you", "test:8", func(l budget.Limit) budget.Limits { return budget.Limits{Person: l} }, guest("8"), guest("9")},
		{"this group", "test:-1", func(l budget.Limit) budget.Limits { return budget.Limits{Person: l} }, group, own("1")},
		{"this conversation", "session", func(l budget.Limit) budget.Limits { return budget.Limits{Session: l} }, own("1"), own("2")},
		{"this job", "job j", func(l budget.Limit) budget.Limits { return budget.Limits{Job: l} }, run, own("1")},
		{"everybody together", "all", func(l budget.Limit) budget.Limits { return budget.Limits{Everybody: l} }, own("1"), nil},
	} {
		for kind, limit := range kinds {
			t.Run(c.name+" "+kind, func(t *testing.T) {
				play(t, limited(c.limits(limit)), func(h *house) {
					h.deliver(c.say("1"))
					h.want("ok")
					h.deliver(c.say("2"))
					low := "ok\n\n100 % of today's limit for " + c.whose + " is used: " + shares[kind] + "."
					if c.other == nil {
						low = "ok" // owners are told
					}
					h.want(low)
					h.deliver(c.say("3"))
					over := "Today's limit for " + c.whose + " is reached: " + shares[kind] + "." + raisable + c.name + "."
					h.want(over)
					h.deliver(c.say("4"))
					if c.name == "job j" {
						h.want()
					} else {
						h.want(over)
					}
					if len(h.asks) != 2 {
						t.Errorf("%d requests were made", len(h.asks))
					}
					if c.other != nil {
						h.deliver(c.other("5"))
						h.want("ok")
					}
				})
			})
		}
	}
}

func own(where string) func(id string) chat.Message {
	return func(id string) chat.Message {
		m := message(id, "hi")
		m.At.Chat = where
		return m
	}
}

func guest(who string) func(id string) chat.Message {
	return func(id string) chat.Message {
		m := message(id, "hi")
		m.At.Chat, m.From = who, chat.Sender{ID: who, Role: chat.User}
		return m
	}
}

func group(id string) chat.Message {
	m := message(id, "hi")
	m.At.Chat, m.Group = "-1", true
	return m
}

func run(id string) chat.Message { return errand(id, "hi", chat.RunOptions{}) }

// R-S15: who stops each answer spends all the same.
func TestLimitOfTheStopped(t *testing.T) {
	h := limited(budget.Limits{Person: budget.Limit{Tokens: 300}})
	h.model = func(ctx context.Context, _ llm.Request, stream func(llm.Delta)) (llm.Message, error) {
		stream(llm.Delta{Text: "Well"})
		<-ctx.Done()
		return llm.Message{}, ctx.Err()
	}
	play(t, h, func(h *house) {
		h.say("1", strings.Repeat("long ", 400))
		synctest.Wait()
		h.say("2", "/stop")
		h.want("Well\n\n(Stopped.)")
		h.say("3", "again")
		synctest.Wait()
		h.mu.Lock()
		defer h.mu.Unlock()
		if len(h.sent) != 1 || !strings.Contains(h.sent[0], "Today's limit for you is reached") {
			t.Errorf("said %q", h.sent)
		}
	})
}

// TestLimitInTheMiddle: a turn that reaches a limit ends with what was said and
// done, and one message. The conversation goes on from there.
func TestLimitInTheMiddle(t *testing.T) {
	used := 0
	h := limited(budget.Limits{Person: budget.Limit{Requests: 1}})
	h.tools = []tools.Tool{tool("look", func(context.Context) (string, error) { used++; return "a cat", nil })}
	look := calls(call("1", "look"))
	look.Text = "Let me look."
	h.model = script(look, words("It was a cat."))
	play(t, h, func(h *house) {
		h.say("1", "what is it?")
		h.want("Let me look.\n\nToday's limit for you is reached: 1 of 1 requests." + raisable + "owner.")
		h.say("2", "/raise")
		h.want("Raised, until midnight (UTC):\n- you: 1 of 2 requests")
		h.say("3", "and?")
		h.want("It was a cat.\n\n100 % of today's limit for you is used: 2 of 2 requests.")
		if got := spoken(h.asks[1], 4); used != 1 || got != "assistant Let me look. | tool a cat | assistant (The limit of the day ended this answer.) | user and?" {
			t.Errorf("used %d times; the model was shown %q", used, got)
		}
		if got := fmt.Sprint(h.rerun()); got != "[cannot be re-run: it was not answered: over the limit same]" {
			t.Errorf("run again: %s", got)
		}
	})
}

// TestLimitOfRollback: a round that is taken back (E-019) costs as any, and its turn is one.
func TestLimitOfRollback(t *testing.T) {
	var ran, rolled collected[string]
	h := &house{tools: []tools.Tool{search(&ran)}}
	h.set = func(s *agent.Settings) {
		rolling(&rolled)(s)
		s.Limits.Person = budget.Limit{Turns: 10, Requests: 10}
	}
	h.model = script(calls(asksFor("bad")), calls(asksFor("bad")), words("nothing there"))
	play(t, h, func(h *house) {
		h.say("1", "look")
		h.want("nothing there")
		h.say("2", "/usage")
		if got := h.sent[0]; !strings.HasSuffix(got, "- you: 1 of 10 answers, 3 of 10 requests") || len(rolled.values()) != 2 {
			t.Errorf("/usage says %q; rolled back %q", got, rolled.values())
		}
	})
}

// TestLimitMidnight: a day ends at midnight of the house, and a restart does not end it (R-S15).
func TestLimitMidnight(t *testing.T) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	h := limited(budget.Limits{Person: budget.Limit{Turns: 3}})
	h.conf = func(c *agent.Config) { c.Zone = zone }
	over := "Today's limit for you is reached: 3 of 3 answers. It resets at midnight (EST). An owner can raise it with /raise owner."
	play(t, h, func(h *house) { // it is 19:00 there
		for n := range 3 {
			h.say(fmt.Sprint(n), "hi")
			synctest.Wait()
		}
		h.stop()
		h.start()
		h.sent = nil
		h.say("4", "hi")
		h.want(over)
		timetest.Sleep(5*time.Hour - time.Second)
		h.say("5", "hi")
		h.want(over)
		timetest.Sleep(time.Second)
		h.say("6", "hi")
		h.want("ok")
		h.say("7", "/usage")
		h.want("Tokens used in this conversation:\nmain: 320 in (0 from cache), 80 out, cost 2.0000\n\nToday, until midnight (EST):\n- you: 1 of 3 answers")
	})
}

// TestLedgerCrash: what was spent is on disk two seconds later, and a crash
// forgets no more than that (R-S15).
func TestLedgerCrash(t *testing.T) {
	play(t, limited(budget.Limits{Everybody: budget.Limit{Tokens: 1000}}), func(h *house) {
		after := func(want string) { // as another house finds it
			t.Helper()
			synctest.Wait()
			var got string
			s := agent.Settings{Limits: budget.Limits{Everybody: budget.Limit{Tokens: 1000}}}
			p := agent.New(agent.Config{Store: h.store, Log: slog.New(slog.DiscardHandler), Send: func(_ context.Context, r chat.Reply) error {
				got = r.Text
				return nil
			}}, s)
			if err := p.Deliver(t.Context(), message("u", "/usage")); err != nil || !strings.HasSuffix(got, want) {
				t.Errorf("/usage says %q, %v", got, err)
			}
		}
		h.say("1", "hi")
		timetest.Sleep(time.Second)
		h.say("2", "hi")
		timetest.Sleep(time.Second - 1)
		after("everybody together: 0 of 1,000 tokens")
		timetest.Sleep(time.Nanosecond)
		after("everybody together: 200 of 1,000 tokens")
		h.say("3", "hi")
		after("everybody together: 200 of 1,000 tokens")
		timetest.Sleep(2 * time.Second)
		after("everybody together: 300 of 1,000 tokens")
		h.say("4", "hi")
		synctest.Wait()
		h.stop()
		after("everybody together: 400 of 1,000 tokens")
		h.start()
		h.model = func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
			time.Sleep(10 * time.Second)
			return cost(words("ok")), nil
		}
		h.say("5", "hi") // that it was asked is written long before it answers
		timetest.Sleep(12 * time.Second)
		after("everybody together: 500 of 1,000 tokens")
	})
}

// TestLedgerDamaged is P21: a damaged page counts from zero, and that is logged.
func TestLedgerDamaged(t *testing.T) {
	var log strings.Builder
	h := limited(budget.Limits{Person: budget.Limit{Turns: 5}})
	h.conf = func(c *agent.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }
	h.store = mem.New()
	put(t, h.store, "2000-01-01/person/owner", "garbage")
	play(t, h, func(h *house) {
		h.say("1", "hi")
		h.want("ok")
		h.say("2", "/usage")
		h.want("Tokens used in this conversation:\nmain: 80 in (0 from cache), 20 out, cost 0.5000\n\nToday, until midnight (UTC):\n- you: 1 of 5 answers")
	})
	if n := strings.Count(log.String(), `msg="damaged value forgotten" what="what was spent" key=2000-01-01/person/owner`); n != 1 {
		t.Errorf("the log says it %d times: %s", n, log.String())
	}
}

// TestLedgerUnreadable is R-S15: what was spent does not count from zero because
// it cannot be read for a moment.
func TestLedgerUnreadable(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		h := limited(budget.Limits{Person: budget.Limit{Turns: 5}})
		h.t, h.store = t, moody{mem.New(), "ledger", time.Now().Add(2 * time.Second)}
		put(t, h.store, "2000-01-01/person/owner", `{"spent":[4,0,0,0,0]}`)
		h.start()
		h.say("1", "hi")
		timetest.Sleep(10 * time.Second)
		h.want("ok\n\n100 % of today's limit for you is used: 5 of 5 answers.")
		h.stop()
	})
}

func put(t *testing.T, s store.Store, key, val string) {
	t.Helper()
	if _, err := s.Bucket("ledger").Put(t.Context(), key, []byte(val), store.Any); err != nil {
		t.Fatal(err)
	}
}

// TestLedgerForgets: pages are kept for 40 days.
func TestLedgerForgets(t *testing.T) {
	h := limited(budget.Limits{})
	h.store = mem.New()
	for _, day := range []string{"1999-10-01", "1999-11-21", "1999-11-22", "1999-12-31"} {
		put(t, h.store, day+"/all", "{}")
	}
	play(t, h, func(h *house) {
		h.say("1", "hi")
		timetest.Sleep(time.Minute)
		var keys []string
		for key, err := range h.store.Bucket("ledger").Keys(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key)
		}
		want := []string{"1999-11-22/all", "1999-12-31/all", "2000-01-01/all", "2000-01-01/person/owner", "2000-01-01/session/test:1", "conversation/test:1", "imported"}
		if !slices.Equal(keys, want) {
			t.Errorf("kept are %q", keys)
		}
		h.want("ok")
	})
}

// TestLimitCrowd: of many at once no more turns begin than there may be (R-S15).
func TestLimitCrowd(t *testing.T) {
	h := limited(budget.Limits{Everybody: budget.Limit{Turns: 20}, Person: budget.Limit{Tokens: 1e6}})
	play(t, h, func(h *house) {
		var all sync.WaitGroup
		for n := range 50 {
			all.Go(func() { h.deliver(own(fmt.Sprint("chat", n))("1")) })
		}
		all.Wait()
		synctest.Wait()
		answers := map[string]int{}
		for _, text := range h.sent {
			answers[text]++
		}
		over := "Today's limit for everybody together is reached: 20 of 20 answers." + raisable + "all."
		if answers["ok"] != 20 || answers[over] != 30 || len(h.asks) != 20 {
			t.Errorf("answers %v, %d requests", answers, len(h.asks))
		}
		h.sent = nil
		h.say("u", "/usage")
		h.want("Tokens used in this conversation: none yet.\n\nToday, until midnight (UTC):\n- you: 2,000 of 1,000,000 tokens\n- everybody together: 20 of 20 answers")
	})
}

// TestLimitWarns is R-S15: at 80 % one line, once a day for each kind; of what
// runs out for everybody owners are told, until they are.
func TestLimitWarns(t *testing.T) {
	var mu sync.Mutex
	var warned []string
	fails := 2
	h := limited(budget.Limits{Person: budget.Limit{Turns: 5, Tokens: 500}, Everybody: budget.Limit{Money: 2.5}})
	h.conf = func(c *agent.Config) {
		c.Warn = func(_ context.Context, id, text string) error {
			mu.Lock()
			defer mu.Unlock()
			if fails--; fails >= 0 {
				return errors.New("disk full")
			}
			warned = append(warned, id+" "+text)
			return nil
		}
	}
	play(t, h, func(h *house) {
		for n := range 3 {
			h.say(fmt.Sprint(n), "hi")
			h.want("ok")
		}
		quiet := errand("q", "hi", chat.RunOptions{Quiet: true})
		h.deliver(quiet)
		h.want("ok")
		h.say("4", "hi")
		h.want("ok\n\n100 % of today's limit for you is used: 5 of 5 answers.\n100 % of today's limit for you is used: 500 of 500 tokens.")
		timetest.Sleep(time.Minute)
		mu.Lock()
		if got := fmt.Sprintf("%q", warned); got != `["limit/2000-01-01/all/money/0 100 % of today's limit for everybody together is used: cost 2.5 of 2.5 (in the currency of your prices)."]` {
			t.Errorf("owners were told %s", got)
		}
		mu.Unlock()
		timetest.Sleep(24 * time.Hour)
		for n := range 4 {
			h.say(fmt.Sprint("again", n), "hi")
			synctest.Wait()
		}
		h.want("ok", "ok", "ok", "ok\n\n80 % of today's limit for you is used: 4 of 5 answers.\n80 % of today's limit for you is used: 400 of 500 tokens.")
		timetest.Sleep(time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if len(warned) != 2 || !strings.HasPrefix(warned[1], "limit/2000-01-02/all/money/0 80 % of") {
			t.Errorf("owners were told %q", warned)
		}
	})
}

// TestLimitOfErrands: a job tells of its limit once a day, a quiet one too (R-S15);
// who runs it hears it each time. A tool that answers costs a turn and no tokens.
func TestLimitOfErrands(t *testing.T) {
	e := &ear{}
	h := limited(budget.Limits{Job: budget.Limit{Turns: 1}, Person: budget.Limit{Tokens: 100}})
	h.conf = e.conf
	h.tools = []tools.Tool{tool("look", func(context.Context) (string, error) { return "a cat", nil })}
	over := "Today's limit for this job is reached: 1 of 1 answers." + raisable + "job j."
	play(t, h, func(h *house) {
		h.deliver(errand("1", "", chat.RunOptions{Tool: "look", Args: "{}"}))
		h.want("a cat\n\n100 % of today's limit for this job is used: 1 of 1 answers.")
		h.deliver(errand("2", "", chat.RunOptions{Tool: "look", Args: "{}"}))
		h.want(over)
		h.deliver(errand("3", "hi", chat.RunOptions{}))
		h.want()
		h.deliver(errand("4", "hi", chat.RunOptions{Quiet: true}))
		h.want()
		if len(h.asks) != 0 {
			t.Errorf("%d requests were made", len(h.asks))
		}
		e.want(t, `1 answered "a cat\n\n100 % of today's limit for this job is used: 1 of 1 answers." 0 false`,
			fmt.Sprintf("2 over the limit %q 0 false", over), `3 over the limit "" 0 false`, `4 over the limit "" 0 false`)
		h.say("r", "/raise job j")
		h.want("Raised, until midnight (UTC):\n- job j: 1 of 2 answers")
		look := errand("1b", "", chat.RunOptions{Tool: "look", Args: "{}"})
		h.deliver(look)
		h.want("a cat\n\n100 % of today's limit for this job is used: 2 of 2 answers.")
		look.ID = "2b"
		h.deliver(look)
		h.want("Today's limit for this job is reached: 2 of 2 answers." + raisable + "job j.")
		timetest.Sleep(24 * time.Hour)
		h.say("5", "hi")
		h.want("ok\n\n100 % of today's limit for you is used: 100 of 100 tokens.")
		h.deliver(errand("6", "", chat.RunOptions{Tool: "look", Args: "{}"})) // it takes no tokens
		h.want("a cat\n\n100 % of today's limit for this job is used: 1 of 1 answers.")
		for n, want := range [][]string{{"Today's limit for you is reached: 100 of 100 tokens." + raisable + "owner."}, {}} {
			h.deliver(errand(fmt.Sprint("quiet", n), "hi", chat.RunOptions{Quiet: true}))
			h.want(want...)
		}
	})
}

// TestRaise: owners raise a limit for today by as much as it is, once with each
// message, and what they raised outlives a restart (R-S15).
func TestRaise(t *testing.T) {
	h := limited(budget.Limits{Person: budget.Limit{Turns: 1, Tokens: 1000}, Session: budget.Limit{Turns: 10}, Job: budget.Limit{Turns: 1}, Everybody: budget.Limit{Turns: 10}})
	play(t, h, func(h *house) {
		h.deliver(guest("8")("1"))
		h.want("ok\n\n100 % of today's limit for you is used: 1 of 1 answers.")
		raise := guest("8")("2")
		raise.Text = "/raise"
		h.deliver(raise)
		h.want("Only owners may raise limits.")
		says := func(id, text, want string) {
			t.Helper()
			h.say(id, text)
			h.want(want)
		}
		none := "Nothing is raised: there is no such limit, or it is far away. Write /raise and whose: a person such as telegram:42, session, job and its ID, or all."
		says("3", "/raise", none)
		says("3b", "/raise console", none) // that is nobody's name, and it must not seem so
		says("4", "/raise test:8", "Raised, until midnight (UTC):\n- test:8: 1 of 2 answers, 100 of 2,000 tokens")
		h.say("4", "/raise test:8") // the network brings it again: it was answered, and nothing more is raised
		h.want()
		says("5", "/raise session", "Raised, until midnight (UTC):\n- this conversation: 0 of 20 answers")
		says("6", "/raise job j", "Raised, until midnight (UTC):\n- job j: 0 of 2 answers")
		says("7", "/raise all", "Raised, until midnight (UTC):\n- everybody together: 1 of 20 answers")
		says("8", "/raise all", "Raised, until midnight (UTC):\n- everybody together: 1 of 30 answers")
		h.deliver(guest("8")("9"))
		h.want("ok\n\n100 % of today's limit for you is used: 2 of 2 answers.")
		says("10", "hi", "ok\n\n100 % of today's limit for you is used: 1 of 1 answers.")
		says("11", "/raise", "Raised, until midnight (UTC):\n- you: 1 of 2 answers, 100 of 2,000 tokens")
		h.stop()
		h.start()
		h.say("11", "/raise") // again, after a restart
		h.want()
		says("12", "/usage", "Tokens used in this conversation:\nmain: 80 in (0 from cache), 20 out, cost 0.5000\n\nToday, until midnight (UTC):\n"+
			"- you: 1 of 2 answers, 100 of 2,000 tokens\n- this conversation: 1 of 20 answers\n- everybody together: 3 of 30 answers")
		usage := guest("8")("13")
		usage.Text = "/usage"
		h.deliver(usage)
		h.want("Tokens used in this conversation:\nmain: 160 in (0 from cache), 40 out, cost 1.0000\n\nToday, until midnight (UTC):\n" +
			"- you: 2 of 2 answers, 200 of 2,000 tokens\n- this conversation: 2 of 10 answers")
	})
}

// TestLimitOutsideTurns: what is asked of models outside turns counts, too (R-S15).
func TestLimitOutsideTurns(t *testing.T) {
	h := limited(budget.Limits{Person: budget.Limit{Requests: 2}, Session: budget.Limit{Tokens: 150}, Job: budget.Limit{Money: 1}})
	play(t, h, func(h *house) {
		ctx, u := h.t.Context(), llm.Usage{In: 80, Out: 20}
		book := h.pool.Budget()
		allow := func(who budget.Spender, want string) {
			t.Helper()
			if got := fmt.Sprint(book.Allow(ctx, who)); got != want {
				t.Errorf("%+v: %s", who, got)
			}
		}
		all := budget.Spender{Person: "owner", Session: "test:1", Job: "j"}
		person, session, job := budget.Spender{Person: "owner"}, budget.Spender{Session: "test:1"}, budget.Spender{Job: "j", Run: "j/1"}
		allow(all, "<nil>")
		book.Charge(ctx, person, 1, "main", u)
		book.Charge(ctx, session, 1, "main", u)
		book.Charge(ctx, job, 1, "main", u)
		allow(all, "<nil>")
		book.Charge(ctx, budget.Spender{Person: "owner", Session: "test:1", Job: "j", Run: "j/1"}, 1, "main", u)
		if tokens, money := book.RunUsage(ctx, "j/1"); tokens != 200 || money != 1 {
			t.Errorf("the run took %d tokens and %v", tokens, money)
		}
		allow(person, "Today's limit for you is reached: 2 of 2 requests."+raisable+"owner.")
		allow(session, "Today's limit for this conversation is reached: 200 of 150 tokens."+raisable+"session.")
		allow(job, "Today's limit for this job is reached: cost 1 of 1 (in the currency of your prices)."+raisable+"job j.")
		allow(budget.Spender{Person: "test:8", Session: "test:8", Job: "k"}, "<nil>")
	})
}

// TestLimitOfSubagents is R-S15: what subagents spend is their person's, and that of
// the session or the job for which they work; so many may be begun in a day. A
// subagent that reaches a limit says so to its parent.
func TestLimitOfSubagents(t *testing.T) {
	h := limited(budget.Limits{Person: budget.Limit{Tokens: 10_000}, Session: budget.Limit{Tokens: 10_000, Subagents: 2}, Job: budget.Limit{Turns: 1}})
	play(t, h, func(h *house) {
		spawn := func(id string, parent chat.SessionID) error {
			m := message("1", "")
			_, err := h.pool.Subagents().Spawn(h.t.Context(), tools.Subagent{ID: id, Call: id, Task: "do " + id, Parent: parent, At: m.At, From: m.From, Only: []string{}})
			return err
		}
		for _, id := range []string{"aaaaaaaa", "bbbbbbbb"} {
			if err := errors.Join(spawn(id, "test:1"), spawn(id, "test:1")); err != nil { // twice is as once
				t.Fatal(err)
			}
		}
		if got := fmt.Sprint(spawn("cccccccc", "test:1")); got != "Today's limit for this conversation is reached: 2 of 2 background tasks."+raisable+"session." {
			t.Errorf("a third subagent: %s", got)
		}
		h.want()
		h.say("u", "/usage")
		h.want("Tokens used in this conversation:\nmain: 160 in (0 from cache), 40 out, cost 1.0000\n\nToday, until midnight (UTC):\n- you: 200 of 10,000 tokens\n- this conversation: 200 of 10,000 tokens, 2 of 2 background tasks")
		for n, want := range []string{"ok", "Today's limit for this job is reached: 1 of 1 answers." + raisable + "job j."} {
			id := fmt.Sprint("cccccccc", n)
			if err := spawn(id, "cron:j"); err != nil {
				t.Fatal(err)
			}
			if c, err := h.pool.Subagents().Await(h.t.Context(), id); err != nil || c.Result != want {
				t.Errorf("a subagent of a job says %q, %v", c.Result, err)
			}
		}
	})
}

// TestLedgerOnFullDisk is P19: while the ledger cannot be written turns go on,
// and what they spent is written once there is room.
func TestLedgerOnFullDisk(t *testing.T) {
	var full atomic.Bool
	h := limited(budget.Limits{})
	h.store = fullLedger{mem.New(), &full}
	play(t, h, func(h *house) {
		page := func() string {
			val, _, _ := h.store.Bucket("ledger").Get(h.t.Context(), "2000-01-01/person/owner")
			return string(val)
		}
		synctest.Wait()
		full.Store(true)
		for n := range 3 {
			h.say(fmt.Sprint(n), "hi")
			h.want("ok")
			timetest.Sleep(10 * time.Second)
		}
		if got := page(); got != "" {
			t.Errorf("written: %s", got)
		}
		full.Store(false)
		timetest.Sleep(time.Minute)
		if got := page(); got != `{"spent":[3,3,300,1.5,0,0],"warned":[false,false,false,false,false,false],"models":{"main":{"turns":3,"usage":{"in":240,"out":60},"cost":1.5}}}` {
			t.Errorf("written: %s", got)
		}
	})
}

// A fullLedger is a store that has no room for the ledger for a while.
type fullLedger struct {
	store.Store
	full *atomic.Bool
}

func (s fullLedger) Bucket(name string) store.Bucket {
	if name != "ledger" {
		return s.Store.Bucket(name)
	}
	return fullBucket{s.Store.Bucket(name), s.full}
}

type fullBucket struct {
	store.Bucket
	full *atomic.Bool
}

func (b fullBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if b.full.Load() {
		return 0, store.ErrFull
	}
	return b.Bucket.Put(ctx, key, val, rev)
}
