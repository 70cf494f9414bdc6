package discord_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/channels"
	"parley/channels/discord"
	"parley/channels/discord/discordtest"
	"parley/chat"
	"parley/store/mem"
	"parley/workspace"
)

// TestOverflow checks that a runaway answer is ten messages and a file with all of
// it. If Discord rejects the file, the person is told where it is.
func TestOverflow(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]discordtest.Fault{
		"taken":       {},
		"not allowed": {Uploads: true, Times: -1, Status: 403, Code: 50013},
		"too large":   {Uploads: true, Times: -1, Status: 413, Code: 40005},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files, err := workspace.Open(filepath.Join(t.TempDir(), "work"))
			if err != nil {
				t.Fatal(err)
			}
			defer files.Close()
			h := newHarness(t, discordtest.Config{}, func(c *discord.Config) { c.Open = files.OpenNamed })
			if h.run(); fault.Uploads {
				h.Fail(create, fault)
			}
			hub := channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.NewTextHandler(h.logs, nil)), Files: files})
			hub.Add("discord", h.ch)
			ctx, stop := context.WithCancel(t.Context())
			var ended sync.WaitGroup
			ended.Go(func() { _ = hub.Work(ctx) })
			defer ended.Wait()
			defer stop()
			r := chat.Reply{ID: "re:runaway", To: dm("7"), For: "discord:7", Text: strings.Repeat("Some **words** of an answer that does not end.\n", 2000)}
			if err := hub.Send(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			room := h.DM("7")
			h.wait(func(v discordtest.View) bool { return len(v.Messages(room)) >= 11 })
			stop()
			ended.Wait()
			ms := h.Messages(room)
			kept, err := filepath.Glob(filepath.Join(files.Dir(), r.For.InboxFolder(), "answers", "*.md"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept are %q, %v", kept, err)
			}
			if text, err := os.ReadFile(kept[0]); err != nil || string(text) != r.Text {
				t.Errorf("%d bytes are kept of %d, %v", len(text), len(r.Text), err)
			}
			last := ms[len(ms)-1]
			if len(ms) != 11 || ms[9].Text != "The rest is in the attached file." {
				t.Errorf("%d messages, and number 10 is %.100q", len(ms), ms[9].Text)
			}
			where := r.For.InboxFolder() + "/answers/" + filepath.Base(kept[0])
			if name == "taken" && (len(last.Files) != 1 || string(last.Files[0].Data) != r.Text) || name != "taken" && !strings.Contains(last.Text, where) {
				t.Errorf("the last message is %q with %d files", last.Text, len(last.Files))
			}
		})
	}
}
