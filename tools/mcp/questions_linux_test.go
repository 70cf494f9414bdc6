package mcp_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store/mem"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/elicit"
	"parley/tools/mcp/mcptest"
)

// A person answers each question by the choice or the words that answer returns for its text.
type person struct {
	answer func(text string) string
	delay  time.Duration

	mu    sync.Mutex
	asked []string
}

func (p *person) ask(_ context.Context, r chat.Reply) (elicit.Answer, error) {
	time.Sleep(p.delay)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, r.Text)
	words := p.answer(r.Text)
	return elicit.Answer{Index: slices.Index(r.Ask.Choices, words), Text: words}, nil
}

// inputs returns a change of a config: people are asked as Parley asks them.
func (p *person) inputs(c *mcp.Config) {
	c.Inputs = elicit.New(elicit.Config{
		Log:       slog.New(slog.DiscardHandler),
		Store:     mem.New(),
		Words:     elicit.Words{Elicit: &texts.English().Tools.Elicit, Form: &texts.English().Channels.Form},
		Ask:       p.ask,
		Withdraw:  func(context.Context, string) error { return nil },
		Send:      func(context.Context, chat.Reply) error { return nil },
		Patience:  func() time.Duration { return time.Minute },
		ShowsForm: func(chat.Address, int) bool { return false },
	})
}

func always(words string) *person { return &person{answer: func(string) string { return words }} }

func newAsking(t *testing.T, p *person, earlier bool, change ...func(*mcp.Server)) (*rig, *mcptest.Asking) {
	asking := mcptest.NewAsking(t, earlier)
	s := server(func(s *mcp.Server) { s.URL = asking.URL })
	for _, f := range change {
		f(s)
	}
	return newRig(t, map[string]*mcp.Server{"shop": s}, p.inputs), asking
}

var (
	emptyForm  = map[string]any{"type": "object"}
	numberForm = map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "integer"}}}
)

// A server of either kind of protocol gets what the person answers, and the model its result.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprint("earlier ", earlier), func(t *testing.T) {
			t.Parallel()
			p := always("7")
			r, asking := newAsking(t, p, earlier)
			ask := map[string]any{"message": "How many?", "schema": numberForm}
			got := r.call("mcp_shop_ask", ask)
			if got.Failed || got.Text != `answered: {"action":"accept","content":{"n":7}}` || asking.Asked.Load() != 1 {
				t.Errorf("%+v", got)
			}
			if isLatest := r.States()[0].Protocol == "2026-07-28"; isLatest == earlier {
				t.Errorf("the protocol is %s", r.States()[0].Protocol)
			}
			p.answer = func(string) string { return "Decline" }
			ask["url"] = "https://pay.example/"
			if got := r.call("mcp_shop_ask", ask); got.Failed || got.Text != `answered: {"action":"decline"}` {
				t.Errorf("%+v", got)
			}
		})
	}
}

// While a person is asked, a call of the latest protocol version is none that runs: it waits, and it is not
// made to run again if it was being answered when Parley was killed.
func TestCallWaits(t *testing.T) {
	t.Parallel()
	p := always("Agree")
	r, asking := newAsking(t, p, false)
	kit := r.kit()
	call := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "mcp_shop_ask", Args: `{"schema":{"type":"object"},"times":2}`}, Scope: r.scope}
	known, _ := kit.Tool(call.Name)
	for round := range 3 {
		if waits := known.Waits(call); waits != (round > 0) || known.CanRun(call) != waits || kit.Asks(call) != waits {
			t.Errorf("round %d: the call waits: %v", round, waits)
		}
		got := kit.Call(t.Context(), call)
		if wantsAnswer := round < 2; (got.Code == tools.CodeWaiting) != wantsAnswer || got.Failed {
			t.Errorf("round %d: %+v", round, got)
		}
		if len(p.asked) != round || asking.Done.Load() != int64(round) {
			t.Errorf("round %d: asked %d, done %d", round, len(p.asked), asking.Done.Load())
		}
	}
	if known.Waits(call) || known.CanRun(call) {
		t.Error("the call waits after its end")
	}
}

// R-S22: a server asks ten times in a call at most.
func TestTooManyQuestions(t *testing.T) {
	t.Parallel()
	p := always("Agree")
	r, _ := newAsking(t, p, false)
	got := r.call("mcp_shop_ask", map[string]any{"schema": emptyForm, "times": 30})
	if len(p.asked) != 10 || !got.Failed || !strings.Contains(got.Text, "asked more than 10 times") {
		t.Errorf("asked %d times: %+v", len(p.asked), got)
	}
}

// The time limit of a call waits while a person is asked.
func TestPersonsTakeTime(t *testing.T) {
	t.Parallel()
	for _, earlier := range []bool{false, true} {
		t.Run(fmt.Sprint("earlier ", earlier), func(t *testing.T) {
			t.Parallel()
			p := always("Agree")
			p.delay = 2500 * time.Millisecond
			r, _ := newAsking(t, p, earlier, func(s *mcp.Server) { s.ToolTimeout = 2 * time.Second })
			if got := r.call("mcp_shop_ask", map[string]any{"schema": emptyForm}); got.Failed || !strings.Contains(got.Text, "accept") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// R-S22: a question while no call is open is declined, and so are all beyond ten of a call, without asking
// anybody.
func TestFloodOfQuestions(t *testing.T) {
	t.Parallel()
	p := always("Agree")
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "asks")}, p.inputs)
	if got := r.call("mcp_bad_ok", nil); got.Text != "accepted 10, refused 990" {
		t.Errorf("%+v", got)
	}
	if len(p.asked) != 10 {
		t.Errorf("the person was asked %d times", len(p.asked))
	}
}

// The reference server asks for a value of each kind.
func TestQuestionOfEverything(t *testing.T) {
	t.Parallel()
	index := mcptest.Package(t, "server-everything/dist/index.js")
	p := &person{answer: func(text string) string {
		if strings.Contains(text, "This would be sent") {
			return "Send"
		}
		for value, answer := range map[string]string{
			"`String`": "Ada", "`Boolean`": "Yes", "email format": "ada@example.com", "date format": "1815-12-10",
			"Number in": "2,5", "`Titled Multiple": "Salmon, 3", "`Titled Single": "Wonder Woman",
		} {
			if strings.Contains(text, value) {
				return answer
			}
		}
		return "Skip"
	}}
	r := newRig(t, map[string]*mcp.Server{"all": command("node", index)}, p.inputs)
	got := r.call("mcp_all_trigger-elicitation-request", nil)
	for _, want := range []string{
		"- Name: Ada", "- Agreed to terms: true", "- Email: ada@example.com", "- Birthdate: 1815-12-10", "- Favorite Integer: 42",
		"- Favorite Number: 2.5", `"hero-3"`, `"fish-2"`, `"fish-3"`, `"pet-1"`,
	} {
		if !strings.Contains(got.Text, want) {
			t.Errorf("no %s in %s", want, got.Text)
		}
	}
	if strings.Contains(got.Text, "Homepage") || len(p.asked) != 14 {
		t.Errorf("asked %d times: %s", len(p.asked), got.Text)
	}
	p.answer = func(string) string { return "cancel" }
	if got := r.call("mcp_all_trigger-elicitation-request", nil); !strings.Contains(got.Text, "cancel") {
		t.Errorf("%+v", got)
	}
}
