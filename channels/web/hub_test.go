package web

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	"parley/channels"
	"parley/channels/admission"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
)

// The channel as the Hub uses it: a question in the middle of an answer in the
// making, pressed by the person, settled on the page, and the answer once.
func TestWithHub(t *testing.T) {
	s := mem.New()
	h := open(t, s)
	hub := channels.NewHub(channels.Config{Store: s, Log: quiet})
	hub.Add("web", h.Channel)
	access, err := admission.NewRules(nil, map[string][]string{"web": {"anna"}})
	if err != nil {
		t.Fatal(err)
	}
	hub.Access().SetRules(access)
	ctx, stop := context.WithCancel(context.Background())
	var live sync.WaitGroup
	live.Go(func() { _ = hub.Work(ctx) })
	live.Go(func() {
		_ = hub.Receive(ctx, func(_ context.Context, m chat.Message) error {
			live.Go(func() { turn(ctx, hub, m) })
			return nil
		})
	})
	defer live.Wait()
	defer stop()
	b := h.watch("anna", firstID, "")
	until(t, "the message is taken", func() bool {
		res, _ := h.do("anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "delete it"})
		return res.StatusCode == http.StatusAccepted
	})
	until(t, "the question is put, and the answer in the making", func() bool {
		es := b.entries()
		return len(es) == 2 && es[1].Ask != nil && len(b.all("draft")) > 0 && len(b.all("step")) > 0
	})
	ask := b.entries()[1].Ask
	h.must(http.StatusAccepted, "anna", "POST", "/c/first/answer", words{"id": "press-001", "question": ask.ID, "choice": 1})
	until(t, "all is said", func() bool { return len(b.entries()) == 3 })
	until(t, "the question is settled", func() bool { return b.entries()[1].Outcome != nil })
	if e := b.entries()[2]; e.Text != "You said no." || e.Replies != "message-1" {
		t.Errorf("the answer is %+v", e)
	}
}

// P1 P3 P19: the note that the disk is full is no answer, so that what waits is
// taken when the page sends it again.
func TestP19WaitsThroughAFullDisk(t *testing.T) {
	s := mem.New()
	h := open(t, s)
	hub := channels.NewHub(channels.Config{Store: s, Log: quiet})
	hub.Add("web", h.Channel)
	access, err := admission.NewRules(nil, map[string][]string{"web": {"anna"}})
	if err != nil {
		t.Fatal(err)
	}
	hub.Access().SetRules(access)
	ctx, stop := context.WithCancel(context.Background())
	var live sync.WaitGroup
	var isFull, heard atomic.Bool
	isFull.Store(true)
	live.Go(func() { _ = hub.Work(ctx) })
	live.Go(func() {
		_ = hub.Receive(ctx, func(context.Context, chat.Message) error {
			if isFull.Load() {
				return store.ErrFull
			}
			heard.Store(true)
			return nil
		})
	})
	defer live.Wait()
	defer stop()
	b := h.watch("anna", firstID, "")
	say := func() int {
		res, _ := h.do("anna", "POST", "/c/first/messages", words{"id": "message-1", "text": "hello"})
		return res.StatusCode
	}
	until(t, "the person is told", func() bool { return say() >= 500 && len(b.entries()) == 2 })
	if code := say(); code < 500 {
		t.Errorf("said again: %d, and nobody heard it", code)
	}
	isFull.Store(false)
	if code := say(); code != http.StatusAccepted || !heard.Load() {
		t.Errorf("with space again: %d, heard: %t", code, heard.Load())
	}
}

// turn answers m as an agent does.
func turn(ctx context.Context, hub *channels.Hub, m chat.Message) {
	r := m.Reply()
	view := hub.Live(ctx, r)
	view.Show("Let me see…")
	view.Step(chat.Step{Call: "c1", Tool: "delete", State: chat.Running})
	c, err := hub.Questions().Ask(ctx, chat.Reply{ID: "ask:" + m.Key(), To: m.At, Text: "Shall I?",
		Ask: &chat.Question{ID: "q1", Choices: []string{"yes", "no"}, Whom: m.From.ID}})
	view.Close()
	if err != nil {
		return
	}
	r.Text = fmt.Sprintf("You said %s.", c.Text)
	_ = hub.Send(ctx, r)
}
