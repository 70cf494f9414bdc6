package agent_test

import (
	"context"
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
	"parley/tools"
)

// errand is what a job on the clock delivers.
func errand(id, text string, e chat.Errand) chat.Message {
	m := message(id, text)
	m.Account, m.Origin, m.Errand = "cron", chat.FromSchedule, &e
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
	e, reply := &ear{}, chat.Reply{}
	h := &house{tools: []tools.Tool{slow}, model: script(calls(call("1", "slow")), words("done"), words("reminded"))}
	h.conf = func(c *agent.Config) {
		e.conf(c)
		send := c.Send
		c.Send = func(ctx context.Context, r chat.Reply) error { reply = r; return send(ctx, r) }
	}
	play(t, h, func(h *house) {
		h.say("1", "work")
		time.Sleep(time.Second)
		h.deliver(errand("j/1", "remind me", chat.Errand{}))
		time.Sleep(time.Minute)
		h.want("done", "reminded")
		e.want(t, `j/1 answered "reminded" 0 false`)
		if reply.Quote != "" || len(reply.Also) > 0 {
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
			h.deliver(errand(fmt.Sprint(i), "watch", chat.Errand{Quiet: true}))
			synctest.Wait()
		}
		h.want("It has changed!")
		h.deliver(errand("4", "fail", chat.Errand{Quiet: true}))
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
	e, n := &ear{}, 0
	h := &house{conf: e.conf, model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		n++
		return words(fmt.Sprint("result ", n)), nil
	}}
	play(t, h, func(h *house) {
		h.say("p", "hello")
		h.want("result 1")
		for i := range 25 {
			m := errand(fmt.Sprint("r", i), "look", chat.Errand{Fresh: true})
			m.In = "cron:j"
			h.deliver(m)
			h.want(fmt.Sprint("result ", i+2))
			if got := len(h.asks[i+1].Messages); got != 1 {
				t.Fatalf("run %d was shown %d messages", i, got)
			}
		}
		said := 0
		for x, err := range h.pool.Transcript(t.Context(), "cron:j") {
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
		if u, err := h.pool.Usage(t.Context()); err != nil || len(u) != 0 {
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
	h := &house{conf: e.conf, tools: []tools.Tool{count}, model: func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		t.Error("a model was asked")
		return words(""), nil
	}}
	h.set = func(s *agent.Settings) {
		s.Models["cheap"] = agent.Model{Model: llm.ModelFunc(script(words("cheap words"))), Window: 8000}
	}
	play(t, h, func(h *house) {
		h.deliver(errand("1", "count", chat.Errand{Tool: "count", Args: `{"of":"apples"}`}))
		h.want("3 apples (schedule)")
		e.want(t, `1 answered "3 apples (schedule)" 0 true`)
		h.deliver(errand("2", "count", chat.Errand{Tool: "count", Args: `{}`}))
		synctest.Wait()
		if len(h.sent) != 1 || !strings.HasPrefix(h.sent[0], "Error: ") {
			t.Errorf("sent %q", h.sent)
		}
		h.sent = nil
		e.mu.Lock()
		if len(e.ends) != 1 || !strings.HasPrefix(e.ends[0], "2 failed ") {
			t.Errorf("told of %q", e.ends)
		}
		e.mu.Unlock()
		h.deliver(errand("3", "say", chat.Errand{Model: "cheap"}))
		h.want("cheap words")
	})
}

// What strangers wrote taints the turn of an errand that brings it (R-S12, R-S14).
func TestTaintedErrand(t *testing.T) {
	var tainted []bool
	look := tool("look", nil)
	look.Run = func(_ context.Context, c tools.Call) (tools.Result, error) {
		tainted = append(tainted, c.Tainted)
		return tools.Result{Text: "ok"}, nil
	}
	play(t, &house{tools: []tools.Tool{look}, model: script(calls(call("1", "look")), words("a"), calls(call("1", "look")), words("b"))}, func(h *house) {
		m := errand("1", "look", chat.Errand{})
		m.Tainted = true
		h.deliver(m)
		h.want("a")
		h.deliver(errand("2", "look", chat.Errand{}))
		h.want("b")
		if fmt.Sprint(tainted) != "[true false]" {
			t.Errorf("tainted: %v", tainted)
		}
	})
}
