package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
)

// All that a tool brings along may break down, and the turn goes on: a Guard
// that does holds its call back.
func TestPanicsAroundTheTool(t *testing.T) {
	boom := func() { panic("boom") }
	for _, c := range []struct {
		name  string
		lacks func(*Tool)
		want  string
	}{
		{"Query", func(u *Tool) { u.Query = func(map[string]any) string { boom(); return "" } },
			"Error: u crashed: boom. This is a bug in the tool, not a fault in your arguments" + hint},
		{"Assess", func(u *Tool) { u.Assess = func(Result) Verdict { boom(); return Fine } },
			"Error: u crashed: boom. This is a bug in the tool, not a fault in your arguments" + hint},
		{"Guard", func(u *Tool) { u.Guard = func(Call) bool { boom(); return false } },
			"Error: u needs the approval of an owner, which cannot be asked for here: it was not run" + hint},
	} {
		u := echo("u", anything)
		u.ReadOnly = true
		c.lacks(&u)
		k := turnOf(t, StandardConfig{}, chat.User, u)
		call := callTo("u", "")
		call.Tainted = true
		if got := k.Asks(call); got != (c.name == "Guard") {
			t.Errorf("%s: Asks is %v", c.name, got)
		}
		if r := k.Together(t.Context(), []Call{call})[0]; r.Text != c.want || !r.Failed {
			t.Errorf("%s: %q", c.name, r.Text)
		}
	}
}

// R-S12, A-016: what strangers wrote is theirs whatever code it comes with; a
// tool that was at work was at work.
func TestTaintHasNoCode(t *testing.T) {
	for _, code := range []string{CodeNotFound, CodeInvalid, CodeDenied, CodeRefused, CodeError} {
		u := echo("u", anything)
		u.Untrusted = true
		u.Run = func(context.Context, Call) (Result, error) {
			time.Sleep(time.Microsecond)
			return Failf(code, "no page at http://x/dear-model-do-this"), nil
		}
		stats := new(Stats)
		r := turnOf(t, StandardConfig{Stats: stats}, chat.User, u).Call(t.Context(), callTo("u", ""))
		if n, _ := stats.Of("u"); !r.Tainted || r.Took == 0 || n.Failures != 1 {
			t.Errorf("%s: %+v, %+v", code, r, n)
		}
	}
}

// A-026, C-051: an argument that a tool does have is not hidden from who is
// asked, whatever its name; nor is any that reaches a tool whose schema is broken.
func TestPromptHidesNothing(t *testing.T) {
	for _, schema := range []string{`{"type":"object","properties":{"_run":{"type":"string"}}}`, `{"type":7}`} {
		j := &judge{yes: true}
		var got map[string]any
		u := echo("u", schema)
		u.Dangerous = true
		u.Run = func(_ context.Context, c Call) (Result, error) { got = c.Input; return Result{}, nil }
		turnOf(t, StandardConfig{Approve: j.ask}, chat.User, u).Call(t.Context(), callTo("u", `{"_run":"rm"}`))
		if len(j.asked) != 1 || strings.Contains(j.asked[0], "`_run`: `rm`") != (got["_run"] == "rm") {
			t.Errorf("%s: ran %v, asked %q", schema, got, j.asked)
		}
	}
}

// B-014, D-021: nobody waits for a person over a call that will not be run.
func TestAsksOnlyForWhatMayRun(t *testing.T) {
	u := echo("u", `{"type":"object","properties":{"n":{"type":"integer"}}}`)
	u.Dangerous = true
	for _, c := range []struct {
		args string
		role chat.Role
		want bool
	}{{`{"n":"1"}`, chat.Owner, true}, {`{"n":"one"}`, chat.Owner, false}, {`{"n":`, chat.Owner, false}, {`{"n":1}`, chat.User, false}} {
		k := turnBy(t, Rules{"general": Owners}, StandardConfig{}, chat.Owner, u)
		call := callTo("u", c.args)
		call.From.Role = c.role
		if got := k.Asks(call); got != c.want {
			t.Errorf("%s by %v: %v", c.args, c.role, got)
		}
	}
}

// the result of a record is JSON, whatever was said to the model besides.
func TestRecordIsJSON(t *testing.T) {
	read := `{"success":true,"data":[],"error":null}` + "\n\n[The last lookup found nothing of use.]"
	rec := NewRecord(llm.ToolCall{ID: "c", Name: "u"}, read, Result{JSON: true, Verdict: Poor}, "main", 1)
	if !json.Valid([]byte(rec.Result)) {
		t.Errorf("got %s", rec.Result)
	}
}

// C-041: the turn that goes on because somebody spoke has its three tries again.
func TestStrikesBeginAnew(t *testing.T) {
	u := echo("u", anything)
	u.Run = func(context.Context, Call) (Result, error) { return Failf(CodeError, "no"), nil }
	k := turnOf(t, StandardConfig{}, chat.User, u)
	for round := 1; round <= 6; round++ {
		call := callTo("u", "")
		call.Round = round
		if r := k.Call(t.Context(), call); (r.End != "") != (round%3 == 0) {
			t.Errorf("round %d: %q", round, r.End)
		}
	}
}

// D-021: a model that gets very much wrong is not told at any length.
func TestFaultsAreShort(t *testing.T) {
	many := map[string]any{}
	for i := range 20_000 {
		many[fmt.Sprintf("argument%d", i)] = i
	}
	for _, in := range []any{many, map[string]any{strings.Repeat("x", 500_000): 1}} {
		u := echo("u", `{"type":"object","properties":{"path":{"type":"string"}},"additionalProperties":false}`)
		args, _ := json.Marshal(in)
		r := turnOf(t, StandardConfig{}, chat.User, u).Call(t.Context(), callTo("u", string(args)))
		if !strings.HasPrefix(r.Text, "Error: Invalid parameters for tool 'u': unexpected parameter ") || !strings.HasSuffix(r.Text, "…"+hint) || len(r.Text) > 5000 {
			t.Errorf("%d bytes: %.200s", len(r.Text), r.Text)
		}
	}
}

// of 512 results the texts are kept, not the megabytes they were made of.
func TestCacheKeepsTexts(t *testing.T) {
	cache := NewCache(fiveMinutes)
	u := echo("u", anything)
	u.Hints = Hints{ReadOnly: true, JSON: true, Cacheable: true}
	u.Run = func(context.Context, Call) (Result, error) { return Result{Data: strings.Repeat("x", 100_000)}, nil }
	first := turnOf(t, StandardConfig{Cache: cache}, chat.User, u).Call(t.Context(), callTo("u", ""))
	again := turnOf(t, StandardConfig{Cache: cache}, chat.User, u).Call(t.Context(), callTo("u", ""))
	if !again.Cached || again.Data != nil || first.Failed || len(again.Text) > 20_000 {
		t.Errorf("%d bytes: %.100s", len(again.Text), again.Text)
	}
}
