package audit_test

import (
	"context"
	"errors"
	"testing"

	"parley/audit"
	"parley/store"
	"parley/store/mem"
)

// asleep is a Store in which somebody else acts at a moment of an append.
type asleep struct {
	store.Store
	beforePut, beforeAppend func()
}

func (a *asleep) Bucket(name string) store.Bucket { return asleepBucket{a.Store.Bucket(name), a} }
func (a *asleep) Log(name string) store.Log       { return asleepLog{a.Store.Log(name), a} }

type asleepBucket struct {
	store.Bucket
	a *asleep
}

func (b asleepBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	act(&b.a.beforePut)
	return b.Bucket.Put(ctx, key, val, rev)
}

type asleepLog struct {
	store.Log
	a *asleep
}

func (l asleepLog) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if len(recs) > 0 {
		act(&l.a.beforeAppend)
	}
	return l.Log.Append(ctx, after, recs...)
}

// act calls what is to happen once.
func act(what *func()) {
	if do := *what; do != nil {
		*what = nil
		do()
	}
}

// R-S27: a process that was asleep in the midst of an append breaks no chain that another went
// on with meanwhile, and goes on behind that.
func TestChainOfAnother(t *testing.T) {
	s := mem.New()
	another := chain(s)
	note(t, another, "one")
	a := &asleep{Store: s}
	sleeper := chain(a)
	a.beforePut = func() { note(t, another, "two", "three") }
	if err := sleeper.Append(t.Context(), audit.Event{What: "late"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append = %v, want ErrConflict", err)
	}
	certain(t, another, 3)
	note(t, sleeper, "four")
	certain(t, another, 4)
	if got := whats(t, another, 1); got[0] != "four" {
		t.Errorf("the last is %q", got)
	}
}

// Two that append to a chain at once do not give one number to two records.
func TestChainOfTwo(t *testing.T) {
	s := mem.New()
	note(t, chain(s), "one")
	a := &asleep{Store: s}
	a.beforeAppend = func() {
		if _, err := s.Log("audit").Append(t.Context(), store.Any, []byte("of another")); err != nil {
			t.Error(err)
		}
	}
	if err := chain(a).Append(t.Context(), audit.Event{What: "late"}); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append = %v, want ErrConflict", err)
	}
}
