package telegram_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store/mem"
	"parley/timetest"
	"parley/workspace"
)

// TestOverflow checks that an answer of 4 MB is ten messages and a document with
// all of it. If documents may not be sent, the person is told where it is.
func TestOverflow(t *testing.T) {
	for _, refused := range []bool{false, true} {
		files, err := workspace.Open(filepath.Join(t.TempDir(), "work"))
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open = files.OpenNamed }, func(t *testing.T, h *harness) {
			h.Say(7, "hello")
			hub := channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.NewTextHandler(h.logs, nil)), Files: files})
			hub.Add("telegram", h.ch)
			ctx, stop := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			ended.Go(func() { _ = hub.Work(ctx) })
			defer ended.Wait()
			defer stop()
			if refused {
				h.Fail("sendDocument", telegramtest.Fault{Times: -1, Code: 400, Text: "Bad Request: not enough rights to send documents to the chat"})
			}
			r := answer(7, strings.Repeat("# Chapter\n\nSome **words** of an answer that does not end, with `code`.\n\n```go\nfunc main() {}\n```\n\n", 40_000))
			r.ID, r.For = "re:runaway", "telegram:7"
			if err := hub.Send(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(time.Hour)
			shown := h.shown(7)
			if len(shown) != 11 || shown[9] != "The rest is in the attached file." {
				t.Fatalf("the chat shows %d messages: %.100q", len(shown), shown)
			}
			kept, err := filepath.Glob(filepath.Join(files.Dir(), r.For.InboxFolder(), "answers", "*.md"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept are %q, %v", kept, err)
			}
			if text, err := os.ReadFile(kept[0]); err != nil || string(text) != r.Text {
				t.Errorf("%d bytes are kept of %d, %v", len(text), len(r.Text), err)
			}
			name := filepath.Base(kept[0])
			last := h.last(7)
			switch {
			case refused && (len(last.Files) > 0 || !strings.Contains(last.Text, chat.Person("telegram:7").InboxFolder()+"/answers/"+name)):
				t.Errorf("where the answer is kept is not told: %q", last.Text)
			case !refused && (shown[10] != fmt.Sprint("document ", name) || string(last.Files[0].Data) != r.Text):
				t.Errorf("the last message is %q", shown[10])
			}
		})
	}
}
