package tools

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/timetest"
	"parley/tools/arguments"
	"parley/workspace"
)

// kitWith makes a kit behind the standard pipeline as cfg says.
func kitWith(t testing.TB, cfg StandardConfig, tools ...Tool) *Kit {
	t.Helper()
	k, err := NewKit(t.Context(), Scope{}, []Source{Fixed(tools)}, Standard(cfg)...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// callNo makes a call in a round of its own.
func callNo(round int, name, args string) Call {
	c := callTo(name, args)
	c.ID, c.Round = "c"+arguments.JSON(round), round
	return c
}

// A-016, R-S12: when a call began, how long the tool itself was at work, and whether strangers speak from it.
func TestObserved(t *testing.T) {
	sleep := func(r Result, err error) func(context.Context, Call) (Result, error) {
		return func(ctx context.Context, c Call) (Result, error) {
			time.Sleep(30 * time.Millisecond)
			return r, err
		}
	}
	strange := Hints{Untrusted: true}
	known := Hints{Untrusted: true, ReadOnly: true, Cacheable: true}
	for _, c := range []struct {
		name    string
		hints   Hints
		run     func(context.Context, Call) (Result, error)
		args    string
		repeat  bool
		took    time.Duration
		tainted bool
	}{
		{"done", Hints{}, sleep(Result{Text: "x"}, nil), "{}", false, 30 * time.Millisecond, false},
		{"failed", strange, sleep(Result{}, errors.New("x")), "{}", false, 30 * time.Millisecond, true},
		{"strange", strange, sleep(Result{Text: "x"}, nil), "{}", false, 30 * time.Millisecond, true},
		{"by itself", Hints{}, sleep(Result{Text: "x", Tainted: true}, nil), "{}", false, 30 * time.Millisecond, true},
		{"timed out", strange, func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }, "{}", false, time.Minute, true},
		{"panicked", strange, func(context.Context, Call) (Result, error) { panic("x") }, "{}", false, 1, true},
		{"from memory", known, sleep(Result{Text: "x"}, nil), "{}", true, 0, true},
		{"not valid", strange, sleep(Result{Text: "x"}, nil), "{", false, 0, false},
		{"denied", Hints{Untrusted: true, Dangerous: true}, sleep(Result{Text: "x"}, nil), "{}", false, 0, false},
	} {
		timetest.Test(t, func(t *testing.T) {
			tool := echo("a", anything)
			tool.Hints, tool.Run = c.hints, c.run
			k := kitWith(t, StandardConfig{Cache: NewCache(time.Hour)}, tool)
			if c.repeat {
				k.Call(t.Context(), callNo(1, "a", c.args))
			}
			start := time.Now()
			r := k.Call(t.Context(), callNo(2, "a", c.args))
			if r.Took != c.took || !r.Time.Equal(start) || r.Tainted != c.tainted || r.Cached != c.repeat {
				t.Errorf("%s: %+v, want %+v", c.name, r, c)
			}
		})
	}
}

// R-S12: the copy of a failure says nothing that the failure did not.
func TestObservedTwin(t *testing.T) {
	k := kitOf(t, answering(Hints{ReadOnly: true, Untrusted: true}, Result{}, errors.New("no")))
	first, twin := callNo(1, "a", "{}"), callNo(2, "a", "{}")
	twin.Twin = first.ID
	if r := k.Call(t.Context(), first); !r.Tainted {
		t.Errorf("%+v", r)
	}
	if r := k.Call(t.Context(), twin); r.Tainted || !r.Skipped || r.Took != 0 {
		t.Errorf("%+v", r)
	}
}

// C-043, C-044, C-045, E-034: what is counted, and what is not.
func TestStats(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var stats Stats
		tool := echo("a", `{"type":"object","properties":{"ms":{"type":"integer"},"fail":{"type":"boolean"},"q":{"type":"string"}},"additionalProperties":false}`)
		tool.Hints = Hints{ReadOnly: true, Cacheable: true}
		tool.Query = func(args map[string]any) string { q, _ := args["q"].(string); return q }
		tool.Run = func(ctx context.Context, c Call) (Result, error) {
			ms, _ := c.Input["ms"].(int64)
			time.Sleep(time.Duration(ms) * time.Millisecond)
			if c.Input["fail"] == true {
				return Result{}, errors.New("no")
			}
			return Result{Text: "ok"}, nil
		}
		other := echo("b", anything)
		cfg := StandardConfig{Cache: NewCache(time.Hour), Stats: &stats}
		k := kitWith(t, cfg, tool, other)
		for i, args := range []string{`{"ms":10}`, `{"ms":30}`, `{"ms":20,"fail":true}`, `{"ms":10}`, `{"ms":`, `{"x":1}`} {
			k.Call(t.Context(), callNo(i, "a", args))
		}
		k.Call(t.Context(), callTo("nope", "{}"))
		want := Stat{Tool: "a", Runs: 3, Successes: 2, Failures: 1, TotalDuration: 60, AverageDuration: 20, CacheHits: 1}
		if got, err := stats.Of("a"); got != want || err != nil {
			t.Errorf("got %+v, %v", got, err)
		}
		twin := callNo(9, "a", `{"ms":10}`)
		twin.Twin = "c0"
		k.Call(t.Context(), twin)
		for i := range 4 { // found, found again, refused, refused
			k.Call(t.Context(), callNo(20+i, "a", `{"q":"x"}`))
		}
		stats.RolledBack("a")
		want = Stat{Tool: "a", Runs: 4, Successes: 3, Failures: 1, TotalDuration: 60, AverageDuration: 15, CacheHits: 2, Skipped: 1, Duplicates: 3, Rollbacks: 1}
		if got, _ := stats.Of("a"); arguments.JSON(got) != arguments.JSON(want) {
			t.Errorf("got  %s\nwant %s", arguments.JSON(got), arguments.JSON(want))
		}
		k.Call(t.Context(), callTo("b", "{}"))
		if all := stats.All(); len(all) != 2 || all[0].Tool != "a" || all[1].Tool != "b" {
			t.Errorf("all are %+v", all)
		}
		const names = `{"toolName":"b","executionCount":1,"successCount":1,"failureCount":0,"totalDuration":0,"averageDuration":0,"cacheHits":0,"skipped":0,"duplicates":0,"rollbacks":0}`
		if got := arguments.JSON(stats.All()[1]); got != names {
			t.Errorf("got %s", got)
		}
		if _, err := stats.Of("nope"); err == nil || err.Error() != "No stats found for tool: nope" {
			t.Errorf("C-044: %v", err)
		}
		if stats.Reset("a", "nope"); len(stats.All()) != 1 {
			t.Error("Reset of one")
		}
		if stats.Reset(); len(stats.All()) != 0 {
			t.Error("Reset of all")
		}
	})
}

// C-043: a call that a person stopped says nothing of its tool.
func TestStatsOfStopped(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var stats Stats
		tool := echo("a", anything)
		tool.Run = func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if r := kitWith(t, StandardConfig{Stats: &stats}, tool).Call(ctx, callTo("a", "")); r.Code != CodeCancelled || r.Took != time.Second || len(stats.All()) != 0 {
			t.Errorf("%+v, %+v", r, stats.All())
		}
	})
}

// C-045: at least half of at least five.
func TestUnreliable(t *testing.T) {
	var s Stats
	for _, c := range []struct {
		tool     string
		ok, fail int
	}{{"good", 3, 2}, {"few", 0, 4}, {"worse", 1, 4}, {"half", 3, 3}} {
		for i := range c.ok + c.fail {
			s.note(c.tool, Result{Took: 1, Failed: i < c.fail})
		}
	}
	if got := s.Unreliable(); !slices.Equal(got, []string{"half", "worse"}) {
		t.Errorf("got %v", got)
	}
}

// C-043: many at once.
func TestStatsTogether(t *testing.T) {
	var s Stats
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				s.note("a", Result{Took: 1})
				s.RolledBack("a")
				s.All()
			}
		})
	}
	wg.Wait()
	if n, _ := s.Of("a"); n.Runs != 800 || n.Rollbacks != 800 {
		t.Errorf("%+v", n)
	}
}

// E-024: a failure's first words are logged, at most 120 characters (D-040); a stop is nobody's fault.
func TestReport(t *testing.T) {
	var log bytes.Buffer
	cfg := StandardConfig{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}
	k := kitWith(t, cfg, answering(Hints{}, Result{}, errors.New(strings.Repeat("x", 200)+"\nhush")))
	k.Call(t.Context(), callTo("a", ""))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	k.Call(ctx, callTo("a", ""))
	want := `level=DEBUG msg="Tool a failed to execute: ` + strings.Repeat("x", 120) + `" tool=a `
	if got := log.String(); !strings.Contains(got, want) || strings.Contains(got, "hush") || !strings.Contains(got, `level=DEBUG msg="Tool a failed to execute: cancelled by the user"`) {
		t.Errorf("logged %s", got)
	}
}

// E-019, E-029: a call that went well may have come to nothing; the two are told apart.
func TestAssess(t *testing.T) {
	tool := echo("a", `{"type":"object","properties":{"found":{"type":"integer"}}}`)
	tool.Hints = Hints{ReadOnly: true, Cacheable: true}
	tool.Assess = func(r Result) Verdict {
		if r.Data != int64(1) { // a failure's data is nothing to judge by
			return Poor
		}
		return Fine
	}
	tool.Run = func(_ context.Context, c Call) (Result, error) {
		n, _ := c.Input["found"].(int64)
		return Result{Data: n, Failed: n < 0}, nil
	}
	k := kitWith(t, StandardConfig{Cache: NewCache(time.Hour)}, tool)
	for i, c := range []struct {
		args    string
		verdict Verdict
		failed  bool
	}{{`{"found":0}`, Poor, false}, {`{"found":0}`, Poor, false}, {`{"found":1}`, Fine, false}, {`{"found":-1}`, Fine, true}, {`{`, Fine, true}} {
		r := k.Call(t.Context(), callNo(i, "a", c.args))
		if r.Verdict != c.verdict || r.Failed != c.failed || r.Cached != (i == 1) {
			t.Errorf("%s: %+v", c.args, r)
		}
		want := map[bool]string{false: "success", true: "error"}[c.failed] + " " + map[Verdict]string{Fine: "ok", Poor: "poor"}[c.verdict]
		if meta := NewRecord(callTo("a", c.args).ToolCall, r.Text, r, "main", i).Meta; meta.Status+" "+meta.Verdict != want {
			t.Errorf("%s: recorded as %s %s, want %s", c.args, meta.Status, meta.Verdict, want)
		}
	}
}

// C-041: what ends a turn that gets nowhere. A step is the tool, what becomes of its call, and the round.
func TestStrikes(t *testing.T) {
	const words = "The same error came up three times, so the task is paused.\nError: %\n\nSend a message to go on."
	late := strings.ReplaceAll(words, "%", "Tool execution timeout after 1000ms")
	for _, c := range []struct {
		name  string
		steps string
		end   string // of the last step; those before have none
	}{
		{"three timeouts", "a:late a:late a:late", late},
		{"other errors between do not help", "a:late a:no a:late a:late", late},
		{"a success in between", "a:late a:late a:ok a:late a:late", ""},
		{"and then a third", "a:late a:late a:ok a:late a:late a:late", late},
		{"another's success", "a:late a:late b:ok a:late", late},
		{"of two tools", "a:late b:late a:late b:late", ""},
		{"the same error", "a:no a:ok a:no a:ok a:no", strings.ReplaceAll(words, "%", "no")},
		{"different errors", "a:no a:nope a:never a:no a:nope", ""},
		{"the same error of two tools", "a:no b:no a:no b:no", ""},
		{"arguments", "a:bad a:bad a:bad", strings.ReplaceAll(words, "%", "Invalid parameters for tool 'a': parameters must be a JSON object, got array")},
		{"no such tool", "c:ok c:ok c:ok", strings.ReplaceAll(words, "%", "Tool 'c' not found. Available: a, b")},
		{"still", "a:no a:no a:no a:no", ""}, // the third ended the turn
		{"of one round", "a:no=1 a:no=1 a:no=1 a:no=2", ""},
		{"of three rounds", "a:no=1 a:no=1 a:no=2 a:no=3", strings.ReplaceAll(words, "%", "no")},
	} {
		timetest.Test(t, func(t *testing.T) {
			tool := echo("a", `{"type":"object","properties":{"do":{"type":"string"}}}`)
			tool.Timeout = time.Second
			tool.Run = func(ctx context.Context, call Call) (Result, error) {
				switch do := call.Input["do"]; do {
				case "ok":
					return Result{Text: "ok"}, nil
				case "late":
					<-ctx.Done()
					return Result{}, ctx.Err()
				default:
					return Result{}, errors.New(do.(string))
				}
			}
			second := tool
			second.Name = "b"
			k := kitOf(t, tool, second)
			steps := strings.Fields(c.steps)
			for i, step := range steps {
				step, round, _ := strings.Cut(step, "=")
				name, do, _ := strings.Cut(step, ":")
				args := `{"do":"` + do + `"}`
				if do == "bad" {
					args = `[1]`
				}
				call := callNo(i+1, name, args)
				if round != "" {
					call.Round = int(round[0] - '0')
				}
				r := k.Call(t.Context(), call)
				last := i == len(steps)-1
				if last && c.end != "" && r.End != c.end || !last && r.End != "" && c.name != "still" || last && c.end == "" && c.name != "still" && r.End != "" {
					t.Errorf("%s: step %d %s: ends with %q, want %q", c.name, i, step, r.End, c.end)
				}
			}
		})
	}
}

// C-041: each turn begins anew, as each has a pipeline of its own; a stop is no strike, and a tool's own end stands.
func TestStrikesOfTurn(t *testing.T) {
	for range 3 {
		k := kitOf(t, answering(Hints{}, Result{}, errors.New("no")))
		for i := range 2 {
			if r := k.Call(t.Context(), callNo(i+1, "a", "")); r.End != "" {
				t.Errorf("ended with %q", r.End)
			}
		}
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	k := kitOf(t, answering(Hints{}, Result{Text: "no", Failed: true, End: "bye"}, nil))
	for i := range 3 {
		if r := k.Call(stopped, callNo(i+1, "a", "")); r.Code != CodeCancelled {
			t.Errorf("%+v", r)
		}
	}
	for i := range 3 {
		if r := k.Call(t.Context(), callNo(i+9, "a", "")); r.End != "bye" {
			t.Errorf("%+v", r)
		}
	}
}

// C-041: calls of one group, race-free.
func TestStrikesTogether(t *testing.T) {
	k := kitOf(t, answering(Hints{ReadOnly: true}, Result{}, errors.New("no")))
	var ended int
	for round := range 3 {
		group := make([]Call, 8)
		for i := range group {
			group[i] = callNo(round+1, "a", arguments.JSON(map[string]int{"i": i}))
		}
		for _, r := range k.Together(t.Context(), group) {
			if r.End != "" {
				ended++
			}
		}
		if round < 2 && ended != 0 || round == 2 && ended == 0 {
			t.Errorf("round %d: %d ended the turn", round, ended)
		}
	}
}

// D-120, E-001, A-013: the order of the stages, on the way in and out.
func TestOrder(t *testing.T) {
	var order []string
	var log bytes.Buffer
	note := func(s string) { order = append(order, s) }
	cfg := StandardConfig{
		Log: slog.New(slog.NewTextHandler(&log, nil)), Cache: NewCache(time.Hour), Stats: new(Stats),
		Approve: func(_ context.Context, c Call, _ string) (bool, string, error) {
			note("approve " + arguments.JSON(c.Input))
			return true, "telegram:1", nil
		},
	}
	tool := echo("a", `{"type":"object","properties":{"path":{"type":"string","minLength":2},"n":{"type":"integer"}},"required":["path"]}`)
	tool.Aliases = map[string]string{"file": "path"}
	tool.Hints = Hints{Dangerous: true, ReadOnly: true, Cacheable: true, MaxText: 20}
	tool.Query = func(args map[string]any) string { note("query"); return "" }
	tool.Assess = func(r Result) Verdict { note("assess " + r.Text[:min(8, len(r.Text))]); return Poor }
	tool.Run = func(_ context.Context, c Call) (Result, error) {
		note("run " + arguments.JSON(c.Input))
		return Result{Data: map[string]any{"long": strings.Repeat("x", 99)}}, nil
	}
	k := kitWith(t, cfg, tool)
	c := callTo("a", `{"file":"ab","n":"5","_model":"x"}`)
	c.Begin = func(context.Context) error { note("begin"); return nil }
	r := k.Call(t.Context(), c)
	want := []string{`approve {"n":5,"path":"ab"}`, "begin", "query", `run {"n":5,"path":"ab"}`, `assess {"long":`}
	if !slices.Equal(order, want) {
		t.Errorf("order is\n%s, want\n%s", strings.Join(order, "\n"), strings.Join(want, "\n"))
	}
	if r.Text != `{"long":"xxxxxxxxxxx`+"\n... (truncated)" || r.Verdict != Poor || r.By != "telegram:1" || !r.Cut || r.Took == 0 {
		t.Errorf("%+v", r)
	}
	order = nil
	if k.Call(t.Context(), callTo("a", `{"file":"a"}`)); len(order) != 0 { // not valid: nothing of it is done
		t.Errorf("of a call that is not valid: %v", order)
	}
	if r := k.Call(t.Context(), callNo(7, "a", `{"path":"ab","n":5}`)); !r.Cached || r.Verdict != Poor {
		t.Errorf("from memory: %+v", r)
	}
}

// D-042, D-043: the result says where the whole is, and that it is not all.
func TestTruncated(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, c := range []struct {
		text      string
		limit     int
		space     *workspace.Workspace
		cut, kept bool
	}{{"short", 5, w, false, false}, {"longer", 5, w, true, true}, {"longer", 5, nil, true, false}, {"longer", -1, w, false, false}} {
		call := callTo("a", "")
		call.Workspace = c.space
		r := kitOf(t, answering(Hints{MaxText: c.limit}, Result{Text: c.text}, nil)).Call(t.Context(), call)
		if r.Cut != c.cut || (r.File != "") != c.kept || c.kept && !strings.Contains(r.Text, "saved to: "+r.File+"\n") {
			t.Errorf("%+v: %+v", c, r)
		}
	}
}
