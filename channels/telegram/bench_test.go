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

// startChannel runs a channel over the loopback until stop is called.
func startChannel(tb testing.TB, s *telegramtest.Server, deliver func(*telegram.Channel, chat.Message) error) (stop func()) {
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

// BenchmarkEcho measures from update to reply, over the loopback.
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
			stop := startChannel(b, s, func(ch *telegram.Channel, m chat.Message) error {
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

// BenchmarkFirstPoll measures from New to the first poll, over the loopback.
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
		stop := startChannel(b, s, func(*telegram.Channel, chat.Message) error { return nil })
		<-polled
		stop()
	}
}

// TestEndToEnd receives, sends and edits over the loopback, with the real library.
func TestEndToEnd(t *testing.T) {
	s := telegramtest.NewServer(telegramtest.Config{})
	t.Cleanup(s.Close)
	quit := startChannel(t, s, func(ch *telegram.Channel, m chat.Message) error {
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
