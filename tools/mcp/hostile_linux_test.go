package mcp_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"parley/llm"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
)

// hostile returns the entry of the hostile server, without a sandbox: what must end it ends it there, too.
func hostile(t testing.TB, mode string) *mcp.Server {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := command(self, mcptest.HostileCommand, mode)
	s.Sandbox = "none"
	return s
}

func newHostile(t *testing.T, mode string) *rig {
	return newRig(t, map[string]*mcp.Server{"bad": hostile(t, mode)})
}

// D-031, R-S22: a turn does not wait for a server that hangs, or that does not speak MCP, beyond 10 seconds,
// and later turns do not wait at all; the others are there.
func TestHandshakeThatHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "hang"), "worse": hostile(t, "garbage"), "good": hostile(t, "plain")}, hasty)
	begin := time.Now()
	names := strings.Join(r.names(), " ")
	if took := time.Since(begin); took > 18*time.Second || !strings.Contains(names, "mcp_good_ok") || strings.Contains(names, "bad") {
		t.Errorf("after %v there are %s", took, names)
	}
	begin = time.Now()
	r.names()
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("the second turn waited %v", took)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		bad, worse := r.States()[0], r.States()[2]
		if strings.Contains(bad.LastError, "did not answer the handshake") && worse.LastError != "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v %+v", bad, worse)
		}
	}
}

// R-S22, D-105: names are safe, at most 64 characters long, and different.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "names")
	seen := map[string]bool{}
	for _, name := range r.names() {
		if len(name) > 64 || seen[name] || strings.ContainsFunc(name, func(c rune) bool {
			return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-", c)
		}) {
			t.Errorf("%q", name)
		}
		seen[name] = true
	}
	if !seen["mcp_bad_a_b"] || !seen["mcp_bad_ok"] || len(seen) < 10 {
		t.Errorf("%d names: %v", len(seen), seen)
	}
}

// R-S22: schemas that are too large or none are left out, and the others do no harm.
func TestSchemaBombs(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "bombs")
	names := strings.Join(r.names(), " ")
	for _, not := range []string{"large", "number", "array"} {
		if strings.Contains(names, "mcp_bad_"+not) {
			t.Errorf("%s is there", not)
		}
	}
	kit := r.kit()
	for _, name := range []string{"mcp_bad_ok", "mcp_bad_none", "mcp_bad_circular", "mcp_bad_deep", "mcp_bad_remote"} {
		if got := r.callIn(kit, name, map[string]any{}); got.Failed || got.Text != "fine" {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// R-S22: a result of 50 MB is refused, and the server is there again.
func TestHugeResult(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "plain")
	got := r.call("mcp_bad_huge", nil)
	if !got.Failed || len(got.Text) > 5000 || !strings.Contains(got.Text, "may have taken effect") {
		t.Errorf("%.500s", got.Text)
	}
	r.comesBack()
}

// comesBack waits until the server is connected again.
func (r *rig) comesBack() {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if got := r.call("mcp_bad_ok", nil); !got.Failed {
			return
		}
	}
	r.t.Errorf("it did not come back: %+v", r.States())
}

// isRefused calls a server that has died, again and again, and says whether it is told when the next attempt to
// connect will be, rather than what the server says once it is connected.
func (r *rig) isRefused(kit *tools.Kit) bool {
	r.t.Helper()
	for ; ; time.Sleep(10 * time.Millisecond) {
		got := r.callIn(kit, "mcp_bad_ok", nil)
		if !got.Failed {
			return false
		}
		if !strings.Contains(got.Text, "(MCP tool call failed: NotConnected)") {
			r.t.Fatal(got.Text)
		}
		if strings.Contains(got.Text, "The next attempt to connect is in") {
			if !strings.Contains(got.Text, "the MCP server bad is not connected: the program ended with exit code 3; it wrote: I die") {
				r.t.Error(got.Text)
			}
			return true
		}
	}
}

// D-114: a call during which the server dies is told so at once. It is made again if the tool is read-only,
// and never otherwise.
func TestDeathInMidCall(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "plain")
	kit := r.kit()
	refused := false
	for tries := 0; !refused && tries < 10; tries++ { // on a machine that stalls, the server may be back before anybody calls it
		got := r.callIn(kit, "mcp_bad_die", nil)
		if !got.Failed || !strings.Contains(got.Text, "(MCP tool call failed: ConnectionClosed)") ||
			!strings.Contains(got.Text, "may have taken effect") || !strings.Contains(got.Text, "exit code 3; it wrote: I die") {
			t.Errorf("%s", got.Text)
		}
		refused = r.isRefused(kit)
		r.comesBack()
	}
	if !refused {
		t.Error("calls wait for the next attempt to connect")
	}
	before := r.States()[0].Calls
	got := r.callIn(kit, "mcp_bad_read_and_die", nil)
	if !got.Failed || r.States()[0].Calls != before+2 {
		t.Errorf("%d calls: %s", r.States()[0].Calls-before, got.Text)
	}
	if strings.Contains(got.Text, "taken effect") {
		t.Errorf("it just reads: %s", got.Text)
	}
}

// D-107, C-039: a call ends after its time, and /stop ends it; progress is shown. The server stays connected.
func TestTimeoutAndStop(t *testing.T) {
	t.Parallel()
	s := hostile(t, "plain")
	s.ToolTimeout = 2 * time.Second
	r := newRig(t, map[string]*mcp.Server{"bad": s})
	got := r.call("mcp_bad_wait", nil)
	if !got.Failed || !strings.HasPrefix(got.Text, "Error: (MCP tool call timed out after 2s)") || got.Code != tools.CodeTimeout {
		t.Errorf("%+v", got)
	}
	ctx, stop := context.WithCancel(t.Context())
	var mu sync.Mutex
	var tips []string
	call := tools.Call{ToolCall: llm.ToolCall{ID: "2", Name: "mcp_bad_wait", Args: "{}"}, Scope: r.scope}
	call.Tip = func(text string) {
		mu.Lock()
		defer mu.Unlock()
		tips = append(tips, text)
		stop()
	}
	got = r.kit().Call(ctx, call)
	mu.Lock()
	defer mu.Unlock()
	if got.Code != tools.CodeCancelled || len(tips) == 0 || !strings.HasPrefix(tips[0], "waiting (") {
		t.Errorf("%q, %+v", tips, got)
	}
	if got := r.call("mcp_bad_ok", nil); got.Failed {
		t.Errorf("%+v", got)
	}
	const cancelled = "told that the call is cancelled"
	for end := time.Now().Add(time.Minute); strings.Count(strings.Join(r.States()[0].Stderr, "\n"), cancelled) < 2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the server was not told twice: %+v", r.States()[0])
		}
	}
}

// R-S22: what a server writes to its standard error without end takes no memory, and no time of others.
func TestFloods(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "noisy"), "other": hostile(t, "plain")})
	r.names()
	for _, name := range []string{"mcp_bad_ok", "mcp_other_ok"} {
		if got := r.call(name, nil); got.Failed {
			t.Errorf("%s: %+v", name, got)
		}
	}
	for _, s := range r.States() {
		for _, line := range s.Stderr {
			if len(s.Stderr) > 20 || utf8.RuneCountInString(line) > 401 {
				t.Errorf("%d lines, one of %d characters", len(s.Stderr), len(line))
			}
		}
	}
}

// failsWith waits until the last error of the server bad has text in it, and returns its state.
func (r *rig) failsWith(text string) mcp.State {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		s := r.States()[0]
		if strings.Contains(s.LastError, text) {
			return s
		}
		if time.Now().After(end) {
			r.t.Fatalf("%+v", s)
		}
	}
}

// mostFlooded is how many messages a server can send in a time, with what the pipe and the buffers hold.
func mostFlooded(in time.Duration) int64 {
	return 8192 + int64(in.Seconds()+1)*512 + 5000
}

// R-S22: messages without end are read slowly, while others are served, until their server is ended.
func TestFloodOfMessages(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "flood"), "other": hostile(t, "plain")})
	kit := r.kit()
	if got := r.callIn(kit, "mcp_other_ok", nil); got.Failed {
		t.Errorf("%+v", got)
	}
	state := r.failsWith("it sends messages without end")
	var sent int64
	for _, line := range state.Stderr {
		if _, err := fmt.Sscanf(line, "flood %d", &sent); err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	if most := mostFlooded(time.Since(begin)); sent < 5000 || sent > most {
		t.Errorf("%d messages were read in %v, at most %d may be", sent, time.Since(begin), most)
	}
	if got := r.callIn(kit, "mcp_bad_ok", nil); !got.Failed || !strings.Contains(got.Text, "it sends messages without end") {
		t.Errorf("%+v", got)
	}
}

// R-S22: the messages of an array cannot be limited one by one, and no version that Parley asks for has arrays.
func TestBatchOfMessages(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "batch")
	r.names()
	r.failsWith("it sends several messages as one")
}

// R-S22: a list without end ends.
func TestEndlessList(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "fold")
	if n := len(r.names()); n != 6 {
		t.Errorf("%d tools", n)
	}
}

// D-105: lists that change are followed, however often the server says that they have.
func TestChangingList(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "changes")
	r.call("mcp_bad_ok", nil)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		names := strings.Join(r.names(), " ")
		if strings.Contains(names, "mcp_bad_renamed_") && !strings.Contains(names, "mcp_bad_die") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("there are %s", names)
		}
	}
}

// stateOf returns how a process is, "" if it is no more.
func stateOf(pid string) string {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	if strings.HasPrefix(state, "Z") {
		return ""
	}
	return string(stat)
}

// R-S22: a server that ignores signals, and what it has started, are gone before the next connection begins,
// and at the end.
func TestStubbornServer(t *testing.T) {
	t.Parallel()
	r := newHostile(t, "stubborn")
	first := r.call("mcp_bad_pid", nil).Text
	if err := r.Reconnect("bad"); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		got := r.call("mcp_bad_pid", nil)
		if !got.Failed && got.Text != first {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it is still %s: %+v", first, got)
		}
	}
	if state := stateOf(first); state != "" {
		t.Errorf("the first process, %s, is alive: %s", first, state)
	}
	second := r.call("mcp_bad_pid", nil).Text
	r.Use(nil)
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if stateOf(second) == "" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("process %s is alive, although config does not have the server any more", second)
		}
	}
}
