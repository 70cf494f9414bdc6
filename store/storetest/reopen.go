package storetest

import (
	"fmt"
	"testing"

	"parley/store"
)

// A reopening is a promise of drivers whose data survives a restart.
type reopening struct {
	name string
	run  func(t *testing.T, open func() store.Store)
}

var reopened = []reopening{
	{"reopen: everything is there", func(t *testing.T, open func() store.Store) {
		ctx, s := t.Context(), open()
		rev := must[uint64](t)(s.Bucket("b").Put(ctx, "k", []byte("v"), 0))
		must[uint64](t)(s.Log("l").Append(ctx, store.Any, []byte("1"), []byte("2")))
		must[uint64](t)(s.Log("trimmed").Append(ctx, store.Any, []byte("1"), []byte("2")))
		ok(t, s.Log("trimmed").Trim(ctx, 2))
		ok(t, s.Close())

		s = open()
		defer s.Close()
		val, at, err := s.Bucket("b").Get(ctx, "k")
		ok(t, err)
		want(t, "value", string(val), "v")
		want(t, "revision", at, rev)
		wantList(t, "Since(0)", Records(t, s.Log("l"), 0), "1:1", "2:2")
		_, err = s.Log("trimmed").Append(ctx, 0, []byte("3"))
		wantErr(t, "Append after number 0 of a log that was trimmed", err, store.ErrConflict)
		want(t, "Append after trimming all", must[uint64](t)(s.Log("trimmed").Append(ctx, 2, []byte("3"))), 3)
	}},
	{"reopen: deferred changes are there, too", func(t *testing.T, open func() store.Store) {
		s := open()
		ctx := store.Deferred(t.Context())
		ok(t, s.Queue("q").Push(t.Context(), "done", nil))
		ok(t, pull(t, s.Queue("q")).Done(ctx))
		rev := must[uint64](t)(s.Bucket("b").Put(ctx, "k", []byte("v"), 0))
		must[uint64](t)(s.Log("l").Append(ctx, store.Any, []byte("1")))
		ok(t, s.Queue("q").Push(ctx, "id", []byte("body")))
		ok(t, s.Close())

		s = open()
		defer s.Close()
		_, at, err := s.Bucket("b").Get(t.Context(), "k")
		ok(t, err)
		want(t, "revision", at, rev)
		wantList(t, "Since(0)", Records(t, s.Log("l"), 0), "1:1")
		item := pull(t, s.Queue("q"))
		want(t, "work", item.ID, "id")
		want(t, "again", item.Again, true)
		want(t, "Len", must[int](t)(s.Queue("q").Len(t.Context())), 1)
	}},
	{"reopen: work that was not done comes again, at once and in order", func(t *testing.T, open func() store.Store) {
		ctx, s := t.Context(), open()
		for i := range 5 {
			ok(t, s.Queue("q").Push(ctx, fmt.Sprint(i), fmt.Append(nil, "body ", i)))
		}
		pull(t, s.Queue("q"))
		pull(t, s.Queue("q")).Later(1 << 40)
		ok(t, pull(t, s.Queue("q")).Done(ctx))
		ok(t, s.Close())

		s = open()
		defer s.Close()
		ok(t, s.Queue("q").Push(ctx, "2", nil)) // done before
		ok(t, s.Queue("q").Push(ctx, "3", nil)) // pushed before
		ok(t, s.Queue("q").Push(ctx, "5", []byte("body 5")))
		want(t, "Len", must[int](t)(s.Queue("q").Len(ctx)), 5)
		for _, i := range []int{0, 1, 3, 4, 5} {
			item := pull(t, s.Queue("q"))
			want(t, "ID", item.ID, fmt.Sprint(i))
			want(t, "body", string(item.Body), fmt.Sprint("body ", i))
			want(t, "again", item.Again, i < 5)
			ok(t, item.Done(ctx))
		}
		none(t, s.Queue("q"))
	}},
}
