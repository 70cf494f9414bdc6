package storetest

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/store"
	"parley/timetest"
)

var queues = []check{
	{"queue: oldest first, each to one worker", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		for _, id := range []string{"a", "b", "c"} {
			ok(t, q.Push(ctx, id, []byte("body of "+id)))
		}
		first, second := pull(t, q), pull(t, s.Queue("q"))
		want(t, "first", first.ID, "a")
		want(t, "its body", string(first.Body), "body of a")
		want(t, "first was there before", first.Again, false)
		want(t, "second", second.ID, "b")
		want(t, "Len", must[int](t)(q.Len(ctx)), 3)
		ok(t, first.Done(ctx))
		want(t, "Len", must[int](t)(q.Len(ctx)), 2)
		want(t, "third", pull(t, q).ID, "c")
		none(t, q)
		want(t, "Len of another", must[int](t)(s.Queue("r").Len(ctx)), 0)
	}},
	{"queue: an id comes once, also when it is done (P2)", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		ok(t, q.Push(ctx, "a", []byte("1")))
		ok(t, q.Push(ctx, "a", []byte("2")))
		item := pull(t, q)
		want(t, "body", string(item.Body), "1")
		ok(t, q.Push(ctx, "a", []byte("3")))
		ok(t, item.Done(ctx))
		ok(t, item.Done(ctx))
		ok(t, q.Push(ctx, "a", []byte("4")))
		none(t, q)
		want(t, "Len", must[int](t)(q.Len(ctx)), 0)
		ok(t, s.Queue("r").Push(ctx, "a", []byte("5")))
		want(t, "body in another queue", string(pull(t, s.Queue("r")).Body), "5")
	}},
	{"queue: done ends work that was given back; later works once", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		ok(t, q.Push(ctx, "a", nil))
		item := pull(t, q)
		item.Later(0)
		again := pull(t, q)
		want(t, "given back", again.ID, "a")
		want(t, "it was there when the Store was opened", again.Again, false)
		item.Later(0) // it is not in these hands any more
		none(t, q)
		again.Later(0)
		ok(t, item.Done(ctx))
		none(t, q)
		again.Later(0)
		none(t, q)
		want(t, "Len", must[int](t)(q.Len(ctx)), 0)
	}},
	{"queue: given back, it is the oldest again", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		for _, id := range []string{"a", "b", "c"} {
			ok(t, q.Push(ctx, id, nil))
		}
		a, b := pull(t, q), pull(t, q)
		b.Later(0)
		a.Later(0)
		for _, id := range []string{"a", "b", "c"} {
			want(t, "next", pull(t, q).ID, id)
		}
	}},
	{"queue: ids, names and bodies of any bytes", func(t *testing.T, s store.Store) {
		ctx := t.Context()
		big := bytes.Repeat([]byte{0, 1}, 1<<19)
		for _, name := range names {
			for _, id := range names {
				ok(t, s.Queue(name).Push(ctx, id, big[:len(id)]))
				item := pull(t, s.Queue(name))
				want(t, "ID", item.ID, id)
				want(t, "body is whole", bytes.Equal(item.Body, big[:len(id)]), true)
				ok(t, item.Done(ctx))
			}
		}
		ok(t, s.Queue("big").Push(ctx, "b", big))
		want(t, "big body is whole", bytes.Equal(pull(t, s.Queue("big")).Body, big), true)
	}},
	{"queue: many push, many pull, each work comes once", func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		q := s.Queue("q")
		var pushers, workers sync.WaitGroup
		var mu sync.Mutex
		got := map[string]int{}
		for range 4 {
			pushers.Go(func() { // all push the same
				for i := range 100 {
					if err := q.Push(t.Context(), fmt.Sprint(i), nil); err != nil {
						t.Errorf("Push = %v", err)
					}
				}
			})
			workers.Go(func() {
				for {
					item, err := q.Pull(ctx)
					if err != nil {
						wantErr(t, "Pull", err, context.Canceled)
						return
					}
					mu.Lock()
					got[item.ID]++
					if len(got) == 100 {
						cancel()
					}
					mu.Unlock()
					if err := item.Done(t.Context()); err != nil {
						t.Errorf("Done = %v", err)
					}
				}
			})
		}
		pushers.Wait()
		workers.Wait()
		for id, n := range got {
			want(t, "times that "+id+" came", n, 1)
		}
		want(t, "Len", must[int](t)(q.Len(t.Context())), 0)
	}},
}

// timed are checks that run in a bubble of synctest.
var timed = []check{
	{"queue: an id is remembered for 48 hours (P2)", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		for i := range 5 {
			ok(t, q.Push(ctx, fmt.Sprint(i), nil))
			ok(t, pull(t, q).Done(ctx))
		}
		timetest.Sleep(48*time.Hour - time.Second)
		ok(t, q.Push(ctx, "0", nil))
		none(t, q)
		timetest.Sleep(time.Second)
		for i := range 5 {
			ok(t, q.Push(ctx, fmt.Sprint(i), nil))
			want(t, "pushed anew", pull(t, q).ID, fmt.Sprint(i))
		}
		timetest.Sleep(time.Hour)
		ok(t, q.Push(ctx, "0", nil))
		none(t, q)
	}},
	{"queue: later, and nobody waits for it", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		ok(t, q.Push(ctx, "a", nil))
		ok(t, q.Push(ctx, "b", nil))
		start := time.Now()
		pull(t, q).Later(time.Minute)
		want(t, "next", pull(t, q).ID, "b")
		want(t, "Len", must[int](t)(q.Len(ctx)), 2)
		want(t, "then", pull(t, q).ID, "a")
		want(t, "after", time.Since(start), time.Minute)
	}},
	{"queue: whoever waits is woken at once", func(t *testing.T, s store.Store) {
		ctx, q := t.Context(), s.Queue("q")
		got := make(chan string, 3)
		for range 3 {
			go func() {
				item, err := q.Pull(ctx)
				if err != nil {
					t.Errorf("Pull = %v", err)
				}
				got <- item.ID
			}()
		}
		synctest.Wait()
		for _, id := range []string{"a", "b", "c"} {
			ok(t, q.Push(ctx, id, nil))
			want(t, "woken with", <-got, id)
		}
	}},
	{"queue: a wake-up is not lost with a worker who leaves", func(t *testing.T, s store.Store) {
		q := s.Queue("q")
		for i := range 20 {
			gone, leave := context.WithCancel(t.Context())
			got := make(chan store.Item, 2)
			for _, ctx := range []context.Context{gone, t.Context()} {
				go func() {
					if item, err := q.Pull(ctx); err == nil {
						got <- item
					}
				}()
			}
			synctest.Wait()
			go leave()
			ok(t, q.Push(t.Context(), fmt.Sprint(i), nil))
			item := <-got // or a deadlock
			ok(t, q.Push(t.Context(), fmt.Sprint(i, " for the other"), nil))
			ok(t, item.Done(t.Context()))
			synctest.Wait()
			select {
			case item := <-got:
				ok(t, item.Done(t.Context()))
			default: // both were there, one took the first, the other left
				ok(t, pull(t, q).Done(t.Context()))
			}
		}
	}},
	{"queue: pull ends with its context and with the Store", func(t *testing.T, s store.Store) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err := s.Queue("q").Pull(ctx)
		wantErr(t, "Pull", err, context.DeadlineExceeded)
		time.AfterFunc(time.Minute, func() { s.Close() })
		_, err = s.Queue("q").Pull(t.Context())
		wantErr(t, "Pull", err, store.ErrClosed)
	}},
}
