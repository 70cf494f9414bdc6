package tools

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/timetest"
)

// A lab has tools that take a second and note when they began and ended.
type lab struct {
	mu     sync.Mutex
	events []string
	now    int // calls at work
	most   int
}

func (l *lab) tool(name string, hints Hints) Tool {
	t := echo(name, anything)
	t.Hints = hints
	t.Run = func(ctx context.Context, c Call) (Result, error) {
		l.note(1, "+"+c.ID)
		select {
		case <-time.After(time.Second):
			l.note(-1, "-"+c.ID)
			return Result{Text: "done " + c.ID}, nil
		case <-ctx.Done():
			l.note(-1, "!"+c.ID)
			return Result{}, ctx.Err()
		}
	}
	return t
}

func (l *lab) note(n int, event string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.now += n
	l.most = max(l.most, l.now)
	l.events = append(l.events, event)
}

func (l *lab) kit(t *testing.T) *Kit {
	return kitOf(t, l.tool("read", Hints{ReadOnly: true}), l.tool("exec", Hints{}), l.tool("alone", Hints{ReadOnly: true, Exclusive: true}))
}

// round makes calls named a, b, c … of the tools.
func round(tools ...string) []Call {
	var calls []Call
	for i, name := range tools {
		calls = append(calls, Call{ToolCall: llm.ToolCall{ID: string(rune('a' + i)), Name: name}})
	}
	return calls
}

func ids(calls []Call) string {
	var s string
	for _, c := range calls {
		s += c.ID
	}
	return s
}

// A-011, D-037, D-038: which calls run together, and how long it takes.
func TestGroups(t *testing.T) {
	for _, c := range []struct {
		tools  string
		groups string
		took   time.Duration
		most   int
	}{
		{"", "", 0, 0},
		{"read", "a", time.Second, 1},
		{"read read exec read", "ab c d", 3 * time.Second, 2},
		{"exec exec", "a b", 2 * time.Second, 1},
		{"read alone read", "a b c", 3 * time.Second, 1},
		{"read read read read read read", "abcdef", 2 * time.Second, MaxParallel},
		{"Read functions.read nope read", "ab c d", 2 * time.Second, 2},
	} {
		timetest.Test(t, func(t *testing.T) {
			l, start := lab{}, time.Now()
			var groups []string
			k := l.kit(t)
			for _, group := range k.Groups(round(strings.Fields(c.tools)...)) {
				groups = append(groups, ids(group))
				for i, r := range k.Together(t.Context(), group) {
					if call := group[i]; call.Name != "nope" && r.Text != "done "+call.ID {
						t.Errorf("%s: the result of %s is %q", c.tools, call.ID, r.Text)
					}
				}
			}
			if strings.Join(groups, " ") != c.groups || time.Since(start) != c.took || l.most != c.most {
				t.Errorf("%s: groups %v, took %v, %d at once; want %+v", c.tools, groups, time.Since(start), l.most, c)
			}
		})
	}
}

// which calls of a round are the same. It is for the Kit to say,
// so that it says the same after a crash.
func TestKitTwins(t *testing.T) {
	find, old := echo("find", `{"type":"object","properties":{"n":{"type":"integer"},"s":{"type":"string"}}}`), echo("old_find", anything)
	find.Aliases, old.AliasOf = map[string]string{"text": "s"}, "find"
	k := kitOf(t, find, old, echo("exec", anything))
	for _, c := range []struct{ name, calls, want string }{
		{"none", "", ""},
		{"one", `find {"n":1}`, ""},
		{"same", `find {"n":1}|find {"n":1}`, "b=a"},
		{"three", `exec {}|exec {}|exec {}`, "b=a c=a"},
		{"pairs", `exec {"a":1}|exec {"a":2}|exec {"a":1}|exec {"a":2}`, "c=a d=b"},
		{"order", `find {"n":1,"s":"x"}|find {"s":"x","n":1}`, "b=a"},
		{"cast", `find {"n":5}|find {"n":"5"}|find {"n":5.0}`, "b=a c=a"},
		{"alias of an argument", `find {"s":"x"}|find {"text":"x"}`, "b=a"},
		{"left out", `find {"n":1}|find {"n":1,"s":null,"_x":2}`, "b=a"},
		{"wrapped", `find {"n":1}|find {"arguments":{"n":1}}`, "b=a"},
		{"no arguments", `exec |exec {}|exec null`, "b=a c=a"},
		{"its name", `find {"n":1}|functions.Find {"n":1}`, "b=a"},
		{"another form", `find {"n":1}|old_find {"n":1}`, ""},
		{"other tools", `find {}|exec {}`, ""},
		{"other arguments", `exec {"a":1}|exec {"a":"1"}|exec {"a":1,"b":null}`, ""},
		{"broken", `exec {"a":|exec {"a":`, ""},
		{"no such tool", `nope {}|nope {}`, ""},
	} {
		var calls []llm.ToolCall
		for i, s := range strings.Split(c.calls, "|") {
			name, args, _ := strings.Cut(s, " ")
			calls = append(calls, llm.ToolCall{ID: string(rune('a' + i)), Name: name, Args: args})
		}
		for range 2 {
			twins := k.Twins(calls)
			var got []string
			for _, call := range calls {
				if id := twins[call.ID]; id != "" {
					got = append(got, call.ID+"="+id)
				}
			}
			if strings.Join(got, " ") != c.want || len(twins) != len(got) {
				t.Errorf("%s: %v, want %s", c.name, twins, c.want)
			}
		}
	}
}

// A-080, C-030, C-051, D-037: what comes after what.
func TestGroupsInOrder(t *testing.T) {
	var l lab
	read, exec := l.tool("read", Hints{ReadOnly: true}), l.tool("exec", Hints{})
	guarded := l.tool("guarded", Hints{ReadOnly: true})
	guarded.Guard = func(Call) bool { return true }
	k := kitOf(t, read, exec, guarded, l.tool("end", Hints{Last: true}), l.tool("peek", Hints{ReadOnly: true, Last: true}),
		l.tool("danger", Hints{ReadOnly: true, Dangerous: true}))
	for _, c := range []struct {
		tools, groups string
		twins         map[string]string
		tainted       bool
	}{
		{"read read exec read", "ab c d", nil, false},
		{"read read read", "a b c", map[string]string{"b": "a", "c": "b"}, false},
		{"read read read", "ab c", map[string]string{"c": "a"}, false},
		{"read read read read", "ab cd", map[string]string{"c": "a", "d": "b"}, false},
		{"read exec read", "a b c", map[string]string{"c": "a"}, false},
		{"read exec read read", "a b cd", map[string]string{"c": "a"}, false},
		{"end read exec", "b c a", nil, false},
		{"end read end exec", "b d a c", nil, false},
		{"end read peek read", "bd a c", nil, false},
		{"read danger read", "a b c", nil, false},
		{"danger danger", "a b", nil, false},
		{"read guarded read", "abc", nil, false},
		{"read guarded read", "a b c", nil, true},
	} {
		calls := round(strings.Fields(c.tools)...)
		for i := range calls {
			calls[i].Twin, calls[i].Tainted, calls[i].From.Role = c.twins[calls[i].ID], c.tainted, chat.Owner
		}
		before := ids(calls)
		var groups []string
		for _, group := range k.Groups(calls) {
			groups = append(groups, ids(group))
		}
		if got := strings.Join(groups, " "); got != c.groups || ids(calls) != before {
			t.Errorf("%s, twins %v, tainted %v: %s, want %s", c.tools, c.twins, c.tainted, got, c.groups)
		}
	}
}

// P6: what ran is told, and what was not begun when a group was stopped is not begun any more.
func TestGroupCancelled(t *testing.T) {
	const stopped = prefix + "cancelled by the user"
	timetest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(1500*time.Millisecond, func() { cancel(nil) })
		var l lab
		results := l.kit(t).Together(ctx, round(strings.Fields(strings.Repeat("read ", 2*MaxParallel+1))...))
		for i, want := range map[int]string{0: "done a", MaxParallel: stopped, 2 * MaxParallel: stopped + " before it ran"} {
			if r := results[i]; r.Text != want || r.Failed != (r.Code == CodeCancelled) || r.Failed != (i > 0) {
				t.Errorf("%d: %+v, want %q", i, r, want)
			}
		}
		if len(l.events) != 4*MaxParallel {
			t.Errorf("ran %v", l.events)
		}
		closing, end := context.WithCancelCause(t.Context())
		end(errors.New("shutting down"))
		if r := l.kit(t).Together(closing, round("read"))[0]; r.Text != prefix+"cancelled: shutting down before it ran" {
			t.Errorf("%+v", r)
		}
	})
}

// C-039, C-040, P14: what happens when a call's time is up.
func TestTimeout(t *testing.T) {
	wait := func(d time.Duration, obedient bool, r Result) func(context.Context, Call) (Result, error) {
		return func(ctx context.Context, _ Call) (Result, error) {
			if !obedient {
				time.Sleep(d)
				return r, nil
			}
			select {
			case <-time.After(d):
				return r, nil
			case <-ctx.Done():
				if r.Text == "" {
					return Result{}, ctx.Err()
				}
				return r, nil
			}
		}
	}
	late := func(ms int) Result {
		return Result{Text: fmt.Sprintf("Error: Tool execution timeout after %dms", ms) + hint, Failed: true, Code: CodeTimeout}
	}
	own := Result{Text: "Error: Command timed out after 1 seconds", Failed: true, Code: CodeTimeout}
	ownSeen := own
	ownSeen.Text += hint
	for _, c := range []struct {
		name  string
		limit time.Duration
		run   func(context.Context, Call) (Result, error)
		want  Result
		took  time.Duration
		stray bool
	}{
		{"in time", 2 * time.Second, wait(time.Second, true, Result{Text: "ok"}), Result{Text: "ok"}, time.Second, false},
		{"obeys", 50 * time.Millisecond, wait(time.Hour, true, Result{}), late(50), 50 * time.Millisecond, false},
		{"default", 0, wait(time.Hour, true, Result{}), late(60_000), time.Minute, false},
		{"ceiling", time.Hour, wait(time.Hour, true, Result{}), late(600_000), 10 * time.Minute, false},
		{"its own words", time.Second, wait(time.Hour, true, own), ownSeen, time.Second, false},
		{"done after all", time.Second, wait(time.Hour, true, Result{Text: "partial"}), Result{Text: "partial"}, time.Second, false},
		{"done in the grace", time.Second, wait(time.Second+grace/2, false, Result{Text: "ok"}), Result{Text: "ok"}, time.Second + grace/2, false},
		{"deaf", time.Second, wait(time.Hour, false, Result{Text: "ok"}), late(1000), time.Second + grace, true},
	} {
		timetest.Test(t, func(t *testing.T) {
			u := echo("a", anything)
			u.Run, u.Timeout = c.run, c.limit
			var strays Strays
			k, err := NewKit(t.Context(), Scope{}, []Source{Fixed{u}}, Standard(StandardConfig{Strays: &strays})...)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			r := k.Call(t.Context(), callTo("a", ""))
			c.want.Time, c.want.Took = start, c.took
			if !reflect.DeepEqual(r, c.want) || time.Since(start) != c.took {
				t.Errorf("%s: %+v after %v; want %+v", c.name, r, time.Since(start), c)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if err := strays.Wait(ctx); (err != nil) != c.stray {
				t.Errorf("%s: Wait for a minute: %v", c.name, err)
			}
			if err := strays.Wait(t.Context()); err != nil {
				t.Errorf("%s: Wait: %v", c.name, err)
			}
		})
	}
}

// C-040: a stop does not wait for a deaf tool, nor does it hide what a good one has done.
func TestStop(t *testing.T) {
	for _, c := range []struct {
		name string
		run  func(context.Context, Call) (Result, error)
		want string
		took time.Duration
	}{
		{"obeys", func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{}, ctx.Err() }, prefix + "cancelled by the user", time.Second},
		{"deaf", func(context.Context, Call) (Result, error) { time.Sleep(time.Hour); return Result{}, nil }, prefix + "cancelled by the user", time.Second + grace},
		{"done", func(ctx context.Context, _ Call) (Result, error) { <-ctx.Done(); return Result{Text: "sent"}, nil }, "sent", time.Second},
	} {
		timetest.Test(t, func(t *testing.T) {
			u := echo("a", anything)
			u.Run = c.run
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			time.AfterFunc(time.Second, cancel)
			if r := kitOf(t, u).Call(ctx, callTo("a", "")); r.Text != c.want || time.Since(start) != c.took {
				t.Errorf("%s: %+v after %v; want %q", c.name, r, time.Since(start), c.want)
			}
			timetest.Sleep(time.Hour) // for the deaf one
		})
	}
}
