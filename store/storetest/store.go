package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"parley/store"
)

var stores = []check{
	{"store: one name, three things", func(t *testing.T, s store.Store) {
		ctx := t.Context()
		must[uint64](t)(s.Bucket("x").Put(ctx, "k", []byte("v"), 0))
		must[uint64](t)(s.Log("x").Append(ctx, store.Any, []byte("r")))
		ok(t, s.Queue("x").Push(ctx, "k", []byte("b")))
		wantList(t, "Keys", Keys(t, s.Bucket("x"), ""), "k")
		wantList(t, "Since", Records(t, s.Log("x"), 0), "1:r")
		want(t, "Pull", string(pull(t, s.Queue("x")).Body), "b")
	}},
	{"store: nothing happens after ctx has ended", func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		item := held(t, s)
		cancel()
		for op, err := range every(ctx, s, item) {
			wantErr(t, op, err, context.Canceled)
		}
		want(t, "Len", must[int](t)(s.Queue("q").Len(t.Context())), 1)
		wantList(t, "Keys", Keys(t, s.Bucket("b"), ""))
		wantList(t, "Since", Records(t, s.Log("l"), 0))
	}},
	{"store: deferred changes are seen at once", func(t *testing.T, s store.Store) {
		ctx := store.Deferred(t.Context())
		b, l, q := s.Bucket("b"), s.Log("l"), s.Queue("q")
		rev := must[uint64](t)(b.Put(ctx, "k", []byte("1"), 0))
		_, err := b.Put(ctx, "k", []byte("2"), 0)
		wantErr(t, "Put as new over a deferred value", err, store.ErrConflict)
		must[uint64](t)(b.Put(t.Context(), "k", []byte("3"), rev))
		must[uint64](t)(b.Put(ctx, "gone", nil, 0))
		ok(t, b.Delete(ctx, "gone"))
		val, _, err := b.Get(t.Context(), "k")
		ok(t, err)
		want(t, "value", string(val), "3")
		wantList(t, "Keys", Keys(t, b, ""), "k")
		must[uint64](t)(l.Append(ctx, store.Any, []byte("a"), []byte("b")))
		want(t, "number", must[uint64](t)(l.Append(t.Context(), store.Any, []byte("c"))), 3)
		ok(t, l.Trim(ctx, 1))
		wantList(t, "Since", Records(t, l, 0), "2:b", "3:c")
		ok(t, q.Push(ctx, "id", []byte("body")))
		ok(t, q.Push(t.Context(), "id", []byte("again")))
		item := pull(t, q)
		want(t, "body", string(item.Body), "body")
		ok(t, item.Done(ctx))
		none(t, q)
		want(t, "Len", must[int](t)(q.Len(t.Context())), 0)
	}},
	{"store: closed", func(t *testing.T, s store.Store) {
		item := held(t, s)
		ok(t, s.Close())
		ok(t, s.Close())
		for op, err := range every(t.Context(), s, item) {
			wantErr(t, op, err, store.ErrClosed)
		}
		item.Later(0)
	}},
	{"store: close waits for calls under way", func(t *testing.T, s store.Store) {
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := 0; ; i++ {
					_, err := s.Log("l").Append(t.Context(), store.Any, fmt.Append(nil, w, i))
					if err != nil {
						wantErr(t, "Append", err, store.ErrClosed)
						return
					}
					for _, err := range s.Log("l").Since(t.Context(), 0) {
						if err != nil {
							wantErr(t, "Since", err, store.ErrClosed)
							return
						}
						break
					}
				}
			})
		}
		_, err := s.Bucket("b").Put(t.Context(), "k", nil, 0)
		ok(t, err)
		ok(t, s.Close())
		all.Wait()
	}},
}

// held returns work of the queue q that is held.
func held(t *testing.T, s store.Store) store.Item {
	ok(t, s.Queue("q").Push(t.Context(), "held", nil))
	return pull(t, s.Queue("q"))
}

// every tries each operation and returns the errors by operation.
func every(ctx context.Context, s store.Store, item store.Item) map[string]error {
	errs := map[string]error{"Done": item.Done(ctx)}
	_, _, errs["Get"] = s.Bucket("b").Get(ctx, "k")
	_, errs["Put"] = s.Bucket("b").Put(ctx, "k", nil, 0)
	errs["Delete"] = s.Bucket("b").Delete(ctx, "k")
	for _, errs["Keys"] = range s.Bucket("b").Keys(ctx, "") {
	}
	_, errs["Append"] = s.Log("l").Append(ctx, store.Any, []byte("r"))
	_, errs["Append of nothing"] = s.Log("l").Append(ctx, store.Any)
	for _, errs["Since"] = range s.Log("l").Since(ctx, 0) {
	}
	errs["Trim"] = s.Log("l").Trim(ctx, 1)
	errs["Push"] = s.Queue("q").Push(ctx, "id", nil)
	_, errs["Pull"] = s.Queue("q").Pull(ctx)
	_, errs["Pull from a new queue"] = s.Queue("new").Pull(ctx)
	_, errs["Len"] = s.Queue("q").Len(ctx)
	_, errs["Lock"] = s.Lock(ctx, "n")
	return errs
}
