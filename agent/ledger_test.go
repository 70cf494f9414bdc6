package agent

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"parley/llm"
	"parley/store"
	"parley/store/mem"
)

// P15, R-S15: a page of the ledger that is on disk leaves the memory, none other
// does, and what is spent later is added to it.
func TestLedgerLetsGo(t *testing.T) {
	p, bodies := New(Config{Store: mem.New()}, Settings{}), map[string][]byte{}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for i, fails := range []bool{false, true, true, false, false} {
		p.Charge(t.Context(), "test:7", "", "", "main", llm.Usage{In: 10})
		ctx := t.Context()
		if fails {
			ctx = ended
		}
		if err := p.writeLedger(ctx, bodies); (err != nil) != fails {
			t.Fatal(err)
		}
		if n := len(p.ledger.pages); (n > 0) != fails {
			t.Errorf("%d pages in memory, written: %v", n, !fails)
		}
		by := p.payers("test:7", "", "")[:1]
		p.opened(t.Context(), by)()
		if got, want := by[0].Spent[aToken], float64(10*(i+1)); got != want {
			t.Errorf("%v tokens are spent, want %v", got, want)
		}
	}
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
	open := func() *Pool { return New(Config{Store: b}, Settings{Limits: Limits{Job: Limit{Rounds: 5}}}) }
	p := open()
	spend := func() { p.Charge(ctx, "", "", "j", "main", llm.Usage{}) }
	write := func() {
		if err := p.writeLedger(ctx, map[string][]byte{}); err != nil {
			t.Error(err)
		}
	}
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
