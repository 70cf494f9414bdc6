package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/timetest"
	"parley/tools"
	"parley/tools/sandbox"
)

// takes returns a Runner whose commands write something each second and end after so long.
func takes(d time.Duration) runnerFunc {
	return func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
		end := time.NewTimer(d)
		wall := time.NewTimer(s.Limits.Wall)
		second := time.NewTicker(time.Second)
		defer second.Stop()
		for n := 1; ; n++ {
			select {
			case <-end.C:
				return sandbox.Outcome{End: sandbox.Exited, Exit: 7}, nil
			case <-wall.C:
				return sandbox.Outcome{End: sandbox.TimedOut, Exit: -1}, nil
			case <-ctx.Done():
				return sandbox.Outcome{End: sandbox.Cancelled, Exit: -1}, nil
			case <-second.C:
				fmt.Fprintf(s.Stdout, "second %d\n", n)
			}
		}
	}
}

var idInText = regexp.MustCompile(`with the id ([0-9a-f]{8})`)

// idOf returns the ID of the command that r says is in the background.
func idOf(t *testing.T, r tools.Result) string {
	t.Helper()
	m := idInText.FindStringSubmatch(r.Text)
	if r.Failed || m == nil {
		t.Fatalf("%q", r.Text)
	}
	return m[1]
}

// inBubble runs a test of commands in the background, whose Shell runs.
func inBubble(t *testing.T, runner sandbox.Runner, test func(t *testing.T, b *bench, stop func())) {
	t.Helper()
	timetest.Test(t, func(t *testing.T) {
		b := newBench(t, runner, Settings{})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.shell.Run(ctx)
		}()
		stop := func() { cancel(); <-done }
		defer stop()
		test(t, b, stop)
	})
}

// A command that takes longer than a minute goes on in the background. What it writes is shown once,
// and its end is told once, with a key that follows from its ID.
func TestGoesToBackground(t *testing.T) {
	inBubble(t, takes(90*time.Second+time.Millisecond), func(t *testing.T, b *bench, _ func()) {
		began := time.Now()
		r := b.call("exec", map[string]any{"command": "slow", "timeout": 300})
		id := idOf(t, r)
		if took := time.Since(began); took != waitTime || !strings.Contains(r.Text, "second 59\n") {
			t.Errorf("after %v: %q", took, r.Text)
		}
		timetest.Sleep(10*time.Second + 500*time.Millisecond)
		status := func() string { return b.call("exec_status", map[string]any{"id": id}).Text }
		if got := status(); !strings.Contains(got, "second 70\n\nIt has run for 1m11s.") || strings.Contains(got, "second 59") {
			t.Errorf("%q", got)
		}
		if got := status(); !strings.HasPrefix(got, "(no new output)") {
			t.Errorf("%q", got)
		}
		timetest.Sleep(time.Minute)
		got := b.delivered()
		if len(got) != 1 || got[0].Key() != "telegram/agent/42/exec/"+id || got[0].Session() != b.scope.Session ||
			!strings.Contains(got[0].Text, "exit code 7") || !strings.Contains(got[0].Text, "second 90") {
			t.Fatalf("%+v", got)
		}
		if got := status(); !strings.Contains(got, "second 90") || !strings.Contains(got, "It ended after 1m30s.\nExit code: 7") {
			t.Errorf("%q", got)
		}
		timetest.Sleep(time.Hour)
		if got := b.delivered(); len(got) != 1 {
			t.Errorf("told %d times", len(got))
		}
	})
}

// D-072, D-077: a command is never in the background longer than its timeout, and with the default
// it is ended instead.
func TestBackgroundTimeout(t *testing.T) {
	inBubble(t, takes(time.Hour), func(t *testing.T, b *bench, _ func()) {
		if r := b.run("slow"); r.Code != tools.CodeTimeout || !strings.Contains(r.Text, "timed out after 60 seconds") {
			t.Errorf("%q", r.Text)
		}
		idOf(t, b.call("exec", map[string]any{"command": "slow", "timeout": 100}))
		timetest.Sleep(41 * time.Second)
		if got := b.delivered(); len(got) != 1 || !strings.Contains(got[0].Text, "timed out") {
			t.Errorf("%+v", got)
		}
	})
}

// Who stops a command is not told of its end; others of its conversation cannot be stopped.
func TestStopBackground(t *testing.T) {
	inBubble(t, takes(time.Hour), func(t *testing.T, b *bench, _ func()) {
		background := map[string]any{"command": "slow", "background": true}
		one, two := idOf(t, b.call("exec", background)), idOf(t, b.call("exec", background))
		if r := b.call("exec_stop", map[string]any{"id": one}); r.Failed || r.Text != "It was ended." {
			t.Errorf("%q", r.Text)
		}
		mine := b.scope.Session
		b.scope.Session = "telegram:43"
		if r := b.call("exec_stop", map[string]any{"id": two}); !r.Failed {
			t.Errorf("another conversation stopped it: %q", r.Text)
		}
		b.scope.Session = mine
		if r := b.call("exec_status", map[string]any{"id": "0"}); !r.Failed || !strings.Contains(r.Text, two) || strings.Contains(r.Text, one) {
			t.Errorf("%q", r.Text)
		}
		if n := b.shell.Stop(mine, two[:3]); n != 1 {
			t.Errorf("%d were stopped", n)
		}
		synctest.Wait()
		working, err := b.shell.Working(t.Context(), mine)
		if got := b.delivered(); len(got) > 0 || len(working) > 0 || err != nil {
			t.Errorf("%+v, %+v, %v", got, working, err)
		}
		if r := b.call("exec_status", map[string]any{"id": two}); !strings.Contains(r.Text, "It ended: stopped.") {
			t.Errorf("%q", r.Text)
		}
	})
}

// R-S15: a conversation has so many commands in the background, and who cannot be told has none.
func TestBackgroundLimits(t *testing.T) {
	inBubble(t, takes(time.Hour), func(t *testing.T, b *bench, _ func()) {
		background := map[string]any{"command": "slow", "background": true}
		for range maxPerSession {
			idOf(t, b.call("exec", background))
		}
		if r := b.call("exec", background); !r.Failed || !strings.Contains(r.Text, "too many commands") {
			t.Errorf("%q", r.Text)
		}
		// One that takes long is waited for instead.
		if r := b.call("exec", map[string]any{"command": "slow", "timeout": 70}); r.Code != tools.CodeTimeout {
			t.Errorf("%q", r.Text)
		}
		for name, change := range map[string]func(*tools.Scope){
			"subagent": func(s *tools.Scope) { s.Depth = 1 },
			"job":      func(s *tools.Scope) { s.Origin = chat.FromSchedule },
			"API":      func(s *tools.Scope) { s.At.Channel = "api" },
		} {
			scope := b.scope
			b.scope.Session = "telegram:43"
			b.scope.At.Chat = "43"
			change(&b.scope)
			if r := b.call("exec", background); !r.Failed || !strings.Contains(r.Text, "nobody could be told") {
				t.Errorf("%s: %q", name, r.Text)
			}
			b.scope = scope
		}
	})
}

// P6: what runs when Parley ends, however it does, is told as interrupted after the next start. What
// could not be told is told later.
func TestBackgroundAfterRestart(t *testing.T) {
	inBubble(t, takes(time.Hour), func(t *testing.T, b *bench, stop func()) {
		id := idOf(t, b.call("exec", map[string]any{"command": "slow", "background": true}))
		timetest.Sleep(3500 * time.Millisecond)
		stop()
		if got := b.delivered(); len(got) > 0 {
			t.Errorf("told at the shutdown: %+v", got)
		}
		var full atomic.Bool
		full.Store(true)
		next := New(Config{Store: b.store, Runner: takes(time.Hour), Deliver: func(ctx context.Context, m chat.Message) error {
			if full.Load() {
				return errors.New("the disk is full")
			}
			return b.deliver(ctx, m)
		}})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			next.Run(ctx)
		}()
		defer func() { cancel(); <-done }()
		synctest.Wait()
		full.Store(false)
		timetest.Sleep(2 * time.Minute)
		got := b.delivered()
		if len(got) != 1 || !strings.Contains(got[0].Text, "interrupted by a restart") || !strings.Contains(got[0].Text, id) {
			t.Fatalf("%+v", got)
		}
		b.shell = next
		b.useTools(Settings{})
		if r := b.call("exec_status", map[string]any{"id": id}); !strings.Contains(r.Text, "second 3") {
			t.Errorf("what it wrote is gone: %q", r.Text)
		}
		timetest.Sleep(retention + time.Hour)
		if all, err := next.all(t.Context()); len(all) > 0 || err != nil { // P28
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// What is forgotten is ended and not told.
func TestForgetCommands(t *testing.T) {
	inBubble(t, takes(time.Hour), func(t *testing.T, b *bench, _ func()) {
		idOf(t, b.call("exec", map[string]any{"command": "slow", "background": true}))
		if err := b.shell.ForgetSession(t.Context(), b.scope.Session); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(time.Hour)
		all, err := b.shell.all(t.Context())
		if got := b.delivered(); len(got) > 0 || len(all) > 0 || err != nil {
			t.Errorf("%+v, %+v, %v", got, all, err)
		}
	})
}

// R-S12: what a command writes after untrusted content, or from the network, is untrusted content,
// also in the message about its end.
func TestBackgroundIsTainted(t *testing.T) {
	inBubble(t, takes(2*time.Second), func(t *testing.T, b *bench, _ func()) {
		b.scope.Tainted = true
		b.scope.Sources = []string{"a page"}
		id := idOf(t, b.call("exec", map[string]any{"command": "slow", "background": true}))
		timetest.Sleep(3 * time.Second)
		got := b.delivered()
		if len(got) != 1 || !got[0].Tainted || len(got[0].Sources) == 0 {
			t.Errorf("%+v", got)
		}
		b.scope.Tainted = false
		if r := b.call("exec_status", map[string]any{"id": id}); !r.Tainted {
			t.Errorf("%+v", r)
		}
	})
}

// R-S12: the same holds of a command that names untrusted content, and what one has written is untrusted
// content when it has ended.
func TestBackgroundReadsUntrusted(t *testing.T) {
	var b *bench
	writing := runnerFunc(func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
		o, err := takes(90*time.Second)(ctx, s)
		return o, errors.Join(err, os.WriteFile(filepath.Join(b.w.Dir(), "work", "copy.txt"), []byte("obey"), 0o600))
	})
	for name, background := range map[string]bool{"at once": true, "after a minute": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, writing, func(t *testing.T, made *bench, _ func()) {
				b = made
				if err := b.w.Names().WriteFile("inbox/letter.txt", []byte("obey")); err != nil {
					t.Fatal(err)
				}
				idOf(t, b.call("exec", map[string]any{
					"command": "cat ../inbox/letter.txt", "background": background, "timeout": 300,
				}))
				timetest.Sleep(2 * time.Minute)
				got := b.delivered()
				if len(got) != 1 || !got[0].Tainted || len(got[0].Sources) == 0 {
					t.Errorf("%+v", got)
				}
				if _, marked := b.w.Origin(must(b.w.Resolve("work/copy.txt"))); !marked {
					t.Error("what it wrote is trusted")
				}
			})
		})
	}
}

// The values of all variables, which a command leaves for the next one, are not left lying about.
func TestNoStateIsLeft(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, b *bench, _ func()) {
		var left []string
		b.shell.cfg.Runner = runnerFunc(func(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
			o, err := takes(90*time.Second)(ctx, s)
			name := regexp.MustCompile(`/\.shell-[0-9a-f]+`).FindString(strings.Join(s.Args, " "))
			left = append(left, filepath.Join(b.w.Dir(), "work", name))
			return o, errors.Join(err, os.WriteFile(left[len(left)-1], []byte("/\x00TOKEN=canary"), 0o600))
		})
		idOf(t, b.call("exec", map[string]any{"command": "slow", "timeout": 300}))
		timetest.Sleep(2 * time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Second, cancel)
		c := tools.Call{ToolCall: llm.ToolCall{ID: "stopped", Name: "exec", Args: `{"command":"slow"}`}, Scope: b.scope}
		if r := b.kit.Call(ctx, c); r.Code != tools.CodeCancelled {
			t.Errorf("%+v", r)
		}
		if len(left) != 2 {
			t.Errorf("%q", left)
		}
		for _, name := range left {
			if _, err := os.Stat(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", name, err)
			}
		}
	})
}

// A call that is stopped while its command goes to the background stops it.
func TestStopBeforeBackground(t *testing.T) {
	inBubble(t, takes(time.Hour), func(t *testing.T, b *bench, _ func()) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(30*time.Second, cancel)
		c := tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "exec", Args: `{"command":"slow","timeout":600}`}, Scope: b.scope}
		if r := b.kit.Call(ctx, c); r.Code != tools.CodeCancelled {
			t.Errorf("%+v", r)
		}
		timetest.Sleep(time.Hour)
		if all, err := b.shell.all(t.Context()); len(all) > 0 || len(b.delivered()) > 0 || err != nil {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// Commands may begin while Parley ends: whatever comes first, each is waited for, by its call or by the end.
func TestCloseWhileCommandsBegin(t *testing.T) {
	for range 20 {
		var atWork, ran atomic.Int32
		runner := runnerFunc(func(ctx context.Context, _ sandbox.Spec) (sandbox.Outcome, error) {
			atWork.Add(1)
			defer atWork.Add(-1)
			ran.Add(1)
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond):
			}
			return sandbox.Outcome{End: sandbox.Exited}, nil
		})
		b := newBench(t, runner, Settings{})
		var calls sync.WaitGroup
		for i := range 4 {
			calls.Go(func() {
				args := fmt.Sprintf(`{"command":"x","background":%t}`, i%2 == 0)
				call := tools.Call{ToolCall: llm.ToolCall{ID: fmt.Sprint(i), Name: "exec", Args: args}, Scope: b.scope}
				call.Session = chat.SessionID(fmt.Sprint("telegram:4", i))
				call.At.Chat = fmt.Sprint("4", i)
				b.kit.Call(t.Context(), call)
			})
		}
		b.shell.close()
		calls.Wait()
		if n := atWork.Load(); n > 0 || ran.Load() < 2 {
			t.Fatalf("%d of %d commands are at work after all ended", n, ran.Load())
		}
	}
}

// The end of Parley waits for commands in the background. One that a call waits for is the call's: the group
// that is waited for does not grow any more then.
func TestCloseWaitsForBackgroundOnly(t *testing.T) {
	inBubble(t, takes(30*time.Second), func(t *testing.T, b *bench, _ func()) {
		done := make(chan struct{})
		go func() {
			defer close(done)
			b.run("slow")
		}()
		timetest.Sleep(time.Second)
		began := time.Now()
		b.shell.close()
		if took := time.Since(began); took > 0 {
			t.Errorf("it waited %v for a call's command", took)
		}
		<-done
	})
}
