package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"parley/llm/llmtest"
)

// A codingSession is a coding agent that runs parley mcp serve --channel and speaks the channel extension.
type codingSession struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.Writer
	heard chan codingEvent
}

// A codingEvent is what the agent is sent.
type codingEvent struct {
	ID     int
	Method string
	Params struct {
		Content   string
		Meta      map[string]string
		RequestID string `json:"request_id"`
		Behavior  string
	}
	Result struct {
		IsError      bool
		Content      []struct{ Text string }
		Capabilities struct{ Experimental map[string]any }
	}
}

// code begins a coding session.
func (w *testGateway) code(t *testing.T) *codingSession {
	t.Helper()
	s := &codingSession{t: t, cmd: w.command("mcp", "serve", "--channel", "code"), heard: make(chan codingEvent, 100)}
	in, err := s.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s.in = in
	t.Cleanup(s.kill)
	go func() {
		defer close(s.heard)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e codingEvent
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Errorf("%s: %v", lines.Text(), err)
			}
			s.heard <- e
		}
	}()
	s.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"coder","version":"1"}}}`)
	can := s.hears("the handshake", func(e codingEvent) bool { return e.ID == 1 }).Result.Capabilities.Experimental
	if can["claude/channel"] == nil || can["claude/channel/permission"] == nil {
		t.Errorf("capabilities %v", can)
	}
	s.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *codingSession) say(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
}

func (s *codingSession) kill() {
	_ = s.cmd.Process.Kill() // it may have ended
	for range s.heard {
	}
	_ = s.cmd.Wait()
}

// hears waits for an event.
func (s *codingSession) hears(what string, ok func(codingEvent) bool) codingEvent {
	s.t.Helper()
	late := time.After(waitTime)
	for {
		select {
		case e, open := <-s.heard:
			if !open {
				s.t.Fatalf("%s: parley mcp serve has ended", what)
			}
			if ok(e) {
				return e
			}
		case <-late:
			s.t.Fatalf("%s does not come", what)
		}
	}
}

// pushed waits for the next message that is pushed, which must have that text, and returns its ID.
func (s *codingSession) pushed(text string) string {
	s.t.Helper()
	e := s.hears(text, func(e codingEvent) bool { return e.Method == "notifications/claude/channel" })
	p := e.Params
	if p.Content != text || p.Meta["chat_id"] != fmt.Sprintf("telegram:%d", person) || p.Meta["message_id"] == "" {
		s.t.Fatalf("pushed %+v, want %q", p, text)
	}
	return p.Meta["message_id"]
}

// TestMCPCodingSession: a coding session and a person talk to each other with nothing lost and nothing twice while
// the session, or the gateway, is away or killed; and the person decides what the session asks leave for.
func TestMCPCodingSession(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	w.base()
	w.tg.Say(person, "/code first")
	w.says(person, "code is not connected now. It will get this when it is.")
	w.kill()
	w.start()
	w.base()

	s := w.code(t)
	id := s.pushed("first")
	s.kill() // before it has read that
	s = w.code(t)
	if again := s.pushed("first"); again != id {
		t.Errorf("message %s, and later %s", id, again)
	}
	w.kill() // the session waits meanwhile
	w.start()
	reply := `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"reply","arguments":{"message_id":"` + id + `","text":"done"}}}`
	for n := 2; n < 4; n++ {
		s.say(fmt.Sprintf(reply, n))
		if e := s.hears("the reply", func(e codingEvent) bool { return e.ID == n }); e.Result.IsError {
			t.Errorf("reply %d: %+v", n, e)
		}
	}
	w.sentOnce(person, "💻 code: done")
	s.kill()

	s = w.code(t)
	w.tg.Say(person, "/code @other nothing for this one")
	w.tg.Say(person, "/code second")
	s.pushed("second") // and not the first again, which is answered

	const ask = `{"jsonrpc":"2.0","method":"notifications/claude/channel/permission_request","params":{"request_id":"%s","tool_name":"Bash","description":"remove files","input_preview":"rm -r %[1]s"}}`
	for n, want := range []string{"allow", "deny"} {
		id := "abcd" + want[:1]
		s.say(fmt.Sprintf(ask, id))
		q := w.asks(person, "rm -r "+id)
		if !strings.Contains(q.Text, "wants to use Bash. It says:") {
			t.Errorf("asked %q", q.Text)
		}
		w.tg.Press(person, q.ID, n)
		got := s.hears("the permission", func(e codingEvent) bool { return e.Method == "notifications/claude/channel/permission" })
		if got.Params.RequestID != id || got.Params.Behavior != want {
			t.Errorf("permission %+v, want %s", got.Params, want)
		}
	}
}
