package tools

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
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

// D-037, D-038: which calls run together, and how long it takes.
func TestRound(t *testing.T) {
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
		synctest.Test(t, func(t *testing.T) {
			l, start := lab{}, time.Now()
			var log []string
			err := l.kit(t).Round(t.Context(), round(strings.Fields(c.tools)...),
				func(calls []Call) error { log = append(log, ids(calls)); return nil },
				func(calls []Call, results []Result) error {
					if len(results) != len(calls) || log[len(log)-1] != ids(calls) || l.now != 0 {
						t.Errorf("%s: finished %s with %d results", c.tools, ids(calls), len(results))
					}
					for i, call := range calls {
						if want := "done " + call.ID; call.Name != "nope" && results[i].Text != want {
							t.Errorf("%s: the result of %s is %q, want %q", c.tools, call.ID, results[i].Text, want)
						}
					}
					return nil
				})
			if err != nil || strings.Join(log, " ") != c.groups || time.Since(start) != c.took || l.most != c.most {
				t.Errorf("%s: groups %v, took %v, %d at once, %v; want %+v", c.tools, log, time.Since(start), l.most, err, c)
			}
		})
	}
}

// P6: what ran is kept, what did not run says so, and nothing starts after a stop.
func TestRoundCancelled(t *testing.T) {
	const stopped = prefix + "cancelled by the user"
	for _, c := range []struct {
		after time.Duration
		cause error
		want  []string
		log   string
	}{
		{0, nil, nil, ""},
		{1500 * time.Millisecond, nil, []string{"done a", "done b", stopped}, "+ab -ab +c -c"},
		{1500 * time.Millisecond, errors.New("shutting down"), []string{"done a", "done b", prefix + "cancelled: shutting down"}, "+ab -ab +c -c"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			if c.after == 0 {
				cancel(nil)
			}
			time.AfterFunc(c.after, func() { cancel(c.cause) })
			var l lab
			var log, got []string
			err := l.kit(t).Round(ctx, round("read", "read", "exec", "read"),
				func(calls []Call) error { log = append(log, "+"+ids(calls)); return nil },
				func(calls []Call, results []Result) error {
					log = append(log, "-"+ids(calls))
					for _, r := range results {
						got = append(got, r.Text)
						if r.Failed != (r.Code == CodeCancelled) {
							t.Errorf("%+v", r)
						}
					}
					return nil
				})
			if !errors.Is(err, context.Canceled) || !slices.Equal(got, c.want) || strings.Join(log, " ") != c.log {
				t.Errorf("after %v: %v\n%q %q\nwant %q %q", c.after, err, got, log, c.want, c.log)
			}
		})
	}
}

// P6: of a group, too, what was not begun when the round was stopped is not begun any more.
func TestGroupCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, cancel)
		var l lab
		err := l.kit(t).Round(ctx, round("read", "read", "read", "read", "read"), func([]Call) error { return nil },
			func(_ []Call, results []Result) error {
				if r := results[4]; r.Text != prefix+"cancelled by the user before it ran" || r.Code != CodeCancelled {
					t.Errorf("%+v", r)
				}
				return nil
			})
		if !errors.Is(err, context.Canceled) || len(l.events) != 2*MaxParallel {
			t.Errorf("%v, ran %v", err, l.events)
		}
	})
}

// A hook that cannot write its journal ends the round before more is done.
func TestRoundHooksFail(t *testing.T) {
	full := errors.New("disk full")
	for _, c := range []struct {
		failStart, failFinish string
		want                  int // calls that ran
	}{
		{"c", "", 2},
		{"", "ab", 2},
		{"", "d", 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			var l lab
			fail := func(when, now string) error {
				if when == now {
					return full
				}
				return nil
			}
			err := l.kit(t).Round(t.Context(), round("read", "read", "exec", "read"),
				func(calls []Call) error { return fail(c.failStart, ids(calls)) },
				func(calls []Call, _ []Result) error { return fail(c.failFinish, ids(calls)) })
			if !errors.Is(err, full) || len(l.events) != 2*c.want {
				t.Errorf("%+v: ran %v, %v", c, l.events, err)
			}
		})
	}
}

// C-039, P14: what happens when a call's time is up.
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
		synctest.Test(t, func(t *testing.T) {
			u := echo("a", anything)
			u.Run, u.Timeout = c.run, c.limit
			var strays Strays
			k, err := NewKit(t.Context(), Scope{}, []Source{Fixed{u}}, Standard(StandardConfig{Strays: &strays})...)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			r := k.Call(t.Context(), callTo("a", ""))
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

// A stop does not wait for a deaf tool, nor does it hide what a good one has done.
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
		synctest.Test(t, func(t *testing.T) {
			u := echo("a", anything)
			u.Run = c.run
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			start := time.Now()
			time.AfterFunc(time.Second, cancel)
			if r := kitOf(t, u).Call(ctx, callTo("a", "")); r.Text != c.want || time.Since(start) != c.took {
				t.Errorf("%s: %+v after %v; want %q", c.name, r, time.Since(start), c.want)
			}
			time.Sleep(time.Hour) // for the deaf one
		})
	}
}
