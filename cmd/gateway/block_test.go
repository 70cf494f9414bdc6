package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm"
	"parley/llm/llmtest"
	"parley/tools/network/networktest"
)

// TestBlock: whoever is blocked on the page gets no answer any more, what runs for them is stopped, what waits for them
// is not begun, and others go on; the block outlives a restart, and once it is taken back they are heard again.
func TestBlock(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{}, 10)
	s := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if strings.HasPrefix(spokenLast(r), "think for ever") {
			begun <- struct{}{}
			<-ctx.Done()
			return llmtest.Reply{}
		}
		return echo(ctx, r)
	})
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	s.start()
	owner := s.visit()
	const who, other = person + 1, person // an owner
	id := map[string]string{"id": fmt.Sprint("telegram:", who)}
	s.tg.Say(who, "think for ever")
	<-begun
	if status, body := owner.do("POST", "/api/people/block", id); status != 204 {
		t.Fatalf("block: %d %s", status, body)
	}
	s.told(who, "the end of the turn", func(texts []string) bool {
		return len(texts) == 1 && strings.Contains(texts[0], "topped")
	})
	silent := func() {
		t.Helper()
		s.tg.Say(who, "are you there?")
		s.answers(other, s.tg.Say(other, "hello"), "hello")
		if got := botTexts(s.tg.Chat(who)); len(got) != 1 {
			t.Errorf("who is blocked was told %q", got)
		}
	}
	silent()
	s.stop()
	s.start()
	s.base()
	silent()
	if status, body := owner.do("POST", "/api/people/unblock", id); status != 204 {
		t.Fatalf("unblock: %d %s", status, body)
	}
	s.tg.Say(who, "and now?")
	s.told(who, "an answer", func(texts []string) bool { return len(texts) == 2 && strings.HasSuffix(texts[1], "and now?") })
	if out, code := s.run("", "audit"); code != 0 || !strings.Contains(out, "blocked: "+id["id"]) || !strings.Contains(out, "unblocked: "+id["id"]) {
		t.Errorf("the audit log says %s", out)
	}
	status, body := owner.do("POST", "/api/config/check", map[string]any{"text": `{"owners": []}`})
	if status != 200 || !strings.Contains(body, "owners: one is needed at least") {
		t.Errorf("the last owner is taken away: %d %s", status, body)
	}
}

// TestBlockedStream: the stream of somebody's page ends when they are blocked, and nobody else's does.
func TestBlockedStream(t *testing.T) {
	t.Parallel()
	s := newTestGateway(t, echo)
	s.start()
	owner := s.visit()
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	open := func(v *visitor) io.ReadCloser {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, "GET", v.base+"/c/"+v.conversation()+"/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := v.Do(req)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", resp, err)
		}
		return resp.Body
	}
	theirs, other := open(s.invite("anna")), open(s.invite("bert"))
	defer theirs.Close()
	defer other.Close()
	if status, body := owner.do("POST", "/api/people/block", map[string]string{"id": "web:anna"}); status != 204 {
		t.Fatalf("block: %d %s", status, body)
	}
	if _, err := io.Copy(io.Discard, theirs); ctx.Err() != nil {
		t.Fatalf("the stream goes on: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, other)
	}()
	select {
	case <-ended:
		t.Error("the stream of somebody else has ended")
	case <-time.After(100 * time.Millisecond):
	}
	cancel()
	<-ended
}

// TestBlockedGroup: in a group that is blocked its members are not heard any more. Owners are, and what runs for them
// there goes on: a turn, and a command in the background.
func TestBlockedGroup(t *testing.T) {
	t.Parallel()
	const group, guest = -1009, 8009
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	file := filepath.Join(t.TempDir(), "pid")
	s := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		last := spokenLast(r)
		switch {
		case strings.Contains(last, "think"):
			begun <- struct{}{}
			<-goOn
			return llmtest.Reply{Text: "thought"}
		case strings.Contains(last, "run it") && len(results(r)) == 0:
			args := `{"command": "echo $$ >> ` + file + `; sleep 300", "background": true}`
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: "c" + rand.Text(), Name: "exec", Args: args}}}
		}
		return llmtest.Reply{Text: "heard " + last}
	})
	s.more["http"] = map[string]any{"listen": networktest.FreeAddress(t)}
	s.more["tools"] = map[string]any{"exec": map[string]any{"sandbox": "none"}}
	s.start()
	owner := s.visit()
	say := func(who int64, text string) { s.tg.Say(group, "@parleybot "+text, telegramtest.As(who, "Ada")) }
	say(person, "run it")
	var pid string
	waitFor(t, "the command", func() bool {
		text, _ := os.ReadFile(file)
		pid = strings.TrimSpace(string(text))
		return strings.HasSuffix(string(text), "\n")
	})
	s.endLater(pid)
	s.told(group, "that it runs", func(texts []string) bool { return toldOf(texts, "heard") })
	say(person, "think")
	<-begun
	if status, body := owner.do("POST", "/api/people/block", map[string]string{"id": fmt.Sprint("telegram:", group)}); status != 204 {
		t.Fatalf("block: %d %s", status, body)
	}
	close(goOn)
	s.told(group, "the end of the turn", func(texts []string) bool { return toldOf(texts, "thought") })
	if err := syscall.Kill(number(pid), 0); err != nil {
		t.Errorf("the owner's command has ended: %v", err)
	}
	say(guest, "are you there?")
	say(person, "thanks")
	s.told(group, "an answer to the owner", func(texts []string) bool { return toldOf(texts, "thanks") })
	if toldOf(botTexts(s.tg.Chat(group)), "are you there") {
		t.Error("a member of a blocked group is answered")
	}
}
