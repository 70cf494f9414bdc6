package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/llm"
	"parley/store"
	"parley/store/mem"
)

// P15, R-S15: pages of earlier days leave the memory once a day is over, those of
// today do not, and what is spent later is added to them.
func TestLedgerLetsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{Store: mem.New(), Log: slog.New(slog.DiscardHandler)}, Settings{})
		defer p.keepLedger(t.Context())()
		spent := func() float64 {
			by := p.payers("test:7", "", "")[:1]
			defer p.opened(t.Context(), by)()
			return by[0].Spent[aToken]
		}
		for i, want := range []float64{10, 20, 10} {
			if i == 2 {
				time.Sleep(24 * time.Hour)
			}
			p.Charge(t.Context(), "test:7", "", "", "main", llm.Usage{In: 10})
			time.Sleep(time.Minute)
			if got := spent(); got != want {
				t.Errorf("%v tokens are spent, want %v", got, want)
			}
			p.ledger.mu.Lock()
			n := len(p.ledger.pages)
			p.ledger.mu.Unlock()
			if n != 2 {
				t.Errorf("%d pages in memory, want those of the person and of all", n)
			}
		}
	})
}

// A busy store has others at work while it reads and writes.
type busy struct {
	store.Store
	read, wrote atomic.Pointer[func()] // what they do, once
}

func (b *busy) Bucket(name string) store.Bucket { return busyBucket{b.Store.Bucket(name), b} }

type busyBucket struct {
	store.Bucket
	b *busy
}

func (b busyBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	v, rev, err := b.Bucket.Get(ctx, key)
	if then := b.b.read.Swap(nil); then != nil {
		(*then)()
	}
	return v, rev, err
}

func (b busyBucket) Put(ctx context.Context, key string, v []byte, rev uint64) (uint64, error) {
	rev, err := b.Bucket.Put(ctx, key, v, rev)
	if then := b.b.wrote.Swap(nil); then != nil {
		(*then)()
	}
	return rev, err
}

// R-S15: what is spent while the page is read, or written, counts, and that
// somebody was told is still known after a restart.
func TestLedgerAtWork(t *testing.T) {
	b, ctx := &busy{Store: mem.New()}, t.Context()
	open := func() *Pool {
		return New(Config{Store: b, Log: slog.New(slog.DiscardHandler)}, Settings{Limits: Limits{Job: Limit{Rounds: 5}}})
	}
	p := open()
	spend := func() { p.Charge(ctx, "", "", "j", "main", llm.Usage{}) }
	write := func() { p.keepLedger(ctx)() } // the end writes what is left
	meanwhile := func() { spend(); write() }
	b.read.Store(&meanwhile)
	spend()
	b.wrote.Store(&spend)
	write()
	write()
	p = open()
	by := p.payers("", "", "j")[:1]
	if p.opened(ctx, by)(); by[0].Spent[aRound] != 3 {
		t.Errorf("%v requests are spent", by[0].Spent[aRound])
	}
	spend()
	spend()
	write()
	for _, again := range []bool{false, true} {
		var e errLimit
		if err := p.Allow(ctx, "", "", "j"); !errors.As(err, &e) || e.again != again {
			t.Errorf("%v, again: %v", err, e.again)
		}
		write()
		p = open()
	}
}
