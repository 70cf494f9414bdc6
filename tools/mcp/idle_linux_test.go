package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp"
)

// awaitPhase waits until the server is in a phase, and returns its state.
func (r *rig) awaitPhase(server string, phase mcp.Phase) mcp.State {
	r.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		states := r.States()
		i := slices.IndexFunc(states, func(s mcp.State) bool { return s.Server == server })
		if states[i].Phase == phase {
			return states[i]
		}
		if time.Now().After(end) {
			r.t.Fatalf("it is not %s: %+v", phase, states[i])
		}
	}
}

// C-018, C-026, C-028: the program of a server that nobody calls is ended, and keeps its tools. The next call
// starts it. One call after another has the same program. Eager servers go on.
func TestIdleServerEnds(t *testing.T) {
	t.Parallel()
	eager := hostile(t, "plain")
	eager.Eager = true
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "plain"), "eager": eager}, func(c *mcp.Config) {
		c.IdleAfter = 2 * time.Second
	})
	first := r.call("mcp_bad_pid", nil).Text
	if again := r.call("mcp_bad_pid", nil).Text; again != first {
		t.Errorf("process %s, then %s", first, again)
	}
	stays := r.call("mcp_eager_pid", nil).Text
	state := r.awaitPhase("bad", mcp.Idle)
	if state.LastError != "" || state.Tools != 6 {
		t.Errorf("%+v", state)
	}
	for end := time.Now().Add(time.Minute); stateOf(first) != ""; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("process %s is alive", first)
		}
	}
	if names := strings.Join(r.names(), " "); !strings.Contains(names, "mcp_bad_ok") {
		t.Errorf("there are %s", names)
	}
	if now := r.States()[0].Phase; now != mcp.Idle {
		t.Errorf("a turn that does not call it has it %s", now)
	}
	second := r.call("mcp_bad_pid", nil)
	if second.Failed || second.Text == first {
		t.Errorf("the process was %s, and is %+v", first, second)
	}
	if now := r.call("mcp_eager_pid", nil).Text; now != stays || r.States()[1].Phase != mcp.Connected {
		t.Errorf("the eager one was %s, and is %s", stays, now)
	}
}

// A call is no time in which nobody uses the server.
func TestCallIsNoIdleTime(t *testing.T) {
	t.Parallel()
	s := hostile(t, "plain")
	s.ToolTimeout = 3 * time.Second
	r := newRig(t, map[string]*mcp.Server{"bad": s}, func(c *mcp.Config) { c.IdleAfter = time.Second })
	if got := r.call("mcp_bad_wait", nil); !strings.Contains(got.Text, "timed out after 3s") {
		t.Errorf("%+v", got)
	}
}

// What is approved of a server while nobody uses it is offered at once.
func TestReviewOfIdleServer(t *testing.T) {
	t.Parallel()
	var approved atomic.Bool
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "plain")}, func(c *mcp.Config) {
		c.IdleAfter = time.Second
		c.Review = func(_ context.Context, _ string, _ mcp.Server, l mcp.Listing, _ bool) (mcp.Listing, error) {
			if !approved.Load() {
				l.Tools = l.Tools[1:]
			}
			return l, nil
		}
	})
	if got := r.call("mcp_bad_ok", nil); !strings.Contains(got.Text, "(MCP tool call failed: Withheld)") {
		t.Errorf("%+v", got)
	}
	r.awaitPhase("bad", mcp.Idle)
	approved.Store(true)
	r.Review("bad")
	for end := time.Now().Add(time.Minute); r.States()[0].Withheld > 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", r.States())
		}
	}
	if state := r.States()[0]; state.Phase != mcp.Idle || state.PID != 0 {
		t.Errorf("%+v", state)
	}
	if got := r.call("mcp_bad_ok", nil); got.Failed {
		t.Errorf("%+v", got)
	}
}

// known has Config.Known answer that all servers offered the tool ok.
func known(c *mcp.Config) {
	c.Known = func(context.Context, string, mcp.Server) (l mcp.Listing, err error) {
		const text = `{"name":"ok","description":"It is there.","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}`
		l.Tools = []*sdk.Tool{{}}
		return l, json.Unmarshal([]byte(text), l.Tools[0])
	}
}

// D-031, D-107: of a server that was connected before a restart, tools are offered at once, however it is. Calls
// wait for the connection, or answer why there is none.
func TestKnownServers(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]*mcp.Server{
		"good": hostile(t, "plain"), "slow": hostile(t, "hang"), "dead": command("sh", "-c", "echo it is broken >&2; exit 7"),
	}, known, hasty)
	begin := time.Now()
	kit := r.kit()
	if took := time.Since(begin); took > handshake/2 {
		t.Errorf("the turn waited %v", took)
	}
	for name, want := range map[string]string{
		"mcp_good_ok": "fine",
		"mcp_slow_ok": "the MCP server slow is not connected: the server did not answer the handshake within 10s. The next attempt",
		"mcp_dead_ok": "the MCP server dead is not connected: the program ended with exit code 7; it wrote: it is broken",
	} {
		got := r.callIn(kit, name, nil)
		if !strings.Contains(got.Text, want) || got.Failed == (want == "fine") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	r.awaitPhase("slow", mcp.Connecting) // the second attempt, which takes as long
	for _, name := range []string{"mcp_dead_ok", "mcp_slow_ok"} {
		begin = time.Now()
		got := r.callIn(kit, name, nil)
		if took := time.Since(begin); !got.Failed || took > handshake/2 {
			t.Errorf("a dead server's tool answers after %v: %+v", took, got)
		}
	}
}

const handshake = 10 * time.Second

// hasty has servers that hang be given up on.
func hasty(c *mcp.Config) { c.Handshake = handshake }

// R-S22: a tool that was approved before a restart, and is another one after it, is not called.
func TestKnownToolChanges(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]*mcp.Server{"bad": hostile(t, "plain")}, known, func(c *mcp.Config) {
		c.Review = func(context.Context, string, mcp.Server, mcp.Listing, bool) (l mcp.Listing, err error) { return l, nil }
	})
	kit := r.kit()
	if got := r.callIn(kit, "mcp_bad_ok", nil); !strings.Contains(got.Text, "(MCP tool call failed: Withheld)") {
		t.Errorf("%+v", got)
	}
	if n := r.States()[0].Calls; n != 0 {
		t.Errorf("it was called %d times", n)
	}
}

// R-S22: if the first use of a server could not be noted, the next turn notes it.
func TestFirstUseIsNoted(t *testing.T) {
	t.Parallel()
	var uses atomic.Int64
	eager := hostile(t, "plain")
	eager.Eager = true
	r := newRig(t, map[string]*mcp.Server{"bad": eager}, func(c *mcp.Config) {
		c.Review = func(_ context.Context, _ string, _ mcp.Server, l mcp.Listing, inUse bool) (mcp.Listing, error) {
			if inUse && uses.Add(1) == 1 {
				return l, errors.New("the disk is full")
			}
			return l, nil
		}
	})
	r.awaitPhase("bad", mcp.Connected)
	for range 3 {
		r.kit()
	}
	if n := uses.Load(); n != 2 {
		t.Errorf("the use was noted %d times, want once after a fault", n)
	}
}
