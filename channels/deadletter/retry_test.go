package deadletter_test

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels/deadletter"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// A countedStore counts the values that are read.
type countedStore struct {
	store.Store
	read *atomic.Int64
}

func (s countedStore) Bucket(name string) store.Bucket {
	return countedBucket{s.Store.Bucket(name), s.read}
}

type countedBucket struct {
	store.Bucket
	read *atomic.Int64
}

func (b countedBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	b.read.Add(1)
	return b.Bucket.Get(ctx, key)
}

// TestLettersAreLeftAlone: letters that nobody waits for are retried when they are due (P26), and
// those that stay for a year are not read every minute.
func TestLettersAreLeftAlone(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var read, sent atomic.Int64
		letters := deadletter.New(deadletter.Config{
			Store: countedStore{mem.New(), &read}, Log: slog.New(slog.DiscardHandler),
			Fate: func(context.Context, chat.Reply, int, string) error { return nil },
			Send: func(context.Context, chat.Reply, int) error { sent.Add(1); return nil },
		})
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go letters.RetryRegularly(ctx)
		if err := letters.Add(ctx, deadletter.Letter{Reply: chat.Reply{ID: "asked"}}); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(62 * time.Minute) // some hourly search is just over
		if err := letters.Add(ctx, deadletter.Letter{Reply: chat.Reply{ID: "unasked", Unasked: true}}); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(9 * time.Minute)
		if n := sent.Load(); n != 0 {
			t.Errorf("%d letters were sent too early", n)
		}
		timetest.Sleep(2 * time.Minute)
		if n := sent.Load(); n != 1 {
			t.Errorf("%d letters were sent, not 1", n)
		}
		before := read.Load()
		timetest.Sleep(24 * time.Hour)
		if n := read.Load() - before; n > 30 {
			t.Errorf("%d values were read in a day of nothing", n)
		}
	})
}
