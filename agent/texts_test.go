package agent_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/llm"
	"parley/texts/textstest"
	"parley/timetest"
	"parley/tools"
)

// TestAllFromCatalogue gives commands in a language of full-width letters, and
// lets answers fail: nobody is told a word that is not in the catalogue.
func TestAllFromCatalogue(t *testing.T) {
	limits := budget.Limits{Person: budget.Limit{Requests: 8}, Everybody: budget.Limit{Tokens: 1000}}
	h := &house{
		conf: func(c *agent.Config) {
			c.Texts = &textstest.Wide().Agent
			c.Report = nil
		},
		set:   func(s *agent.Settings) { s.Limits, s.Rounds = limits, 2 },
		tools: []tools.Tool{giving("lookup", tools.Hints{ReadOnly: true}, tools.Result{Text: "x", Failed: true})},
	}
	var mu sync.Mutex
	var steps []string // that remain of replies
	conf := h.conf
	h.conf = func(c *agent.Config) {
		conf(c)
		send := c.Send
		c.Send = func(ctx context.Context, r chat.Reply) error {
			mu.Lock()
			steps = append(steps, r.Steps)
			mu.Unlock()
			return send(ctx, r)
		}
	}
	h.model = func(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Message, error) {
		switch said := spoken(r, 1); {
		case strings.HasSuffix(said, "slowly"):
			<-ctx.Done()
			return llm.Message{}, ctx.Err()
		case strings.HasSuffix(said, "no key"):
			return llm.Message{}, &llm.Error{Kind: llm.Auth}
		case strings.HasSuffix(said, "away"):
			return llm.Message{}, &llm.Error{Kind: llm.Overloaded}
		case strings.HasSuffix(said, "look"):
			return calls(with("1", "lookup", `{"a":"x"}`)), nil
		case strings.HasSuffix(said, "nothing"):
			return llm.Message{Role: llm.Assistant, Finish: llm.Stopped}, nil
		}
		return words("…"), nil
	}
	play(t, h, func(h *house) {
		for i, origin := range []chat.Origin{chat.FromSchedule, chat.FromParent, chat.FromSubagent} {
			m := message(fmt.Sprint("origin", i), "hello")
			m.Origin = origin
			h.deliver(m)
			timetest.Sleep(time.Second)
		}
		h.say("what was said", "/search hello")
		timetest.Sleep(time.Second)
		for i, text := range []string{
			"look", "/help", "/start", "/new", "/retry", "/stop", "/undo", "/search", "/search unsaid", "/why", "/status", "/approvals", "/approvals revoke 7",
			"/agents", "/agents stop", "/agents stop x", "/verbose", "/verbose on", "/verbose off", "/verbose", "/model", "/model x", "/model other",
			"/tools", "/tools all", "/context", "/usage", "/raise", "/raise nobody", "/toolstats", "/nonsense",
			"slowly", "/status", "/stop", "no key", "nothing", "hello", "/search hello", "/usage", "away", "hello", "hello", "hello", "hello", "/raise all", "hello",
		} {
			h.say(fmt.Sprint(i), text)
			timetest.Sleep(time.Second)
		}
		m := message("guest", "/toolstats")
		m.From = chat.Sender{ID: "8", Role: chat.User}
		h.deliver(m)
		m.ID, m.Text = "guest2", "/raise all"
		h.deliver(m)
		old := message("old", "hello")
		old.Time = time.Now().Add(-48 * time.Hour)
		h.deliver(old)
		timetest.Sleep(time.Minute)
		synctest.Wait()
		if len(h.sent) < 30 {
			t.Errorf("only %d texts", len(h.sent))
		}
		mu.Lock()
		shown := strings.Join(steps, "")
		mu.Unlock()
		if !strings.Contains(shown, "lookup") {
			t.Errorf("no steps are shown: %q", shown)
		}
		for _, text := range append(h.sent, shown) {
			if rest := textstest.Foreign(text, data); rest != "" {
				t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
			}
		}
	})
}

// data is what commands answer that is in no language.
var data = regexp.MustCompile("`[^`]*`|/[a-z]+|\\b(main|other|lookup|general|UTC|look|s|x|owner|slowly|no key|nothing|hello|away|unsaid)\\b")
