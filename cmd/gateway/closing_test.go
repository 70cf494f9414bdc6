package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/llm/llmtest"
)

// TestP16AnswerWhileClosing: whoever waits at a terminal for the answer of a
// turn under way gets it though the gateway was told to end.
func TestP16AnswerWhileClosing(t *testing.T) {
	asked, closing := make(chan struct{}), make(chan struct{})
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if r.N == 1 {
			close(asked)
		}
		select {
		case <-closing:
		case <-ctx.Done():
		}
		return llmtest.Reply{Text: "just in time"}
	})
	w.start()
	socket := filepath.Join(w.dir, "parley.sock")
	until := func(there bool) {
		for _, err := os.Stat(socket); (err == nil) != there; _, err = os.Stat(socket) {
			select {
			case <-time.After(time.Millisecond):
			case <-w.proc.ended:
				t.Fatal("the gateway ended")
			}
		}
	}
	until(true)
	type end struct {
		out  string
		code int
	}
	ended := make(chan end, 1)
	go func() {
		out, code := w.run("", "chat", "-m", "hurry")
		ended <- end{out, code}
	}()
	<-asked
	if err := w.proc.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until(false) // nobody is let in any more
	close(closing)
	if e := <-ended; e.code != 0 || strings.TrimSpace(e.out) != "just in time" {
		t.Errorf("exit code %d, output %q", e.code, e.out)
	}
	<-w.proc.ended
	if code := w.proc.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("the gateway's exit code is %d", code)
	}
}
