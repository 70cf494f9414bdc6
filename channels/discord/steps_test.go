package discord_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"parley/channels"
	"parley/channels/discord/discordtest"
	"parley/chat"
	"parley/store/mem"
)

// C-008: one message shows the steps and becomes the answer, with one line for
// them, and unfurls nothing (R-S13).
func TestC008Card(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	room := h.DM("7")
	hub := channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)})
	hub.Add("discord", h.ch)
	ctx, stop := context.WithCancel(t.Context())
	var live sync.WaitGroup
	defer live.Wait()
	defer stop()
	live.Go(func() { _ = hub.Work(ctx) })
	shows := func(want string) {
		t.Helper()
		h.wait(func(v discordtest.View) bool {
			ms := v.Messages(room)
			return len(ms) == 1 && ms[0].Text == want && !ms[0].Preview
		})
	}
	r := chat.Reply{ID: "r", To: dm("7")}
	view := hub.Live(ctx, r)
	view.Step(chat.Step{Call: "1", Tool: "web_fetch", State: chat.Running, Tip: "https://a.example/x_y <@7>"})
	shows(`> 🔧 web\_fetch https\://a.example/x\_y \<@7\>`)
	view.Step(chat.Step{Call: "1", State: chat.Done})
	view.Show("It is")
	shows("> 🔧 web\\_fetch\n\nIt is")
	view.Close()
	r.Text, r.Steps = "It is noon.", "🔧 web_fetch"
	if err := hub.Send(ctx, r); err != nil {
		t.Fatal(err)
	}
	shows("> 🔧 web\\_fetch\n\nIt is noon.")
	if n := h.Count(create); n != 1 {
		t.Errorf("%d messages were sent", n)
	}
}
