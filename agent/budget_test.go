package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
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
)

// spentOf returns what the budget tells of usage, as JSON.
func (h *house) spentOf(t *testing.T) string {
	t.Helper()
	all, err := h.pool.Budget().Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.Marshal(all)
	return string(b)
}

// TestUsage: tokens by day, person and model, and of the conversation under way.
func TestUsage(t *testing.T) {
	h := &house{model: echo}
	timetest.Test(t, func(t *testing.T) {
		h.t = t
		h.start()
		timetest.Sleep(23*time.Hour + 30*time.Minute)
		for i := range 6 {
			h.deliver(at(fmt.Sprint(i%2), fmt.Sprint(i), "hi"))
			synctest.Wait()
			timetest.Sleep(10 * time.Minute)
		}
		one := `{"day":"2000-01-02","who":"owner","model":"main","turns":3,"usage":{"in":30,"out":3},"unpriced":33}`
		want := "[" + one + "," + strings.Replace(one, "02", "01", 1) + "]"
		if got := h.spentOf(t); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		h.deliver(guest("8")("7"))
		synctest.Wait()
		if got := h.spentOf(t); !strings.Contains(got, `"who":"test:8","model":"main","turns":1`) {
			t.Errorf("got %s", got)
		}
		h.deliver(at("1", "/new", "/new"))
		h.deliver(at("1", "again", "hi"))
		synctest.Wait()
		h.sent = nil
		h.deliver(at("1", "u1", "/usage"))
		h.want("Tokens used in this conversation:\nmain: 10 in (0 from cache), 1 out")
		if got := h.spentOf(t); !strings.Contains(got, `{"day":"2000-01-02","who":"owner","model":"main","turns":4,"usage":{"in":40`) {
			t.Errorf("got %s", got)
		}
		h.stop()
		h.start()
		h.deliver(at("1", "u2", "/usage"))
		h.want("Tokens used in this conversation:\nmain: 10 in (0 from cache), 1 out")
		h.stop()
	})
}

// A blindStore cannot read one of its logs.
type blindStore struct {
	store.Store
	log string
}

func (s blindStore) Log(name string) store.Log {
	if name == s.log {
		return blindLog{s.Store.Log(name)}
	}
	return s.Store.Log(name)
}

type blindLog struct{ store.Log }

func (blindLog) Since(context.Context, uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) { yield(store.Record{}, errBusy) }
}

// TestUnreadableUsageDelaysNobody is P21: when the log of one conversation cannot
// be read at the first start with a budget, its earlier usage is missing, and
// everybody else is answered and counted.
func TestUnreadableUsageDelaysNobody(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		h := &house{t: t, model: echo, store: mem.New()}
		h.start()
		for _, who := range []string{"1", "2"} {
			h.deliver(at(who, who, "hi"))
			synctest.Wait()
		}
		h.want("You said hi", "You said hi")
		h.stop()
		ledger := h.store.Bucket("ledger")
		for key, err := range ledger.Keys(t.Context(), "") {
			if err == nil {
				err = ledger.Delete(t.Context(), key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		h.store = blindStore{h.store, "session/test:1"}
		h.start()
		h.deliver(at("2", "3", "hi again"))
		synctest.Wait()
		h.deliver(at("2", "4", "/usage"))
		synctest.Wait()
		h.want("You said hi again", "Tokens used in this conversation:\nmain: 20 in (0 from cache), 2 out")
		h.stop()
	})
}

// TestUsageFromLogs: what was used before the budget counted by model is read from
// the logs, once.
func TestUsageFromLogs(t *testing.T) {
	h := &house{model: echo}
	timetest.Test(t, func(t *testing.T) {
		h.t, h.store = t, mem.New()
		h.start()
		h.deliver(guest("8")("1"))
		synctest.Wait()
		h.deliver(at("1", "2", "hi"))
		synctest.Wait()
		h.deliver(at("1", "3", "/new"))
		timetest.Sleep(24 * time.Hour)
		h.deliver(at("1", "4", "hi"))
		h.want("You said hi", "You said hi", "A new conversation. What is on your mind?", "You said hi")
		want := h.spentOf(t)
		h.stop()
		bucket := h.store.Bucket("ledger")
		for key, err := range bucket.Keys(t.Context(), "") {
			if err == nil {
				err = bucket.Delete(t.Context(), key)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			h.start()
			synctest.Wait()
			if got := h.spentOf(t); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			h.say("u", "/usage")
			h.stop()
		}
		h.want("Tokens used in this conversation:\nmain: 10 in (0 from cache), 1 out")
		h.start()
		h.deliver(at("1", "5", "hi"))
		synctest.Wait()
		h.say("v", "/usage")
		h.want("You said hi", "Tokens used in this conversation:\nmain: 20 in (0 from cache), 2 out")
		if got := h.spentOf(t); !strings.Contains(got, `{"day":"2000-01-02","who":"owner","model":"main","turns":2,"usage":{"in":20,"out":2}`) {
			t.Errorf("got %s", got)
		}
		h.deliver(at("1", "6", "/new"))
		synctest.Wait()
		h.say("w", "/usage")
		h.want("A new conversation. What is on your mind?", "Tokens used in this conversation: none yet.")
		h.stop()
	})
}

// bill adds up what is asked of models.
type bill struct {
	mu       sync.Mutex
	requests int
	tokens   int
	cost     float64
}

func (b *bill) add(model string, u llm.Usage) {
	b.mu.Lock()
	defer b.mu.Unlock()
	cost, _ := priceOf(model, u)
	b.requests++
	b.tokens += u.In + u.Out
	b.cost += cost
}

func priceOf(model string, u llm.Usage) (float64, bool) {
	return float64(u.In+u.Out) / map[string]float64{"main": 256, "other": 1024}[model], true
}

// billedShelf is an Archive whose summaries cost.
type billedShelf struct {
	*shelf
	bill *bill
}

func (s billedShelf) Summarise(ctx context.Context, m llm.Model, earlier, said string) (string, llm.Usage, error) {
	text, used, err := s.shelf.Summarise(ctx, m, earlier, said)
	s.bill.add("main", used)
	return text, used, err
}

// TestOneBook: the limits of the day, /usage, the owner's page and the history of
// jobs tell the same sums of a day with turns, summaries, subagents, a job and a
// dream, on two models.
func TestOneBook(t *testing.T) {
	var total, ofRun bill
	var ofHistory struct { // what the history of the job was told, by several sessions at once
		sync.Mutex
		run    string
		tokens int
		cost   float64
	}
	ear := &ear{}
	archive := billedShelf{&shelf{sum: echoing}, &total}
	generate := byTask(func(r llm.Request) llm.Message {
		last := lastOf(r)
		if strings.HasPrefix(last.Text, "w") || strings.Contains(last.Text, "\nw") {
			return words("ok")
		}
		return spawning(r)
	}, func(llm.Request) llm.Message { return words("slowly looked") })
	h := withSubagents(&house{model: generate})
	set := h.set
	h.set = func(s *agent.Settings) {
		set(s)
		for _, name := range []string{"main", "other"} {
			model := s.Models[name].Model
			priced := func(ctx context.Context, r llm.Request, stream func(llm.Delta)) (llm.Message, error) {
				m, err := model.Generate(ctx, r, stream)
				m.Model, m.Usage = name, llm.Usage{In: 1000, Out: 20}
				for _, said := range r.Messages {
					m.Usage.In += len(said.Text) / 4
				}
				total.add(name, m.Usage)
				if name == "other" {
					ofRun.add(name, m.Usage)
				}
				return m, err
			}
			s.Models[name] = agent.Model{Model: llm.ModelFunc(priced), Window: 6000, MaxTokens: 1000}
		}
		s.Price = priceOf
		most := budget.Limit{Turns: 1e6, Requests: 1e6, Tokens: 1e6, Money: 1e6}
		s.Limits = budget.Limits{Person: most, Session: most, Job: most, Everybody: most}
	}
	h.conf = func(c *agent.Config) {
		ear.conf(c)
		c.Archive = archive
		c.RunUsage = func(_ context.Context, run string, tokens int, cost float64) error {
			ofHistory.Lock()
			defer ofHistory.Unlock()
			ofHistory.run = run
			ofHistory.tokens = max(ofHistory.tokens, tokens)
			ofHistory.cost = max(ofHistory.cost, cost)
			return nil
		}
	}
	play(t, h, func(h *house) {
		for i := range 24 {
			h.say(fmt.Sprint("m", i), long(i))
			timetest.Sleep(time.Minute)
		}
		if len(archive.asked) == 0 {
			t.Error("nothing was summed up")
		}
		h.say("s", "look around")
		timetest.Sleep(10 * time.Minute)
		run := errand("j/1", "look around", chat.RunOptions{Fresh: true, Model: "other"})
		run.In = "cron:j"
		h.deliver(run)
		timetest.Sleep(10 * time.Minute)
		if _, err := h.pool.Digest(h.t.Context(), "dream", "dream/1", time.Minute); err != nil {
			h.t.Fatal(err)
		}
		dreamTokens, _ := h.pool.Budget().RunUsage(h.t.Context(), "dream/1")

		book, day := h.pool.Budget(), func(s string) string { _, s, _ = strings.Cut(s, ": "); return s }
		spent, err := book.Usage(h.t.Context())
		if err != nil {
			h.t.Fatal(err)
		}
		turns, tokens, cost := 0, 0, 0.0
		models := map[string]int{}
		for _, s := range spent {
			turns += s.Turns
			tokens += s.Usage.In + s.Usage.Out
			cost += s.Cost
			models[s.Model] += s.Usage.In + s.Usage.Out
		}
		if tokens != total.tokens || cost != total.cost || len(models) != 2 {
			t.Errorf("the page tells of %d tokens for %v, want %d for %v; models: %v", tokens, cost, total.tokens, total.cost, models)
		}
		n := budget.Number
		sums := func(turns, requests, tokens int, cost float64) string {
			return fmt.Sprintf("%s of 1,000,000 answers, %s of 1,000,000 requests, %s of 1,000,000 tokens, cost %s of 1,000,000 (in the currency of your prices)",
				n(float64(turns)), n(float64(requests)), n(float64(tokens)), n(cost))
		}
		want := sums(turns, total.requests, tokens, cost)
		for _, line := range strings.Split(book.Standings(h.t.Context(), budget.Spender{Person: chat.TheOwner}, true), "\n")[1:] {
			if day(line) != want {
				t.Errorf("limits: %s, want %s", line, want)
			}
		}

		runTokens, runCost := book.RunUsage(h.t.Context(), "j/1")
		history := fmt.Sprint(ofHistory.run, " ", ofHistory.tokens, " ", ofHistory.cost)
		if want := fmt.Sprint("j/1 ", ofRun.tokens, " ", ofRun.cost); history != want || fmt.Sprint("j/1 ", runTokens, " ", runCost) != want {
			t.Errorf("the history of the job tells %s, and the book %d, %v; want %s", history, runTokens, runCost, want)
		}
		job := strings.Split(book.Standings(h.t.Context(), budget.Spender{Job: "j"}, false), "\n")[1]
		if want := sums(3, ofRun.requests, ofRun.tokens, ofRun.cost); day(job) != want {
			t.Errorf("the job: %s, want %s", job, want)
		}
		dream := strings.Split(book.Standings(h.t.Context(), budget.Spender{Job: "dream"}, false), "\n")[1]
		if !strings.Contains(dream, fmt.Sprintf(" %s of 1,000,000 tokens", n(float64(dreamTokens)))) || dreamTokens == 0 {
			t.Errorf("the dream took %d tokens; %s", dreamTokens, dream)
		}

		h.sent = nil
		h.say("u", "/usage")
		synctest.Wait()
		here := 0
		for model, m := range book.Conversation(h.t.Context(), "test:1") {
			here += m.Usage.In + m.Usage.Out
			if line := fmt.Sprintf("%s: %s in (0 from cache), %s out, cost %.4f\n", model, n(float64(m.Usage.In)), n(float64(m.Usage.Out)), m.Cost); !strings.Contains(h.sent[0], line) {
				t.Errorf("/usage says %s, without %s", h.sent[0], line)
			}
		}
		if here+runTokens != tokens || !strings.Contains(h.sent[0], fmt.Sprintf("- this conversation: 27 of 1,000,000 answers, %d of 1,000,000 requests, %s of", total.requests-ofRun.requests, n(float64(here)))) {
			t.Errorf("the conversation took %d tokens, the run %d, all %d; /usage says %s", here, runTokens, tokens, h.sent[0])
		}
	})
}
