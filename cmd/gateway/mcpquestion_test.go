package main

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
)

// TestMCPQuestionSurvives: P3: a question that a client asks a person is still good, and the answer reaches the
// client, when the gateway is stopped and started meanwhile, and when the client loses its connection and asks
// again under the same key. A client that cancels takes the question back.
func TestMCPQuestionSurvives(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	w.base()
	piped := w.mcpOverStdio(t)
	ask := func(ctx context.Context, c *mcpClient, text, key string) <-chan string {
		answer := make(chan string, 1)
		go func() {
			out, failure := c.call(ctx, "ask_person", map[string]any{
				"question": text, "choices": []string{"yes", "no"}, "key": key,
			})
			choice, _ := out["choice"].(string)
			answer <- choice + failure
		}()
		return answer
	}
	gets := func(answer <-chan string, want string) {
		t.Helper()
		select {
		case got := <-answer:
			if got != want {
				t.Errorf("the client gets %q, want %q", got, want)
			}
		case <-time.After(waitTime):
			t.Fatalf("the client does not get %q", want)
		}
	}

	answer := ask(t.Context(), piped, "before a restart?", "")
	q := w.asks(person, "before a restart?")
	if code := w.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	w.start()
	base := w.base()
	w.tg.Press(person, q.ID, 0)
	gets(answer, "yes")

	key := w.key("owner")
	lost, cut := context.WithCancelCause(t.Context())
	first := ask(lost, mustDial(t, base, key, "2026-07-28"), "before a cut?", "k")
	q = w.asks(person, "before a cut?")
	cut(errors.New("the network is gone"))
	<-first
	again := ask(t.Context(), mustDial(t, base, key, "2026-07-28"), "before a cut?", "k")
	w.tg.Press(person, q.ID, 1)
	gets(again, "no")

	cancelled, cancel := context.WithCancel(t.Context())
	ask(cancelled, piped, "cancelled?", "")
	w.asks(person, "cancelled?")
	cancel()
	w.shows(person, "that nobody waits any more", func(m telegramtest.Message) bool {
		return m.FromBot() && len(m.Buttons) == 0 && strings.Contains(m.Text, "cancelled?")
	})
}
