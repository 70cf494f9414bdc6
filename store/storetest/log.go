package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"parley/store"
)

var logs = []check{
	{"log: keeps order and numbers from 1", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		wantList(t, "Since(0) of an empty log", Records(t, l, 0))
		body := []byte("a")
		want(t, "Append", must[uint64](t)(l.Append(ctx, store.Any, body)), 1)
		body[0] = 'X'
		want(t, "Append", must[uint64](t)(l.Append(ctx, store.Any, []byte("b"), nil, []byte("d"))), 4)
		wantList(t, "Since(0)", Records(t, s.Log("l"), 0), "1:a", "2:b", "3:", "4:d")
		wantList(t, "Since(2)", Records(t, l, 2), "3:", "4:d")
		wantList(t, "Since(4)", Records(t, l, 4))
		wantList(t, "Since(99)", Records(t, l, 99))
		wantList(t, "Since(the last number)", Records(t, l, ^uint64(0)))
		wantList(t, "another log", Records(t, s.Log("m"), 0))
	}},
	{"log: trim forgets, numbers are not used again", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		ok(t, l.Trim(ctx, 5))
		must[uint64](t)(l.Append(ctx, store.Any, numbered(600)...))
		ok(t, l.Trim(ctx, 597))
		wantList(t, "Since(0)", Records(t, l, 0), "598:598", "599:599", "600:600")
		wantList(t, "Since(598)", Records(t, l, 598), "599:599", "600:600")
		ok(t, l.Trim(ctx, 3))
		ok(t, l.Trim(ctx, ^uint64(0)))
		wantList(t, "Since(0) after trimming all", Records(t, l, 0))
		want(t, "Append", must[uint64](t)(l.Append(ctx, store.Any, []byte("new"))), 601)
		wantList(t, "Since(0)", Records(t, l, 0), "601:new")
	}},
	{"log: append follows the record that it names, or conflicts", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		for _, wrong := range []uint64{1, 7, store.Any - 1} {
			conflict(t, l, wrong)
		}
		want(t, "Append after 0", must[uint64](t)(l.Append(ctx, 0, []byte("a"), []byte("b"))), 2)
		for _, wrong := range []uint64{0, 1, 3} {
			conflict(t, l, wrong)
		}
		want(t, "Append after 2", must[uint64](t)(l.Append(ctx, 2, []byte("c"))), 3)
		want(t, "Append after any", must[uint64](t)(l.Append(ctx, store.Any, []byte("d"))), 4)
		wantList(t, "Since(0)", Records(t, l, 0), "1:a", "2:b", "3:c", "4:d")
	}},
	{"log: the number that follows a trim is still the last ever appended", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		must[uint64](t)(l.Append(ctx, 0, numbered(3)...))
		ok(t, l.Trim(ctx, ^uint64(0)))
		for _, wrong := range []uint64{0, 1, 2, 4} {
			conflict(t, l, wrong)
		}
		want(t, "LastNumber after trimming all", must[uint64](t)(store.LastNumber(ctx, l)), 3)
		want(t, "Append", must[uint64](t)(l.Append(ctx, 3, []byte("new"))), 4)
		wantList(t, "Since(0)", Records(t, l, 0), "4:new")
	}},
	{"log: append of nothing writes nothing and tells the last number", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		want(t, "of an empty log", must[uint64](t)(l.Append(ctx, store.Any)), 0)
		want(t, "after 0", must[uint64](t)(l.Append(ctx, 0)), 0)
		_, err := l.Append(ctx, 1)
		wantErr(t, "after 1", err, store.ErrConflict)
		must[uint64](t)(l.Append(ctx, 0, numbered(2)...))
		want(t, "of two records", must[uint64](t)(l.Append(ctx, store.Any)), 2)
		want(t, "after 2", must[uint64](t)(l.Append(ctx, 2)), 2)
		_, err = l.Append(ctx, 1)
		wantErr(t, "after 1 of 2", err, store.ErrConflict)
		wantList(t, "Since(0)", Records(t, l, 0), "1:1", "2:2")
	}},
	{"log: of writers that name the same record one appends", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		const writers, rounds = 8, 20
		var mu sync.Mutex
		won := map[uint64]int{} // by the number that was named
		var all sync.WaitGroup
		for w := range writers {
			all.Go(func() {
				for after := range uint64(rounds) {
					for { // until somebody has appended
						seq, err := l.Append(ctx, after, fmt.Append(nil, w))
						if err == nil {
							want(t, "number", seq, after+1)
							mu.Lock()
							won[after]++
							mu.Unlock()
							break
						}
						if !errors.Is(err, store.ErrConflict) {
							t.Errorf("Append = %v", err)
							return
						}
						if last, err := store.LastNumber(ctx, l); err != nil || last > after {
							break
						}
					}
				}
			})
		}
		all.Wait()
		for after := range uint64(rounds) {
			want(t, fmt.Sprint("appends after ", after), won[after], 1)
		}
		want(t, "records", len(Records(t, l, 0)), rounds)
	}},
	{"log: since ends although its reader appends and trims (P20)", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		must[uint64](t)(l.Append(ctx, store.Any, numbered(700)...))
		n := uint64(0)
		for r, err := range l.Since(ctx, 0) {
			ok(t, err)
			n++
			want(t, "number", r.Seq, n)
			want(t, "body", string(r.Body), strconv.FormatUint(n, 10))
			if n%20 == 0 {
				must[uint64](t)(l.Append(ctx, store.Any, numbered(20)...))
				ok(t, l.Trim(ctx, n))
			}
		}
		want(t, "records", n, 700)
		for _, err := range l.Since(ctx, 0) {
			ok(t, err)
			break
		}
	}},
	{"log: names of any bytes, records of any size", func(t *testing.T, s store.Store) {
		ctx := t.Context()
		for _, name := range names {
			must[uint64](t)(s.Log(name).Append(ctx, store.Any, []byte(name)))
		}
		for _, name := range names {
			wantList(t, "log "+name, Records(t, s.Log(name), 0), "1:"+name)
		}
		big := bytes.Repeat([]byte{'x'}, 1<<20)
		must[uint64](t)(s.Log("big").Append(ctx, store.Any, big, big, []byte("small"), big))
		n := 0
		for r, err := range s.Log("big").Since(ctx, 0) {
			ok(t, err)
			n += len(r.Body)
		}
		want(t, "bytes", n, 3<<20+5)
	}},
	{"log: appends of many do not mix", func(t *testing.T, s store.Store) {
		ctx, l := t.Context(), s.Log("l")
		var all sync.WaitGroup
		for w := range 8 {
			all.Go(func() {
				for i := range 20 {
					seq, err := l.Append(ctx, store.Any, fmt.Append(nil, w, " ", i, " first"), fmt.Append(nil, w, " ", i, " second"))
					if err != nil || seq == 0 {
						t.Errorf("Append = %d, %v", seq, err)
					}
				}
			})
		}
		all.Wait()
		var next [8]int
		var last []byte
		for r, err := range l.Since(ctx, 0) {
			ok(t, err)
			var w, i int
			var which string
			_, _ = fmt.Sscan(string(r.Body), &w, &i, &which)
			want(t, "order of one writer", i, next[w])
			if which == "second" {
				next[w]++
				want(t, "record before", string(last), fmt.Sprint(w, " ", i, " first"))
			}
			last = r.Body
		}
		want(t, "appends kept of each", next, [8]int{20, 20, 20, 20, 20, 20, 20, 20})
	}},
}

// conflict checks that nothing can be appended after that number.
func conflict(t *testing.T, l store.Log, after uint64) {
	t.Helper()
	before := Records(t, l, 0)
	seq, err := l.Append(t.Context(), after, []byte("wrong"), []byte("wrong, too"))
	wantErr(t, fmt.Sprint("Append after ", after), err, store.ErrConflict)
	want(t, "number given with a conflict", seq, 0)
	wantList(t, "records after a conflict", Records(t, l, 0), before...)
}

// numbered returns n records that contain their numbers.
func numbered(n int) (recs [][]byte) {
	for i := range n {
		recs = append(recs, fmt.Append(nil, i+1))
	}
	return recs
}
