package serve

import (
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/timetest"
)

// What a client missed is there although another caller was sent more than is kept.
func TestEventsOfOthersStay(t *testing.T) {
	e := &events{callers: map[string]*callerEvents{}}
	theirs, mine := bob.newSessionID(), anna.newSessionID()
	for session, data := range map[string]string{mine: "answer", theirs: "x"} {
		if err := e.Open(t.Context(), session, "1"); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"first", data} {
			if err := e.Append(t.Context(), session, "1", []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 20 {
		if err := e.Append(t.Context(), theirs, "1", make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	got := ""
	for data, err := range e.After(t.Context(), mine, "1", 0) {
		if err != nil {
			t.Fatal(err)
		}
		got += string(data)
	}
	if got != "answer" {
		t.Errorf("%q", got)
	}
	for _, err := range e.After(t.Context(), theirs, "1", 0) {
		if err == nil {
			t.Error("there is no bound")
		}
		break
	}
	for _, session := range []string{mine, theirs} {
		if err := e.SessionClosed(t.Context(), session); err != nil {
			t.Error(err)
		}
	}
	if err := e.Append(t.Context(), mine, "1", []byte("too late")); err == nil {
		t.Error("something is kept for a session that was closed")
	}
	for _, err := range e.After(t.Context(), theirs, "1", 0) {
		if err == nil {
			t.Error("something is kept of a session that was closed")
		}
	}
	if len(e.callers) > 0 {
		t.Errorf("%d callers stay", len(e.callers))
	}
}

// The server of a key that nobody uses any more is dropped.
func TestServersOfOthersAreDropped(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		e := newEndpoint(func(caller) *mcp.Server { return newServer("test", mcp.ServerOptions{}) })
		first := e.server(anna)
		timetest.Sleep(sessionTimeout - time.Second)
		e.server(bob)
		if e.server(anna) != first {
			t.Error("one in use was dropped")
		}
		timetest.Sleep(sessionTimeout + time.Second)
		e.server(caller{prefix: "new"})
		if len(e.servers) != 1 {
			t.Errorf("%d servers stay", len(e.servers))
		}
	})
}
