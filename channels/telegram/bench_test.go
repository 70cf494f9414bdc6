package telegram_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store/mem"
)

// start runs a channel over the loopback until stop is called.
func start(tb testing.TB, s *telegramtest.Server, deliver func(*telegram.Channel, chat.Message) error) (stop func()) {
	m := mem.New()
	ch, err := telegram.New(telegram.Config{
		Name: "telegram", Token: s.Token(), APIURL: s.URL, Rate: -1, Dead: m.Log("dead"), Alias: m.Bucket("alias"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		done <- ch.Run(ctx, func(_ context.Context, m chat.Message) error { return deliver(ch, m) })
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			tb.Error(err)
		}
	}
}

// From update to reply, over the loopback, with nothing between.
func BenchmarkEcho(b *testing.B) {
	for _, chats := range []int{1, 64, 1000} {
		b.Run(strconv.Itoa(chats)+"chats", func(b *testing.B) {
			s := telegramtest.NewServer(telegramtest.Config{})
			b.Cleanup(s.Close)
			work := make(chan func(), 100000)
			var workers sync.WaitGroup
			for range 64 {
				workers.Go(func() {
					for f := range work {
						f()
					}
				})
			}
			defer workers.Wait() // the last sends get their answers
			stop := start(b, s, func(ch *telegram.Channel, m chat.Message) error {
				work <- func() {
					r := m.Reply()
					r.Text = m.Text
					if _, err := ch.Send(context.Background(), r); err != nil {
						b.Error(err)
					}
				}
				return nil
			})
			defer close(work)
			defer stop()
			b.ResetTimer()
			for i := 0; i < b.N; {
				for c := 0; c < chats && i < b.N; c++ {
					s.Say(int64(c+1), "hello")
					i++
				}
				n := i
				if err := s.Wait(b.Context(), func(v telegramtest.View) bool { return v.Count("sendMessage") >= n }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// From New to the first poll, over the loopback.
func BenchmarkFirstPoll(b *testing.B) {
	polled := make(chan struct{}, 1)
	s := telegramtest.NewServer(telegramtest.Config{})
	b.Cleanup(s.Close)
	s.Watch(func(e telegramtest.Event) {
		if e.Method == "getUpdates" && !e.Done {
			polled <- struct{}{}
		}
	})
	for b.Loop() {
		stop := start(b, s, func(*telegram.Channel, chat.Message) error { return nil })
		<-polled
		stop()
	}
}

// Over the loopback, with the library as it is: hear, say, edit.
func TestEndToEnd(t *testing.T) {
	s := telegramtest.NewServer(telegramtest.Config{})
	t.Cleanup(s.Close)
	quit := start(t, s, func(ch *telegram.Channel, m chat.Message) error {
		r := m.Reply()
		r.Text = "you said"
		rc, err := ch.Send(t.Context(), r)
		if err != nil {
			return err
		}
		r.Text += " <i>" + m.Text + "</i>"
		return ch.Edit(t.Context(), rc, r)
	})
	defer quit()
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	for id := range int64(20) {
		s.Say(id+1, "hello")
	}
	for id := range int64(20) {
		err := s.WaitChat(ctx, id+1, func(ms []telegramtest.Message) bool {
			return len(ms) == 2 && ms[1].Text == "you said hello" && len(ms[1].Edits) == 1
		})
		if err != nil {
			t.Fatalf("chat %d shows %+v", id+1, s.Chat(id+1))
		}
	}
	if err := s.Wait(ctx, func(v telegramtest.View) bool { return len(v.Confirmed()) == 20 }); err != nil {
		t.Error("not confirmed")
	}
}
