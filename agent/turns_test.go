package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent/timeline"
	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// TestTurns: an owner reads what was said and done turn by turn: every call with what came of it, and when; that a call
// was not allowed is no failure; and what all of it used and cost.
func TestTurns(t *testing.T) {
	save := tool("save", func(context.Context) (string, error) { timetest.Sleep(2 * time.Second); return "saved", nil })
	fail := tool("mail", func(context.Context) (string, error) { return "", errors.New("no such server") })
	deny := giving("wipe", tools.Hints{}, tools.Result{Failed: true, Code: tools.CodeDenied, Text: "Error: Anna did not allow it. Do not try again."})
	var ran collected[string]
	h := &house{tools: []tools.Tool{save, fail, deny, search(&ran)}}
	h.auditing()
	used := func(m llm.Message, model string) llm.Message {
		m.Model, m.Usage = model, llm.Usage{In: 100, Out: 10}
		return m
	}
	look := calls(with("s", "web_search", `{"q":"bad words"}`))
	look.Text = "Let me look."
	h.model = script(
		used(look, "main"),
		used(calls(with("a", "save", `{}`), with("b", "mail", "{}"), with("c", "wipe", "{}")), "main"),
		used(words("**Saved**."), "unknown"),
		used(words("Hello."), "main"),
	)
	price := func(model string, u llm.Usage) (float64, bool) { return float64(u.In) / 1000, model == "main" }
	play(t, h, func(h *house) {
		h.say("1", "go")
		timetest.Sleep(3 * time.Second)
		h.want("**Saved**.")
		h.say("2", "/new")
		h.say("3", "hi")
		synctest.Wait()
		reader := timeline.Reader{Pool: h.pool, Texts: texts.English().Agent.Steps, Price: price}
		all, err := reader.Turns(t.Context(), "test:1")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, turn := range all {
			for _, p := range turn.Parts {
				line := strings.TrimSpace(fmt.Sprintf("%s %s", p.Entry.Kind, p.Entry.Text))
				if s := p.Step; s != nil {
					line = strings.TrimSpace(fmt.Sprintf("%s %s: %s %dms %v %s", s.Tool, p.Entry.Text, s.State, s.Took, p.Retried, s.Error))
					if s.Began.IsZero() || len(p.Receipt) != 16 || p.Result == "" {
						t.Errorf("of %s is known only %+v", s.Tool, p)
					}
				}
				got = append(got, line)
			}
			got = append(got, fmt.Sprintf("= %d %d %.2f %d %v", turn.Read, turn.Written, turn.Cost, turn.Unpriced, turn.Open))
		}
		want := []string{
			"heard go",
			"said Let me look.",
			`web_search {"q":"bad words"}: success 0ms true`,
			"save {}: success 2000ms false",
			"mail {}: error 0ms false no such server",
			"wipe {}: refused 0ms false Anna did not allow it",
			"said **Saved**.",
			"= 300 30 0.20 110 false",
			"began",
			"= 0 0 0.00 0 false",
			"heard hi",
			"said Hello.",
			"= 100 10 0.10 0 false",
		}
		if strings.Join(got, "\n") != strings.Join(want, "\n") {
			t.Errorf("the turns are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if none, err := reader.Turns(t.Context(), "test:nobody"); err != nil || none != nil {
			t.Errorf("where nothing was said: %v, %v", none, err)
		}
	})
}

// TestTurnsUnderWay: of a turn that goes on a call is running, and of one that was stopped it was interrupted.
func TestTurnsUnderWay(t *testing.T) {
	wait := tool("wait", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() })
	h := &house{tools: []tools.Tool{wait}}
	h.model = script(calls(call("a", "wait")))
	play(t, h, func(h *house) {
		state := func() (chat.StepState, bool) {
			t.Helper()
			reader := timeline.Reader{Pool: h.pool, Price: func(string, llm.Usage) (float64, bool) { return 0, false }}
			all, err := reader.Turns(t.Context(), "test:1")
			if err != nil || len(all) == 0 {
				t.Fatal(all, err)
			}
			for _, p := range all[0].Parts {
				if p.Step != nil {
					return p.Step.State, all[0].Open
				}
			}
			return "", all[0].Open
		}
		h.say("1", "go")
		synctest.Wait()
		if s, open := state(); s != chat.Running || !open {
			t.Errorf("while it runs the call is %q, open %v", s, open)
		}
		h.say("2", "/stop")
		synctest.Wait()
		if s, open := state(); s != chat.Interrupted || open {
			t.Errorf("after /stop the call is %q, open %v", s, open)
		}
	})
}

// TestTurnsSuspended: the messages that wait for a model stand with their answers once it is back, and before the
// conversation that follows theirs if it is over.
func TestTurnsSuspended(t *testing.T) {
	var up atomic.Bool
	play(t, &house{model: down(up.Load)}, func(h *house) {
		want := func(want string) {
			t.Helper()
			reader := timeline.Reader{Pool: h.pool, Price: func(string, llm.Usage) (float64, bool) { return 0, true }}
			all, err := reader.Turns(t.Context(), "test:1")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, turn := range all {
				line := fmt.Sprint("open ", turn.Open)
				for _, p := range turn.Parts {
					line += strings.TrimRight(fmt.Sprintf(", %s %s", p.Entry.Kind, p.Entry.Text), " ")
				}
				got = append(got, line)
			}
			if strings.Join(got, "\n") != want {
				t.Errorf("the turns are\n%s\nwant\n%s", strings.Join(got, "\n"), want)
			}
		}
		h.say("1", "one")
		timetest.Sleep(time.Second)
		h.say("2", "two")
		timetest.Sleep(time.Second)
		h.want(later, later)
		want("open true, heard one\nopen true, heard two")
		up.Store(true)
		timetest.Sleep(time.Hour)
		h.want(back+"answer to user one", back+"answer to user two")
		answered := "open false, heard one, said answer to user one\nopen false, heard two, said answer to user two"
		want(answered)
		up.Store(false)
		h.say("3", "three")
		timetest.Sleep(time.Second)
		h.say("4", "/new")
		timetest.Sleep(time.Second)
		up.Store(true)
		h.say("5", "five")
		timetest.Sleep(time.Hour)
		want(answered + "\nopen false, heard three\nopen false, began\nopen false, heard five, said answer to user five")
	})
}
