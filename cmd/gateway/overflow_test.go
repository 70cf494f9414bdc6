package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/llm/llmtest"
)

// runaway returns the text of an answer that would be a thousand messages on Discord. It is no variable: this program
// is also each gateway that tests start, and those would all make two megabytes first.
func runaway() string {
	return strings.Repeat("This answer **does not end**, `whatever` is asked of it.\n", 36_000)
}

// keepsGoing answers "go on" without end, and is obedient otherwise.
func keepsGoing(ctx context.Context, r llmtest.Request) llmtest.Reply {
	if spokenLast(r) == "go on" {
		return llmtest.Reply{Text: runaway(), Piece: 4 << 10} // smaller pieces keep a race detector busy for minutes
	}
	return obedient(ctx, r)
}

// answerKept returns the name of the one whole answer that is kept for who.
func (w *testGateway) answerKept(who chat.Person) string {
	w.t.Helper()
	folder := filepath.Join(w.dir, "workspace", who.InboxFolder(), "answers")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		w.t.Fatalf("%d answers of %s are kept, %v", len(entries), who, err)
	}
	if text, err := os.ReadFile(filepath.Join(folder, entries[0].Name())); err != nil || string(text) != strings.TrimSpace(runaway()) {
		w.t.Errorf("%d bytes are kept of %d, %v", len(text), len(runaway()), err)
	}
	return who.InboxFolder() + "/answers/" + entries[0].Name()
}

// TestRunawayAnswer: an answer that does not end is ten messages and a file with
// all of it, also if the process is killed meanwhile. It is for whom it was made.
func TestRunawayAnswer(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, keepsGoing)
	w.discord(discordtest.Config{})
	w.start()
	w.online()
	for kill := range 3 {
		who := int64(guest + 10 + kill)
		begun := make(chan struct{})
		w.tg.Watch(func(e telegramtest.Event) {
			sends := e.Method == "sendMessage" && kill == 0 || e.Method == "sendDocument" && kill > 0
			if sends && e.Chat == who && e.Done == (kill == 2) {
				select {
				case <-begun:
				default:
					_ = w.proc.cmd.Process.Kill() // it cannot have ended
					close(begun)
				}
			}
		})
		w.tg.Say(who, "go on")
		select {
		case <-begun:
		case <-time.After(waitTime):
			t.Fatal("nothing is sent")
		}
		w.kill()
		w.start()
		w.told(who, "the file", func(texts []string) bool { return len(texts) > 10 })
		texts := botTexts(w.tg.Chat(who))
		w.does(who, `list_dir {"path": "."}`) // so that nothing more comes
		if got := w.received(who); len(texts) != 11 || len(got) != 1 || got[0] != strings.TrimSpace(runaway()) || texts[9] != "The rest is in the attached file." {
			t.Errorf("kill %d: %d messages and %d files: number 10 is %.100q", kill, len(texts), len(got), texts[min(9, len(texts)-1)])
		}
		name := w.answerKept(chat.Person(fmt.Sprint("telegram:", who)))
		if said := w.does(guest, fmt.Sprintf(`read_file {"path": %q}`, name)); !strings.Contains(said, "is not for this conversation") {
			t.Errorf("another guest reads %s: %.200s", name, said)
		}
		if said := w.does(who, fmt.Sprintf(`read_file {"path": %q, "limit": 2}`, name)); !strings.Contains(said, "does not end") {
			t.Errorf("who asked cannot read %s: %.200s", name, said)
		}
	}

	w.online()
	w.dc.Fail("POST /channels/{id}/messages", discordtest.Fault{Uploads: true, Times: -1, Status: 403, Code: 50013})
	room := w.dc.DM(fmt.Sprint(guest))
	w.dc.Say(room, fmt.Sprint(guest), "", "go on")
	ctx, cancel := context.WithTimeout(t.Context(), waitTime)
	defer cancel()
	var bots []string
	err := w.dc.WaitChat(ctx, room, func(ms []discordtest.Message) bool {
		bots = nil
		for _, m := range ms {
			if m.FromBot() {
				bots = append(bots, m.Text)
			}
		}
		return len(bots) > 10
	})
	name := w.answerKept(chat.Person(fmt.Sprint("discord:", guest)))
	if err != nil || len(bots) != 11 || !strings.Contains(bots[10], "could not be sent") || !strings.Contains(bots[10], name) {
		t.Errorf("%v: %d messages, the last is %.300q", err, len(bots), bots[max(0, len(bots)-1)])
	}
	w.dc.Say(room, fmt.Sprint(guest), "", fmt.Sprintf(`call read_file {"path": %q, "limit": 2}`, name))
	err = w.dc.WaitChat(ctx, room, func(ms []discordtest.Message) bool {
		last := ms[len(ms)-1]
		return last.FromBot() && strings.Contains(last.Text, "the tools say") && strings.Contains(last.Text, "does not end")
	})
	if err != nil {
		t.Errorf("who asked cannot read %s: %v", name, err)
	}
}
