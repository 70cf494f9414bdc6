package channels_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/store/bolt"
)

// P9: on a real disk, a question and a parked reply are there in the next life.
func TestP9AskOnDisk(t *testing.T) {
	dir, f, left := t.TempDir(), &channeltest.Fake{}, make(chan string, 10)
	f.Hook = func(op channeltest.Op) error {
		if op.Reply.ID == "bad" {
			return &channels.Error{Permanent: true, Err: context.Canceled}
		}
		return nil
	}
	life := func(do func(h *channels.Hub)) {
		s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		h := channels.NewHub(channels.Config{Store: s, Log: discard,
			Sent: func(_ string, r chat.Reply, _ time.Duration, _ int, _ error) { left <- r.ID }})
		h.Add("net", f.As(buttons))
		a, _ := admission.NewRules(nil, map[string][]string{"net": {"2"}})
		h.Access().SetRules(a)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = h.Work(ctx) })
		wg.Go(func() { _ = h.Receive(ctx, func(context.Context, chat.Message) error { return nil }) })
		do(h)
		stop()
		wg.Wait()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	life(func(h *channels.Hub) {
		ctx, cancel := context.WithCancel(t.Context())
		if err := h.Send(ctx, reply("bad", "one")); err != nil {
			t.Error(err)
		}
		go func() {
			for <-left != "ask:1" {
			}
			cancel()
		}()
		if c, err := h.Questions().Ask(ctx, shall()); err == nil {
			t.Errorf("%+v", c)
		}
	})
	life(func(h *channels.Hub) {
		if err := f.Say(t.Context(), press("2", "q1", 1)); err != nil {
			t.Error(err)
		}
	})
	life(func(h *channels.Hub) {
		c, err := h.Questions().Ask(t.Context(), shall())
		parked, err2 := h.DeadLetters().List(t.Context())
		if err != nil || c.Index != 1 || c.By.ID != "2" || err2 != nil || len(parked) != 1 || parked[0].Reply.Text != "one" {
			t.Errorf("%+v, %v; %+v, %v", c, err, parked, err2)
		}
	})
	if n := len(f.Shown(room)); n != 1 {
		t.Errorf("asked %d times", n)
	}
}
