package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/llm/llmtest"
)

// TestP10ParkedReply: an answer to somebody who has blocked the bot is put
// aside, an owner is told of it and sends it again when that helps: it comes once.
func TestP10ParkedReply(t *testing.T) {
	t.Parallel()
	const friend = 8001
	blocked := make(chan struct{})
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if spokenLast(r) == "tell me later" {
			select {
			case <-blocked:
			case <-ctx.Done():
			}
		}
		return echo(ctx, r)
	})
	dc := w.discord(discordtest.Config{})
	w.start()
	w.online()
	dm := dc.DM(fmt.Sprint(friend))
	w.tg.Say(friend, "tell me later")
	dc.Say(dm, fmt.Sprint(friend), "", "tell me later")
	w.askedFor(2)
	w.tg.Block(friend)
	dc.Refuse(dm, 50007)
	close(blocked)
	w.logs("reply became a dead letter", 2)
	owner := func(command string, want ...string) string {
		t.Helper()
		n := len(botTexts(w.tg.Chat(person)))
		w.tg.Say(person, command)
		texts := w.told(person, "an answer to "+command, func(texts []string) bool { return len(texts) > n })
		for _, part := range want {
			if !strings.Contains(texts[n], part) {
				t.Errorf("%s: %q, without %q", command, texts[n], part)
			}
		}
		return texts[n]
	}
	owner("/status", "could not be sent: 2")
	owner("/parked", "telegram:8001", "discord:@8001", "heard tell me later", "blocked")
	if status, page := w.visit().do("GET", "/owner", nil); status != 200 || strings.Count(page, "heard tell me later") != 2 {
		t.Errorf("the owner's page: %d %s", status, page)
	}
	owner("/resend all", "Sent again: 2")
	w.logs("reply became a dead letter", 4) // it did not help yet
	w.stop()                                // a crash may keep a reply twice
	w.start()
	w.tg.Unblock(friend)
	dc.Refuse(dm, 0)
	owner("/resend all", "Sent again: 2")
	w.says(friend, "heard tell me later")
	w.shown(dm, "the answer", func(m discordtest.Message) bool { return m.Text == "heard tell me later" })
	owner("/resend all", "There is no such reply")
	owner("/status")
	w.tg.Say(friend, "thanks")
	w.says(friend, "heard thanks")
	dc.Say(dm, fmt.Sprint(friend), "", "thanks")
	w.shown(dm, "the next answer", func(m discordtest.Message) bool { return m.Text == "heard thanks" })
	if texts := botTexts(w.tg.Chat(friend)); len(texts) != 2 {
		t.Errorf("telegram shows %q", texts)
	}
	if ms := dc.Messages(dm); len(ms) != 4 {
		t.Errorf("discord shows %+v", ms)
	}
}

// TestMarks: a message whose answer takes time is marked until it is there;
// one that is answered at once is not, which costs no call.
func TestMarks(t *testing.T) {
	t.Parallel()
	asked := make(chan time.Time, 2) // for both chats: their turns before have ended
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		reply := echo(ctx, r)
		if spokenLast(r) == "slow" {
			select {
			case asked <- time.Now():
			default:
			}
			reply.Pause = 1500 * time.Millisecond // after each of two chunks
		}
		return reply
	})
	dc := w.discord(discordtest.Config{})
	for _, name := range []string{"telegram", "discord"} {
		w.channels[name].(map[string]any)["reactions"] = true
	}
	w.start()
	w.online()
	dm := dc.DM(fmt.Sprint(person))
	began := time.Now()
	w.tg.Say(person, "quick")
	dc.Say(dm, fmt.Sprint(person), "", "quick")
	w.says(person, "heard quick")
	w.shown(dm, "the answer", func(m discordtest.Message) bool { return m.Text == "heard quick" })
	slow := w.tg.Say(person, "slow")
	slowest := dc.Say(dm, fmt.Sprint(person), "", "slow")
	<-asked
	quick := (<-asked).Sub(began) < 800*time.Millisecond // not on a machine that is busy
	w.shows(person, "a mark", func(m telegramtest.Message) bool {
		return m.ID == slow && len(m.Reactions) > 0 && slices.Contains([]string{"👀", "✍"}, m.Reactions[0])
	})
	w.shown(dm, "a mark", func(m discordtest.Message) bool { return m.ID == slowest && len(m.Reactions) == 1 })
	w.says(person, "heard slow")
	w.shows(person, "no mark", func(m telegramtest.Message) bool { return m.ID == slow && m.Reactions[len(m.Reactions)-1] == "" })
	w.shown(dm, "the answer", func(m discordtest.Message) bool { return m.Text == "heard slow" })
	w.shown(dm, "the last mark", func(m discordtest.Message) bool { return m.ID == slowest && slices.Equal(m.Reactions, []string{"✅"}) })
	calls := 0
	for _, m := range w.tg.Chat(person) {
		if m.ID == slow {
			calls += len(m.Reactions)
		} else if quick && len(m.Reactions) > 0 {
			t.Errorf("message %q was marked %q", m.Text, m.Reactions)
		}
	}
	if n := w.tg.Count("setMessageReaction"); quick && n != calls {
		t.Errorf("%d calls for %d marks", n, calls)
	}
}
