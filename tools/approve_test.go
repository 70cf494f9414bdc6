package tools

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"pgregory.net/rapid"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/texts/textstest"
	"parley/timetest"
)

// A judge is a person who is asked.
type judge struct {
	yes   bool
	err   error
	takes time.Duration
	asked []string
}

func (j *judge) ask(ctx context.Context, _ Call, prompt string) (bool, string, error) {
	j.asked = append(j.asked, prompt)
	select {
	case <-time.After(j.takes):
		return j.yes, "telegram:7", j.err
	case <-ctx.Done():
		return false, "", ctx.Err()
	}
}

// C-051, R-S12: which calls are asked for, and that those who ask run alone.
func TestAsks(t *testing.T) {
	away := func(c Call) bool { return c.Input["to"] == "away" }
	for _, c := range []struct {
		name    string
		rules   Rules
		hints   Hints
		guard   func(Call) bool
		args    string
		tainted bool
		twin    string
		want    bool
	}{
		{"C-051 dangerous", nil, Hints{Dangerous: true}, nil, ``, false, "", true},
		{"not dangerous", nil, Hints{}, nil, ``, true, "", false},
		{"rule", Rules{"web": Ask}, Hints{Category: "web", ReadOnly: true}, nil, ``, false, "", true},
		{"rule of others", Rules{"web": Ask}, Hints{Category: "files", ReadOnly: true}, nil, ``, false, "", false},
		{"rule general", Rules{"general": Ask}, Hints{ReadOnly: true}, nil, ``, false, "", true},
		{"R-S12 guarded", nil, Hints{}, away, `{"to":"away"}`, true, "", true},
		{"R-S12 not held back", nil, Hints{}, away, `{"to":"here"}`, true, "", false},
		{"R-S12 nothing strange", nil, Hints{}, away, `{"to":"away"}`, false, "", false},
		{"R-S12 of no owner", nil, Hints{}, away, `{"to":"away"}`, false, "", true},
		{"R-S12 of no owner, not held back", nil, Hints{}, away, `{"to":"here"}`, false, "", false},
		{"R-S12 by an alias", nil, Hints{}, away, `{"chat":"away"}`, true, "", true},
		{"A-080 not to be run", nil, Hints{Dangerous: true}, nil, ``, false, "first", false},
		{"A-080 maybe to be run", Rules{"web": Ask}, Hints{Category: "web", ReadOnly: true}, nil, ``, false, "first", true},
		{"waits", nil, Hints{Timeout: -1}, nil, ``, false, "", true},
	} {
		j := &judge{yes: true}
		var ran atomic.Int64
		u := counting("u", c.hints, &ran)
		u.Guard, u.Aliases = c.guard, map[string]string{"chat": "to"}
		k := turnBy(t, c.rules, StandardConfig{Approve: j.ask}, chat.User, u)
		call := callTo("u", c.args)
		call.Tainted, call.Twin = c.tainted, c.twin
		if !strings.Contains(c.name, "of no owner") {
			call.From.Role = chat.Owner
		}
		if got := k.Asks(call); got != c.want {
			t.Errorf("%s: Asks is %v", c.name, got)
		}
		if got, want := len(k.Groups([]Call{call, call})), 2; c.want && got != want {
			t.Errorf("%s: %d groups", c.name, got)
		}
		r := k.Call(t.Context(), call)
		if asked := len(j.asked) == 1; asked != (c.want && !u.Waits(Call{})) || r.Failed || r.Skipped != (c.name == "A-080 not to be run") {
			t.Errorf("%s: asked %q, %+v", c.name, j.asked, r)
		}
	}
	k := turnBy(t, Rules{"general": Ask}, StandardConfig{Approve: (&judge{err: errors.New("asked")}).ask}, chat.User, echo("a", anything))
	if r := k.Call(t.Context(), callTo("nothing", "")); k.Asks(callTo("nothing", "")) || r.Code != CodeNotFound {
		t.Errorf("for a tool that is not there: %+v", r)
	}
	if r := k.Call(t.Context(), callTo("a", "[1]")); r.Code != CodeInvalid {
		t.Errorf("for arguments that are none: %+v", r)
	}
}

// C-051: what comes of the question.
func TestApprove(t *testing.T) {
	const patience = 10 * time.Minute
	stop := errors.New("stopped")
	for _, c := range []struct {
		name  string
		judge *judge
		end   error         // of the turn, after a minute
		want  Result        // "" if it was run
		took  time.Duration // until there was a result
	}{
		{"yes", &judge{yes: true, takes: time.Minute}, nil, Result{Text: "run 1", By: "telegram:7"}, time.Minute},
		{"no", &judge{takes: time.Minute}, nil, Result{Code: CodeRefused, Text: "the person who was asked refused this call of dig: it was not run. " +
			"Do not try to get the same done by other means; go on without it, or ask them what they want instead."}, time.Minute},
		{"nobody", &judge{yes: true, takes: time.Hour}, nil, Result{Code: CodeDenied, Text: "nobody approved dig within 10m0s: it was not run"}, patience},
		{"no way to ask", nil, nil, Result{Code: CodeDenied, Text: "dig needs the approval of an owner, which cannot be asked for here: it was not run"}, 0},
		{"yes, it seems", &judge{yes: true, err: errors.New("garbled")}, nil, Result{Code: CodeError, Text: "ask for the approval of dig: garbled"}, 0},
		{"cannot ask", &judge{err: errors.New("offline")}, nil, Result{Code: CodeError, Text: "ask for the approval of dig: offline"}, 0},
		{"closing", &judge{takes: time.Hour}, ErrClosing, Result{Code: CodeCancelled, Text: "cancelled: the gateway is shutting down"}, time.Minute},
		{"stop", &judge{takes: time.Hour}, context.Canceled, Result{Code: CodeCancelled, Text: "cancelled by the user"}, time.Minute},
		{"yes and stop", &judge{yes: true, takes: time.Minute}, stop, Result{Code: CodeCancelled, Text: "cancelled: stopped"}, time.Minute},
	} {
		timetest.Test(t, func(t *testing.T) {
			var events []string
			dig := echo("dig", anything)
			dig.Dangerous = true
			dig.Run = func(context.Context, Call) (Result, error) {
				events = append(events, "run")
				return Result{Text: "run 1"}, nil
			}
			cfg := StandardConfig{Patience: patience}
			if c.judge != nil {
				cfg.Approve = func(ctx context.Context, call Call, prompt string) (bool, string, error) {
					events = append(events, "ask")
					yes, by, err := c.judge.ask(ctx, call, prompt)
					if c.end != nil {
						<-ctx.Done()
					}
					return yes, by, err
				}
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			if c.end != nil {
				time.AfterFunc(time.Minute, func() { cancel(c.end) })
			}
			call := callTo("dig", "")
			call.Begin = func(context.Context) error { events = append(events, "begin"); return nil }
			start := time.Now()
			r := turnOf(t, cfg, chat.User, dig).Call(ctx, call)
			if took := time.Since(start); took != c.took {
				t.Errorf("%s: took %v", c.name, took)
			}
			text, want := r.Text, []string{"ask", "begin", "run"}
			if c.want.Code == CodeRefused && strings.HasSuffix(text, hint) {
				t.Errorf("%s: the model is told to try again: %s", c.name, text)
			}
			if c.want.Code != "" {
				text = strings.TrimSuffix(strings.TrimPrefix(r.Text, prefix), hint)
				want = want[:1]
			}
			if c.judge == nil {
				want = nil
			}
			if text != c.want.Text || r.Code != c.want.Code || r.Failed != (r.Code != "") || r.By != c.want.By || !slices.Equal(events, want) {
				t.Errorf("%s: %+v after %v", c.name, r, events)
			}
		})
	}
}

// An error of ask at the end of its turn goes on as it is; 15 minutes are the usual patience.
func TestApproveAlone(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dig := echo("dig", anything)
		dig.Dangerous = true
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(ErrClosing)
		gone := errors.New("gone")
		u := Approve(func(context.Context, Call, string) (bool, string, error) { return false, "", gone }, 0, texts.Approval{})(dig.parsed())
		if _, err := u.Run(ctx, Call{}); !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		u = Approve(func(context.Context, Call, string) (bool, string, error) { return true, "x", nil }, 0, texts.Approval{})(dig.parsed())
		if r, err := u.Run(ctx, Call{}); !errors.Is(err, ErrClosing) || r.Text != "" {
			t.Errorf("got %+v, %v", r, err)
		}
		start := time.Now()
		u = Approve((&judge{takes: time.Hour}).ask, 0, texts.Approval{})(dig.parsed())
		r, err := u.Run(t.Context(), Call{})
		if r.Text != "nobody approved dig within 15m0s: it was not run" || err != nil || time.Since(start) != DefaultPatience {
			t.Errorf("got %+v, %v after %v", r, err, time.Since(start))
		}
	})
}

// Nobody is asked to approve what cannot be done.
func TestPrecheck(t *testing.T) {
	dig := echo("dig", anything)
	dig.Dangerous = true
	dig.Precheck = func(c Call) (Result, error) {
		if c.Input["where"] == "rock" {
			return Result{}, errors.New("there is rock")
		}
		return Result{}, nil
	}
	asked := 0
	k := kitWith(t, StandardConfig{Approve: func(context.Context, Call, string) (bool, string, error) {
		asked++
		return true, "x", nil
	}}, dig)
	if r := k.Call(t.Context(), callTo("dig", `{"where":"rock"}`)); !strings.HasPrefix(r.Text, "Error: there is rock") || asked != 0 {
		t.Errorf("asked %d times: %+v", asked, r)
	}
	if r := k.Call(t.Context(), callTo("dig", `{"where":"sand"}`)); r.Failed || asked != 1 {
		t.Errorf("asked %d times: %+v", asked, r)
	}
}

// P6: Begin comes before every effect, asked for or not, and can forbid it.
func TestBegin(t *testing.T) {
	for _, dangerous := range []bool{false, true} {
		var ran atomic.Int64
		k := turnOf(t, StandardConfig{Approve: (&judge{yes: true}).ask}, chat.User, counting("u", Hints{Dangerous: dangerous}, &ran))
		call := callTo("u", "")
		call.Begin = func(context.Context) error {
			if ran.Load() > 0 {
				t.Error("begun too late")
			}
			return errors.New("the disk is full")
		}
		if r := k.Call(t.Context(), call); r.Text != "Error: the disk is full"+hint || ran.Load() != 0 {
			t.Errorf("%v: %+v", dangerous, r)
		}
		call.Begin = nil
		if r := k.Call(t.Context(), call); r.Failed || ran.Load() != 1 {
			t.Errorf("%v: %+v", dangerous, r)
		}
	}
}

// nobody is asked for a call that will not be run.
func TestAskedOnce(t *testing.T) {
	for _, yes := range []bool{true, false} {
		var ran atomic.Int64
		j := &judge{yes: yes}
		k := turnOf(t, StandardConfig{Approve: j.ask}, chat.User, counting("u", Hints{Dangerous: true}, &ran))
		results := batch(t, k, round("u", "u"))
		if len(j.asked) != 1 || (ran.Load() == 1) != yes || results["a"].Failed == yes || !results["b"].Skipped || results["b"].Text != wordsTwin {
			t.Errorf("yes %v: asked %d times, %+v", yes, len(j.asked), results)
		}
	}
}

// C-051: what the person reads is what will be run, and cannot look like anything else.
func TestPrompt(t *testing.T) {
	for _, c := range []struct {
		in      map[string]any
		tainted bool
		want    string
	}{
		{nil, false, "Use **Command** (`exec`)?"},
		{map[string]any{"timeout": int64(5), "command": "rm -rf build"}, false, "Use **Command** (`exec`)?\n\n- `command`: `rm -rf build`\n- `timeout`: `5`"},
		{map[string]any{"command": "ls"}, true, "Use **Command** (`exec`)?\n\n- `command`: `ls`\n\nUntrusted content is in this conversation and may have asked for this:\n- `web_fetch ˋxˋ`"},
		{map[string]any{"a": "x`y`\n\r\x00\x1b[2Kz\x7f\u202e\u2028\u200bé 日本🙂"}, false, "Use **Command** (`exec`)?\n\n- `a`: `xˋyˋ␊␍␀␛[2Kz\ufffd\ufffd\ufffd\ufffdé 日本🙂`"},
		{map[string]any{"a": "", "b": " \n", "c": nil, "d": []any{"x\n", 1.5}, "e": map[string]any{"f": "`<"}}, false,
			"Use **Command** (`exec`)?\n\n- `a`: `\"\"`\n- `b`: `\" \\n\"`\n- `c`: `null`\n- `d`: `[\"x\\n\",1.5]`\n- `e`: `{\"f\":\"ˋ<\"}`"},
		{map[string]any{"url": "https://user:hunter2@example.com/"}, false, "Use **Command** (`exec`)?\n\n- `url`: `https://…@example.com/`"},
		{map[string]any{"a\n- `b`": "c"}, false, "Use **Command** (`exec`)?\n\n- `a␊- ˋbˋ`: `c`"},
		{map[string]any{"a": strings.Repeat("ä", 300)}, false, "Use **Command** (`exec`)?\n\n- `a`: `" + strings.Repeat("ä", 300) + "`"},
		{map[string]any{"a": strings.Repeat("ä", 2002)}, false, "Use **Command** (`exec`)?\n\n- `a`: `" + lines(strings.Repeat("ä", 2000)) + "` … and 2 more characters, at the end `ää`"},
		{map[string]any{"a": "ls" + strings.Repeat(" ", 1990) + "; rm -rf /"}, false, "Use **Command** (`exec`)?\n\n- `a`: `" + lines("ls"+strings.Repeat(" ", 1990)+"; rm -rf") + "` … and 2 more characters, at the end ` /`"},
		{map[string]any{"a": "x" + strings.Repeat("y", 2500), "b": "z" + strings.Repeat("w", 299), "c": strings.Repeat("v", 400)}, false, "Use **Command** (`exec`)?\n\n" +
			"- `a`: `" + lines("x"+strings.Repeat("y", 1399)) + "` … and 1101 more characters, at the end `" + strings.Repeat("y", 280) + "`\n" +
			"- `b`: `z" + strings.Repeat("w", 299) + "`\n- `c`: `" + strings.Repeat("v", 300) + "` … and 100 more characters, at the end `" + strings.Repeat("v", 60) + "`"},
	} {
		if got := prompt(texts.English().Tools.Approval, Tool{ToolSpec: llm.ToolSpec{Name: "exec"}}, Call{Input: c.in, Scope: Scope{Tainted: c.tainted, Sources: []string{"web_fetch `x`"}}}); got != c.want {
			t.Errorf("got  %q\nwant %q", got, c.want)
		}
	}
}

// R-S26: where untrusted content came from is told without anybody's password.
func TestSourcesHideLogins(t *testing.T) {
	u := echo("web_fetch", anything)
	u.Untrusted = true
	secret := strings.Repeat("hunter2", 20) // longer than what is told of an address
	call := callTo("web_fetch", `{"url":"https://user:`+secret+`@example.com/a"}`)
	r := turnOf(t, StandardConfig{}, chat.Owner, u).Call(t.Context(), call)
	if want := []string{`web_fetch "https://…@example.com/a"`}; !slices.Equal(r.Sources, want) {
		t.Errorf("sources %q, want %q", r.Sources, want)
	}
}

// C-051: whatever a call says, each argument is one line within its backticks.
func TestPromptOfAny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.MapOf(rapid.String(), rapid.Map(rapid.String(), func(s string) any { return s })).Draw(t, "in")
		shown := len(in)
		got := strings.Split(prompt(texts.English().Tools.Approval, Tool{ToolSpec: llm.ToolSpec{Name: "exec"}}, Call{Input: in}), "\n")
		if got[0] != "Use **Command** (`exec`)?" || len(got) < 1+min(shown, 1)+shown {
			t.Fatalf("%q", got)
		}
		for _, line := range got[min(len(got), 2):] {
			if strings.HasPrefix(line, "`") && strings.HasSuffix(line, "`") && strings.Count(line, "`") == 2 {
				continue // of a long one
			}
			if !strings.HasPrefix(line, "- `") || strings.Count(line, "`")/2 != 2+strings.Count(line, "more characters, at the end") || strings.ContainsFunc(line, unicode.IsControl) {
				t.Errorf("%q", line)
			}
		}
	})
}

// A-026, D-011: the person is shown the arguments as they will be used.
func TestPromptIsOfMendedArguments(t *testing.T) {
	j := &judge{}
	u := echo("exec", `{"type":"object","properties":{"command":{"type":"string"},"timeout":{"type":"integer"}}}`)
	u.Dangerous, u.Aliases = true, map[string]string{"cmd": "command"}
	turnOf(t, StandardConfig{Approve: j.ask}, chat.User, u).Call(t.Context(), callTo("Exec", `{"cmd":"ls","timeout":"5","_model":"x"}`))
	if want := []string{"Use **Command** (`exec`)?\n\n- `command`: `ls`\n- `timeout`: `5`"}; !slices.Equal(j.asked, want) {
		t.Errorf("got %q", j.asked)
	}
}

// TestAllFromCatalogue: in a language of full-width letters the question whether
// a call may be made, and the end of a turn that gets nowhere, have no other word.
func TestAllFromCatalogue(t *testing.T) {
	data := regexp.MustCompile("`[^`]*`|no luck")
	say := textstest.Wide().Tools
	c := Call{Input: map[string]any{"a": strings.Repeat("x", 2*shown)}, Scope: Scope{Tainted: true, Sources: []string{"a page"}}, Effect: "dig"}
	said := []string{prompt(say.Approval, Tool{ToolSpec: llm.ToolSpec{Name: "dig"}}, c)}
	fails := Strikes(say.Struck)(Tool{Run: func(context.Context, Call) (Result, error) { return Failf(CodeError, "no luck"), nil }})
	for round := range maxStrikes {
		r, err := fails.Run(t.Context(), Call{Scope: Scope{Round: round + 1}})
		if err != nil {
			t.Fatal(err)
		}
		said = append(said, r.End)
	}
	if said[len(said)-1] == "" {
		t.Error("nobody was told of the strikes")
	}
	for _, text := range said {
		if rest := textstest.Foreign(text, data); rest != "" {
			t.Errorf("%q is not in the catalogue, of\n%s", rest, text)
		}
	}
}

// lines returns the beginning of a long argument as people see it.
func lines(text string) string {
	var parts []string
	for part := range slices.Chunk([]rune(text), shownPerLine) {
		parts = append(parts, string(part))
	}
	return strings.Join(parts, "`\n`")
}

// A call that a person was asked about begins when it may: what they took to answer is no part of its time.
func TestApprovedCallBeginsLater(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		j := &judge{yes: true, takes: time.Minute}
		slow := counting("u", Hints{Dangerous: true}, new(atomic.Int64))
		slow.Run = func(context.Context, Call) (Result, error) {
			<-time.After(2 * time.Second)
			return Result{Text: "done"}, nil
		}
		start := time.Now()
		r := turnBy(t, nil, StandardConfig{Approve: j.ask}, chat.Owner, slow).Call(t.Context(), callTo("u", ""))
		if r.Time.Sub(start) != time.Minute || r.Took != 2*time.Second {
			t.Errorf("the call began after %v and took %v", r.Time.Sub(start), r.Took)
		}
	})
}
