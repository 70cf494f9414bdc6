package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"sync"
	"testing"

	"parley/store"
)

var buckets = []check{
	{"bucket: get what was put", func(t *testing.T, s store.Store) {
		ctx, b := t.Context(), s.Bucket("b")
		_, _, err := b.Get(ctx, "k")
		wantErr(t, "Get before Put", err, store.ErrNotFound)
		val := []byte("one")
		rev := must[uint64](t)(b.Put(ctx, "k", val, 0))
		val[0] = 'X'
		got, at, err := s.Bucket("b").Get(ctx, "k")
		ok(t, err)
		want(t, "Get", string(got), "one")
		want(t, "revision of Get", at, rev)
		got[0] = 'X'
		got, _, _ = b.Get(ctx, "k")
		want(t, "Get after its caller wrote to the value", string(got), "one")
		_, _, err = s.Bucket("c").Get(ctx, "k")
		wantErr(t, "Get from another bucket", err, store.ErrNotFound)
	}},
	{"bucket: put conflicts", func(t *testing.T, s store.Store) {
		ctx, b := t.Context(), s.Bucket("b")
		_, err := b.Put(ctx, "k", nil, 7)
		wantErr(t, "Put of a new key at a revision", err, store.ErrConflict)
		rev := must[uint64](t)(b.Put(ctx, "k", []byte("1"), 0))
		_, err = b.Put(ctx, "k", []byte("2"), 0)
		wantErr(t, "Put as new over a value", err, store.ErrConflict)
		next := must[uint64](t)(b.Put(ctx, "k", []byte("2"), rev))
		_, err = b.Put(ctx, "k", []byte("3"), rev)
		wantErr(t, "Put at an old revision", err, store.ErrConflict)
		val, at, err := b.Get(ctx, "k")
		ok(t, err)
		want(t, "value", string(val), "2")
		want(t, "revision", at, next)
		must[uint64](t)(b.Put(ctx, "k", []byte("4"), store.Any))
		must[uint64](t)(b.Put(ctx, "other", []byte("5"), store.Any))
	}},
	{"bucket: a revision does not return after a delete", func(t *testing.T, s store.Store) {
		ctx, b := t.Context(), s.Bucket("b")
		rev := must[uint64](t)(b.Put(ctx, "k", []byte("1"), 0))
		ok(t, b.Delete(ctx, "k"))
		ok(t, b.Delete(ctx, "k"))
		ok(t, s.Bucket("never made").Delete(ctx, "k"))
		_, _, err := b.Get(ctx, "k")
		wantErr(t, "Get after Delete", err, store.ErrNotFound)
		must[uint64](t)(b.Put(ctx, "k", []byte("2"), 0))
		_, err = b.Put(ctx, "k", []byte("3"), rev)
		wantErr(t, "Put at the revision before Delete", err, store.ErrConflict)
	}},
	{"bucket: keys by prefix, in order, while they change", func(t *testing.T, s store.Store) {
		ctx, b := t.Context(), s.Bucket("b")
		wantList(t, "Keys of an empty bucket", Keys(t, b, ""))
		var all []string
		for i := range 600 {
			all = append(all, fmt.Sprintf("n/%03d", i))
		}
		var puts sync.WaitGroup
		for _, k := range append([]string{"m", "o", "", "n"}, all...) {
			puts.Go(func() {
				if _, err := b.Put(ctx, k, nil, 0); err != nil {
					t.Errorf("Put = %v", err)
				}
			})
		}
		puts.Wait()
		wantList(t, "Keys(n/)", Keys(t, b, "n/"), all...)
		wantList(t, "Keys(n/1)", Keys(t, b, "n/1"), all[100:200]...)
		want(t, "number of Keys", len(Keys(t, b, "")), 604)
		n := 0
		for k, err := range b.Keys(ctx, "n/") {
			ok(t, err)
			if n++; n%50 == 1 {
				ok(t, b.Delete(ctx, k))
			}
			if n == 599 {
				break
			}
		}
		want(t, "Keys that came", n, 599)
		want(t, "number of Keys after deleting", len(Keys(t, b, "n/")), 588)
	}},
	{"bucket: names and keys of any bytes, values of any size", func(t *testing.T, s store.Store) {
		ctx := t.Context()
		big := bytes.Repeat([]byte("0123456789abcdef"), 1<<16)
		for i, name := range names {
			for j, key := range names {
				must[uint64](t)(s.Bucket(name).Put(ctx, key, fmt.Append(nil, i, j), 0))
			}
		}
		for i, name := range names {
			for j, key := range names {
				val, _, err := s.Bucket(name).Get(ctx, key)
				ok(t, err)
				want(t, fmt.Sprintf("value of %q in %q", key, name), string(val), fmt.Sprint(i, j))
			}
		}
		sorted := slices.Sorted(slices.Values(names))
		wantList(t, "Keys", Keys(t, s.Bucket(""), ""), sorted...)
		for _, val := range [][]byte{nil, {0}, big} {
			must[uint64](t)(s.Bucket("sizes").Put(ctx, "k", val, store.Any))
			got, _, err := s.Bucket("sizes").Get(ctx, "k")
			ok(t, err)
			want(t, "a value comes back", bytes.Equal(got, val), true)
		}
	}},
	{"bucket: of many who change a key, none is lost", func(t *testing.T, s store.Store) {
		ctx, b := t.Context(), s.Bucket("b")
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for done := 0; done < 20; {
					val, rev, err := b.Get(ctx, "k")
					if err != nil && rev != 0 {
						t.Errorf("Get = %v", err)
						return
					}
					if _, err := b.Put(ctx, "k", append(val, 'x'), rev); err == nil {
						done++
					}
				}
			})
		}
		all.Wait()
		val, _, err := b.Get(ctx, "k")
		ok(t, err)
		want(t, "changes", len(val), 160)
	}},
}
