package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/llm/llmtest"
)

// TestClockIsWrong: a message is as old as it is, though the wall clock is a day
// ahead, from the start or while the message waits: it is answered (P23).
func TestClockIsWrong(t *testing.T) {
	t.Parallel()
	begun, open := make(chan struct{}), make(chan struct{})
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if spokenLast(r) == "hang" {
			close(begun)
			select {
			case <-open:
			case <-ctx.Done():
			}
		}
		return echo(ctx, r)
	})
	w.more["agent"] = map[string]any{"maxConcurrentTurns": 1}
	w.clock = &wallClock{}
	w.start()
	w.tg.Say(person, "hang")
	<-begun
	w.tg.Say(person+1, "I can wait")
	for late := time.Now().Add(waitTime); !strings.Contains(w.status(), "messages not answered yet: 2"); soon(t.Context()) {
		if time.Now().After(late) {
			t.Fatalf("the message does not wait: %s", w.status())
		}
	}
	w.clock.set(25 * time.Hour)
	close(open)
	w.says(person+1, "heard I can wait")

	w.kill()
	w.start()
	w.tg.Say(person, "hello")
	w.says(person, "heard hello")
}

// TestClockIsWrongAtFirst: a gateway that comes to Discord while its clock is a
// day ahead does not take what is said later for something old: what was said
// while it was dead is answered (P1, P23).
func TestClockIsWrongAtFirst(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.discord(discordtest.Config{})
	w.clock = &wallClock{}
	w.clock.set(25 * time.Hour)
	w.start()
	w.online()
	w.kill()
	at := onDiscord{w, func(string) {}}
	at.say(0, "said meanwhile")
	w.clock.set(0)
	w.start()
	w.online()
	at.say(0, "and now?")
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	said, err := at.wait(ctx, 0, func(texts []string) bool {
		all := strings.Join(texts, "\n")
		return strings.Contains(all, "and now?") && strings.Contains(all, "said meanwhile")
	})
	if err != nil {
		t.Errorf("%v: the bot said %q", err, said)
	}
}
