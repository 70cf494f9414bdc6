package telegram_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store/mem"
	"parley/timetest"
)

// C-008, C-017: one message shows the steps, streams and becomes the answer, edited
// at most once a second. D-087: its button has the choice as its label.
func TestC008Card(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		hub := channels.NewHub(channels.Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)})
		hub.Add("telegram", h.ch)
		access, err := admission.NewRules([]string{"telegram:7"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		hub.Access().SetRules(access)
		ctx, stop := context.WithCancel(t.Context())
		var live sync.WaitGroup
		defer live.Wait()
		defer stop()
		received := make(chan chat.Message, 10)
		live.Go(func() { _ = hub.Work(ctx) })
		live.Go(func() {
			_ = hub.Receive(ctx, func(_ context.Context, m chat.Message) error { received <- m; return nil })
		})
		h.Say(7, "When is low tide?")
		m := <-received
		r := m.Reply()
		view := hub.Live(ctx, r)
		shows := func(want string) {
			t.Helper()
			timetest.Sleep(1100 * time.Millisecond)
			if got := h.last(7); got.Text != want || !got.FromBot() {
				t.Errorf("shown %q, want %q", got.Text, want)
			}
		}
		step := chat.Step{Call: "1", Tool: "web_search", State: chat.Waiting, Began: time.Now()}
		view.Step(step)
		shows("⏳ web_search")
		step.State, step.Tip = chat.Running, "tide <b> *table*"
		view.Step(step)
		shows("🔧 web_search tide <b> *table*")
		step.State, step.Ended = chat.Done, step.Began.Add(4*time.Second)
		view.Step(step)
		shows("✅ web_search tide <b> *table*")
		for i := range 20 {
			view.Show("At **noon**"[:i/2+1])
			timetest.Sleep(100 * time.Millisecond)
		}
		view.Show("At **noon**")
		shows("🔧 web_search – 4 s\n\nAt noon")
		view.Close()
		r.Text, r.Steps = "At **noon**. Shall I wake you?", chat.Sum([]chat.Step{step}, nil)
		r.Ask = &chat.Question{ID: "q1", Choices: []string{"Please do", "No"}, Whom: "7", Say: true}
		if err := hub.Send(ctx, r); err != nil {
			t.Fatal(err)
		}
		shows("🔧 web_search – 4 s\n\nAt noon. Shall I wake you?")
		if n := len(h.Chat(7)); n != 2 || h.Count("sendMessage") != 1 || h.Count("editMessageText") > 8 {
			t.Errorf("%d messages, %d sent, %d edits", n, h.Count("sendMessage"), h.Count("editMessageText"))
		}
		h.Press(7, h.last(7).ID, 0)
		pressed := <-received
		if pressed.Text != "Please do" || pressed.At != m.At || pressed.From.ID != "7" || pressed.From.Role != chat.Owner {
			t.Errorf("received %+v", pressed)
		}
		synctest.Wait()
		shows("🔧 web_search – 4 s\n\nAt noon. Shall I wake you?\n\n✓ Please do — " + pressed.From.Name)
		if got := h.last(7); len(got.Buttons) > 0 || got.Preview {
			t.Errorf("shown %+v", got)
		}
	})
}
