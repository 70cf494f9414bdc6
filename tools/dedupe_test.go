package tools

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/timetest"
	"parley/tools/arguments"
)

// batch runs the calls of one round as an agent does.
func batch(t *testing.T, k *Kit, calls []Call) map[string]Result {
	t.Helper()
	raw := make([]llm.ToolCall, len(calls))
	for i, c := range calls {
		raw[i] = c.ToolCall
	}
	twins := k.Twins(raw)
	for i := range calls {
		calls[i].Twin = twins[calls[i].ID]
	}
	results := map[string]Result{}
	for _, group := range k.Groups(calls) {
		for i, r := range k.Together(t.Context(), group) {
			results[group[i].ID] = r
		}
	}
	return results
}

// §2.7: two calls of a round that are the same run once.
func TestTwins(t *testing.T) {
	fails := func(n *atomic.Int64) func(context.Context, Call) (Result, error) {
		return func(context.Context, Call) (Result, error) { n.Add(1); return Result{}, errors.New("no luck") }
	}
	const skipped = "identical call in the same batch was not executed again; repeat it in a later step if you mean it"
	for _, c := range []struct {
		name   string
		hints  Hints
		fails  bool
		second string
	}{
		{"read-only", Hints{ReadOnly: true, Cacheable: true}, false, "run 1"},
		{"read-only, live", Hints{ReadOnly: true}, false, "run 1"},
		{"read-only, alone", Hints{ReadOnly: true, Exclusive: true}, false, "run 1"},
		{"read-only, failed", Hints{ReadOnly: true}, true, "Error: no luck" + hint},
		{"read-only, JSON", Hints{ReadOnly: true, JSON: true}, false, `{"success":true,"data":"run 1","error":null,"duplicate":true}`},
		{"takes effect", Hints{}, false, skipped},
		{"takes effect, failed", Hints{}, true, skipped},
		{"takes effect, JSON", Hints{JSON: true}, false, `{"success":true,"data":"` + skipped + `","error":null,"duplicate":true}`},
		{"last", Hints{Last: true}, false, skipped},
	} {
		var n atomic.Int64
		u := counting("u", c.hints, &n)
		if c.fails {
			u.Run = fails(&n)
		}
		calls := round("u", "U", "u")
		calls[0].Args, calls[1].Args, calls[2].Args = `{"a":1,"b":2}`, ` {"b":2,"a":1}`, `{"a":2}`
		stats := new(Stats)
		results := batch(t, turnOf(t, StandardConfig{Cache: NewCache(fiveMinutes), Stats: stats}, chat.User, u), calls)
		second, third := results["b"], results["c"]
		if second.Text != c.second || !second.Skipped || second.Twin != "a" || second.Took != 0 || second.Cached {
			t.Errorf("%s: %+v", c.name, second)
		}
		if n.Load() != 2 || results["a"].Skipped || third.Skipped {
			t.Errorf("%s: ran %d times: %+v", c.name, n.Load(), results)
		}
		if s, err := stats.Of("u"); s.Skipped != 1 || err != nil {
			t.Errorf("%s: %+v, %v", c.name, s, err)
		}
	}
}

// a twin whose first is not in memory any more, as after a crash, is run
// if it is read-only; so is one before which something may have changed.
func TestTwinsWithoutFirst(t *testing.T) {
	var n atomic.Int64
	read, write := counting("read", Hints{ReadOnly: true}, &n), counting("write", Hints{}, &n)
	k := turnOf(t, StandardConfig{}, chat.User, read, write)
	c := callTo("read", "")
	c.Twin = "lost"
	if r := k.Call(t.Context(), c); r.Skipped || r.Text != "run 1" {
		t.Errorf("after a crash: %+v", r)
	}
	c.Name = "write"
	if r := k.Call(t.Context(), c); !r.Skipped || r.Text != wordsTwin || n.Load() != 1 {
		t.Errorf("after a crash: %+v", r)
	}
	results := batch(t, k, round("read", "write", "read", "read"))
	for _, id := range []string{"c", "d"} {
		if r := results[id]; r.Skipped || r.Text != "run 4" && r.Text != "run 5" {
			t.Errorf("after a change: %+v", r)
		}
	}
}

// §2.7: what a later round or turn runs again.
func TestLaterRound(t *testing.T) {
	for _, c := range []struct {
		name  string
		hints Hints
		fails bool
		want  string // runs after each of: the call, again in the turn, in the next turn
	}{
		{"A-075 cacheable", Hints{ReadOnly: true, Cacheable: true}, false, "1 1 1"},
		{"A-078 failed", Hints{ReadOnly: true, Cacheable: true}, true, "1 2 3"},
		{"live", Hints{ReadOnly: true}, false, "1 2 3"},
		{"A-081 message, exec, cron add, append", Hints{}, false, "1 2 3"},
		{"A-082 failed", Hints{}, true, "1 2 3"},
		{"untrustworthy hints", Hints{Cacheable: true}, false, "1 2 3"},
	} {
		var n atomic.Int64
		u := counting("u", c.hints, &n)
		if c.fails {
			u.Run = func(context.Context, Call) (Result, error) { n.Add(1); return Result{}, errors.New("no luck") }
		}
		cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
		k := turnOf(t, cfg, chat.User, u)
		var runs []string
		for i, id := range []string{"a", "b", "c"} {
			if i == 2 {
				k = turnOf(t, cfg, chat.User, u)
			}
			call := callTo("u", `{"x":1}`)
			call.ID, call.Round = id, i+1
			r := k.Call(t.Context(), call)
			if runs = append(runs, arguments.JSON(n.Load())); r.Skipped || r.Failed != c.fails {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		if got := strings.Join(runs, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// read, write, read gives what was written, in one turn and in two, and
// whether or not the write owned up to it.
func TestReadWriteRead(t *testing.T) {
	for _, writeFails := range []bool{false, true} {
		content := "old"
		read, write, search := echo("read_file", anything), echo("write_file", anything), echo("web_search", anything)
		read.Hints = Hints{ReadOnly: true, Category: "files"}
		read.Run = func(context.Context, Call) (Result, error) { return Result{Text: content}, nil }
		search.Hints = Hints{ReadOnly: true, Cacheable: true, Category: "web"}
		write.Run = func(context.Context, Call) (Result, error) {
			if content = "new"; writeFails {
				panic("half done")
			}
			return Result{}, nil
		}
		cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
		k := turnOf(t, cfg, chat.User, read, write, search)
		call := func(name string) Result { return k.Call(t.Context(), callTo(name, "")) }
		call("web_search")
		for _, want := range []string{"old", "new"} {
			if r := call("read_file"); r.Text != want || r.Cached {
				t.Errorf("%+v, want %s", r, want)
			}
			call("write_file")
		}
		k = turnOf(t, cfg, chat.User, read, write, search)
		if r := call("read_file"); r.Text != "new" || r.Cached {
			t.Errorf("in the next turn: %+v", r)
		}
		if r := call("web_search"); !r.Cached {
			t.Errorf("the web has not changed: %+v", r)
		}
	}
}

const enough = "Error: repeated external lookup blocked. Use the results you already have to answer, or try a meaningfully different source." + hint

// searcher looks up its "q", and fails while fails is over 0.
func searcher(name string, n, fails *atomic.Int64) Tool {
	t := counting(name, Hints{ReadOnly: true}, n)
	t.Query = func(in map[string]any) string {
		q, _ := in["q"].(string)
		return strings.ToLower(q)
	}
	run := t.Run
	t.Run = func(ctx context.Context, c Call) (Result, error) {
		if fails.Add(-1) >= 0 {
			return Result{}, errors.New("no luck")
		}
		return run(ctx, c)
	}
	return t
}

// E-006…E-013, D-086: what is looked up again in one turn.
func TestLookups(t *testing.T) {
	var n, fails atomic.Int64
	search, other, alias := searcher("web_search", &n, &fails), searcher("web_fetch", &n, &fails), searcher("google_search", &n, &fails)
	alias.AliasOf, alias.JSON = "web_search", true
	noted := func(run string) string {
		return run + "\n\n(already looked up in this turn; this is the earlier result)"
	}
	for _, cfg := range []StandardConfig{{}, {Cache: NewCache(0)}} { // without a cache, too
		n.Store(0)
		stats := new(Stats)
		cfg.Stats = stats
		k := turnOf(t, cfg, chat.User, search, other, alias)
		for i, c := range []struct {
			id, tool, args string
			fails          int64
			want, twin     string
		}{
			{"E-011", "web_search", `{"q":"go"}`, 2, "Error: no luck" + hint, ""},
			{"E-011", "web_search", `{"q":"go"}`, 1, "Error: no luck" + hint, ""},
			{"E-011", "web_search", `{"q":"go"}`, 0, "run 1", ""},
			{"E-012", "web_search", `{"q":"GO","count":9}`, 0, noted("run 1"), "c"},
			{"D-086", "web_search", `{"q":"go"}`, 0, enough, "c"},
			{"D-086", "web_search", `{"q":"go","count":3}`, 0, enough, "c"},
			{"E-010", "web_fetch", `{"q":"go"}`, 0, "run 2", ""},
			{"E-006 other query", "web_search", `{"q":"c"}`, 0, "run 3", ""},
			{"E-010 alias", "google_search", `{"q":"c"}`, 0, `{"success":true,"data":"run 3","error":null,"cached":true}`, "h"},
			{"D-086 alias", "google_search", `{"q":"c"}`, 0, `{"success":false,"data":null,"error":"` + strings.TrimSuffix(strings.TrimPrefix(enough, prefix), hint) + `"}`, "h"},
			{"E-010 alias first", "google_search", `{"q":"d"}`, 0, `{"success":true,"data":"run 4","error":null}`, ""},
			{"E-010 its tool", "web_search", `{"q":"d"}`, 0, noted(`"run 4"`), "k"},
			{"E-007, E-008 no query", "web_search", `{}`, 0, "run 5", ""},
			{"E-007, E-008 no query", "web_search", `{}`, 0, "run 6", ""},
			{"E-007, E-008 no query", "web_search", `{"q":""}`, 0, "run 7", ""},
		} {
			fails.Store(c.fails)
			call := callTo(c.tool, c.args)
			call.ID = string(rune('a' + i))
			r := k.Call(t.Context(), call)
			if r.Text != c.want || r.Twin != c.twin || r.Cached != (c.twin != "" && !r.Failed) || r.Skipped || r.Cached && r.Took != 0 {
				t.Errorf("%s (%s): %+v\nwant %q", c.id, call.ID, r, c.want)
			}
		}
		fails.Store(0)
		if s, _ := stats.Of("web_search"); s.Duplicates != 6 { // E-034, by all of its names
			t.Errorf("%+v", s)
		}
		if s, err := stats.Of("google_search"); err == nil {
			t.Errorf("an alias has statistics of its own: %+v", s)
		}
		// E-010, E-013: another turn, or another agent, has its own count.
		if r := turnOf(t, cfg, chat.User, search).Call(t.Context(), callTo("web_search", `{"q":"go"}`)); r.Text != "run 8" {
			t.Errorf("in another turn: %+v", r)
		}
	}
}

// A lookup that an earlier turn made counts for this one, and is not made.
func TestLookupFromCache(t *testing.T) {
	var n, fails atomic.Int64
	search := searcher("web_search", &n, &fails)
	search.Cacheable = true
	cfg := StandardConfig{Cache: NewCache(fiveMinutes)}
	turnOf(t, cfg, chat.User, search).Call(t.Context(), callTo("web_search", `{"q":"go"}`))
	k := turnOf(t, cfg, chat.User, search)
	for _, want := range []string{"run 1", "run 1" + wordsEarlier, enough} {
		if r := k.Call(t.Context(), callTo("web_search", `{"q":"go"}`)); r.Text != want || r.Cached == r.Failed {
			t.Errorf("%+v, want %s", r, want)
		}
	}
}

// E-012: lookups of one query that run together are made once; those that wait
// leave when they are told to.
func TestLookupsTogether(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var n, fails atomic.Int64
		search := searcher("web_search", &n, &fails)
		run := search.Run
		search.Run = func(ctx context.Context, c Call) (Result, error) {
			time.Sleep(time.Second)
			return run(ctx, c)
		}
		k := turnOf(t, StandardConfig{}, chat.User, search)
		calls := round("web_search", "web_search", "web_search", "web_search")
		for i, args := range []string{`{"q":"go","count":1}`, `{"q":"go","count":2}`, `{"q":"go","count":3}`, `{"q":"c"}`} {
			calls[i].Args = args
		}
		start := time.Now()
		seen := map[string]int{}
		for _, r := range batch(t, k, calls) {
			seen[r.Text[:5]]++
		}
		if n.Load() != 2 || time.Since(start) != time.Second || seen["Error"] != 1 || seen["run 1"]+seen["run 2"] != 3 {
			t.Errorf("made %d in %v: %v", n.Load(), time.Since(start), seen)
		}
		fails.Store(9)
		for i := range calls[:2] {
			calls[i].Args = strings.Replace(calls[i].Args, "go", "stop", 1)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		start = time.Now()
		for _, r := range k.Together(ctx, calls[:2]) {
			if r.Code != CodeCancelled {
				t.Errorf("after a stop: %+v", r)
			}
		}
		if took := time.Since(start); took > 500*time.Millisecond+grace {
			t.Errorf("a stop took %v", took)
		}
		timetest.Sleep(time.Hour) // for the deaf one
	})
}

// what is given again has cost nothing, and has not been said or ended again.
func TestGivenAgain(t *testing.T) {
	u := echo("u", anything)
	u.Hints = Hints{ReadOnly: true, Cacheable: true}
	full := Result{Text: "x", Data: 1, Pictures: []string{"a.png"}, File: "f", Cut: true, Verdict: Poor, Tainted: true, Took: time.Second, Told: "hi", End: "bye"}
	u.Run = func(context.Context, Call) (Result, error) { return full, nil }
	u = Dedupe(NewCache(fiveMinutes))(u.parsed())
	kept := full
	kept.Took, kept.Told, kept.End = 0, "", ""
	for i, twin := range []string{"", "", "c0"} {
		c := callTo("u", "")
		c.ID, c.Twin = "c"+arguments.JSON(i), twin
		want := kept
		switch want.Cached, want.Skipped, want.Twin = i == 1, i == 2, twin; i {
		case 0:
			want = full
		case 1:
			want.Data = nil
		}
		if r, err := u.Run(t.Context(), c); err != nil || !reflect.DeepEqual(r, want) {
			t.Errorf("%d: %+v, %v", i, r, err)
		}
	}
	var n atomic.Int64
	k := turnOf(t, StandardConfig{}, chat.User, counting("v", Hints{ReadOnly: true}, &n))
	for range 2 { // calls without IDs are not each other's twins
		k.Call(t.Context(), Call{ToolCall: llm.ToolCall{Name: "v"}})
	}
	if n.Load() != 2 {
		t.Errorf("ran %d times", n.Load())
	}
}

// E-026: what found nothing was taken back maybe, with all that the model was
// told of it: asking for it again is no repetition.
func TestPoorLookups(t *testing.T) {
	var n, fails atomic.Int64
	search := searcher("web_search", &n, &fails)
	search.Assess = func(Result) Verdict { return Poor }
	k := turnOf(t, StandardConfig{}, chat.User, search)
	for i := range 5 {
		call := callTo("web_search", `{"q":"go"}`)
		call.ID = string(rune('a' + i))
		if r := k.Call(t.Context(), call); r.Failed || r.Verdict != Poor || r.Twin != "" {
			t.Errorf("time %d: %+v", i+1, r)
		}
	}
}
