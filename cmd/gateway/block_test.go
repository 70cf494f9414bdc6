package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

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
		s.tg.Say(other, "hello")
		s.told(other, "an answer", func(texts []string) bool { return len(texts) > 0 && strings.HasSuffix(texts[len(texts)-1], "hello") })
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
