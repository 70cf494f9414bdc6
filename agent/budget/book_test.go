package budget

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
)

// newBook returns the Book in s.
func newBook(s store.Store, limits Limits) *Book {
	return New(Config{
		Bucket: s.Bucket("ledger"), Texts: &texts.English().Agent.Limits, Log: slog.New(slog.DiscardHandler), Zone: time.UTC,
		Limits: func() Limits { return limits },
		Price:  func(string, llm.Usage) (float64, bool) { return 0, false },
		Retry:  func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) },
	})
}

// spent returns how much of k the narrowest account of who has used.
func spent(t *testing.T, b *Book, who Spender, k Kind) float64 {
	accounts := b.accounts(who)[:1]
	defer b.open(t.Context(), accounts)()
	return accounts[0].used.Spent[k]
}

// P15, R-S15: accounts of earlier days leave the memory once a day is over, those
// of today do not, and what is spent later is added to them.
func TestBookLetsGo(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newBook(mem.New(), Limits{})
		defer b.Keep(t.Context())()
		who := Spender{Person: "test:7"}
		for i, want := range []float64{10, 20, 10} {
			if i == 2 {
				timetest.Sleep(24 * time.Hour)
			}
			b.Charge(t.Context(), who, 1, "main", llm.Usage{In: 10})
			timetest.Sleep(time.Minute)
			if got := spent(t, b, who, Tokens); got != want {
				t.Errorf("%v tokens are spent, want %v", got, want)
			}
			b.mu.Lock()
			n := len(b.used)
			b.mu.Unlock()
			if n != 2 {
				t.Errorf("%d accounts in memory, want those of the person and of all", n)
			}
		}
	})
}

// P15, R-S15: of a crowd only so many accounts stay in memory as were used last, and each goes on from what is on
// the disk.
func TestBookLetsGoOfACrowd(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newBook(mem.New(), Limits{})
		defer b.Keep(t.Context())()
		const people = 3 * maxIdle
		for round := range 2 {
			for i := range people {
				b.Charge(t.Context(), Spender{Person: chat.Person(fmt.Sprint("test:", i))}, 1, "main", llm.Usage{In: 10})
			}
			timetest.Sleep(time.Minute)
			b.mu.Lock()
			n := len(b.used)
			b.mu.Unlock()
			if n > maxIdle {
				t.Errorf("%d accounts are in memory, want %d at most", n, maxIdle)
			}
			for i := range people {
				who := Spender{Person: chat.Person(fmt.Sprint("test:", i))}
				if got, want := spent(t, b, who, Tokens), float64(10*(round+1)); got != want {
					t.Fatalf("%v tokens are spent by %s, want %v", got, who.Person, want)
				}
			}
		}
		spent, err := b.Usage(t.Context())
		if err != nil || len(spent) != people || spent[0].Usage.In != 20 {
			t.Errorf("%d people have used something, the first %+v, want %d, and 20 tokens; %v", len(spent), spent[0], people, err)
		}
	})
}

// R-S15: an account that leaves the memory while another one is read is looked up again.
func TestBookLetsGoWhileItReads(t *testing.T) {
	s := &busy{Store: mem.New()}
	b := newBook(s, Limits{})
	who := Spender{Person: "test:7"}
	b.Charge(t.Context(), who, 1, "main", llm.Usage{In: 10})
	b.Keep(t.Context())()
	letGo := func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		clear(b.used)
	}
	s.read.Store(&letGo)
	b.Charge(t.Context(), Spender{Person: who.Person, Session: "test/7"}, 1, "main", llm.Usage{In: 10})
	if got := spent(t, b, who, Tokens); got != 20 {
		t.Errorf("%v tokens are spent, want 20", got)
	}
}

// R-S15: an account that was read before somebody else spent of it, and that left the memory since, is read again.
func TestBookReadsAgain(t *testing.T) {
	s := &busy{Store: mem.New()}
	b := newBook(s, Limits{})
	who := Spender{Person: "test:7"}
	spend := func(who Spender) { b.Charge(t.Context(), who, 1, "main", llm.Usage{In: 10}) }
	meanwhile := func() {
		spend(who)
		for i := range 2 * maxIdle {
			spend(Spender{Person: chat.Person(fmt.Sprint("crowd:", i))})
		}
		b.Keep(t.Context())()
		b.Keep(t.Context())()
	}
	s.read.Store(&meanwhile)
	spend(who)
	if got := spent(t, b, who, Tokens); got != 20 {
		t.Errorf("%v tokens are spent, want 20", got)
	}
}

// R-S15: of a crowd whose accounts are being written everything counts that is spent meanwhile.
func TestBookLetsGoWhileItWrites(t *testing.T) {
	s := &busy{Store: mem.New()}
	b := newBook(s, Limits{})
	spendAll := func() {
		for i := range 2 * maxIdle {
			b.Charge(t.Context(), Spender{Person: chat.Person(fmt.Sprint("test:", i))}, 1, "main", llm.Usage{In: 10})
		}
	}
	spendAll()
	s.wrote.Store(&spendAll)
	b.Keep(t.Context())()
	b.Keep(t.Context())()
	if got := spent(t, newBook(s, Limits{}), Spender{}, Tokens); got != 40*maxIdle {
		t.Errorf("%v tokens are spent, want %d", got, 40*maxIdle)
	}
	for i := range 2 * maxIdle {
		if got := spent(t, newBook(s, Limits{}), Spender{Person: chat.Person(fmt.Sprint("test:", i))}, Tokens); got != 20 {
			t.Fatalf("%v tokens are spent by person %d, want 20", got, i)
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

// R-S15: what is spent while an account is read, or written, counts, and that
// somebody was told is still known after a restart.
func TestBookAtWork(t *testing.T) {
	s, ctx := &busy{Store: mem.New()}, t.Context()
	open := func() *Book { return newBook(s, Limits{Job: Limit{Requests: 5}}) }
	b, who := open(), Spender{Job: "j"}
	spend := func() { b.Charge(ctx, who, 1, "main", llm.Usage{}) }
	write := func() { b.Keep(ctx)() } // the end writes what is left
	meanwhile := func() {
		spend()
		write()
	}
	s.read.Store(&meanwhile)
	spend()
	s.wrote.Store(&spend)
	write()
	write()
	b = open()
	if n := spent(t, b, who, Requests); n != 3 {
		t.Errorf("%v requests are spent", n)
	}
	spend()
	spend()
	write()
	for _, repeated := range []bool{false, true} {
		var e *LimitError
		if err := b.Allow(ctx, who); !errors.As(err, &e) || e.Repeated != repeated {
			t.Errorf("%v, repeated: %v", err, e.Repeated)
		}
		write()
		b = open()
	}
}

// R-S15: a metered model counts its requests before they are made, so that as many at once do not exceed the
// limit, and an answer that broke off as what was asked.
func TestMeter(t *testing.T) {
	t.Parallel()
	b := newBook(mem.New(), Limits{Person: Limit{Requests: 2}})
	who := Spender{Person: "telegram:7"}
	var fail error
	usage := llm.Usage{In: 10, Out: 5}
	model := b.Meter(who, "main", llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
		if err := b.Allow(t.Context(), who); fail != nil && err == nil {
			t.Error("the request is not counted while it is made")
		}
		return llm.Message{Usage: usage}, fail
	}))
	req := llm.Request{System: strings.Repeat("x", 400)}
	if _, err := model.Generate(t.Context(), req, nil); err != nil {
		t.Fatal(err)
	}
	usage = llm.Usage{}
	fail = &llm.Error{Kind: llm.Cut, Err: errors.New("gone")}
	if _, err := model.Generate(t.Context(), req, nil); !errors.Is(err, fail) {
		t.Error(err)
	}
	if _, err := model.Generate(t.Context(), req, nil); !errors.Is(err, llm.ErrLimit) {
		t.Error(err)
	}
	if tokens := spent(t, b, who, Tokens); tokens != 115 {
		t.Errorf("%v tokens are spent", tokens)
	}
}
