package store_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// key returns the part of an id before the dash.
func key(i store.Item) string {
	k, _, _ := strings.Cut(i.ID, "-")
	return k
}

func push(t *testing.T, q store.Queue, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if err := q.Push(t.Context(), id, nil); err != nil {
			t.Fatal(err)
		}
	}
}

func size(t *testing.T, q store.Queue) int {
	t.Helper()
	n, err := q.Len(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// work runs Work in the background; stop ends it and waits for it.
func work(t *testing.T, q store.Queue, do func(ctx context.Context, key string, take func() []store.Item)) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- store.Work(ctx, q, key, do) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Work = %v", err)
		}
	}
}

// P5: the work of a key is done in order, and no key waits for another (P14).
func TestWorkOrder(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		q := mem.New().Queue("q")
		start := time.Now()
		var mu sync.Mutex
		got := map[string][]string{}
		inside := map[string]bool{}
		stop := work(t, q, func(ctx context.Context, k string, take func() []store.Item) {
			mu.Lock()
			if inside[k] {
				t.Errorf("%s is done twice at a time", k)
			}
			inside[k] = true
			mu.Unlock()
			for _, i := range take() {
				time.Sleep(time.Minute)
				mu.Lock()
				got[k] = append(got[k], i.ID)
				mu.Unlock()
				_ = i.Done(ctx)
			}
			mu.Lock()
			inside[k] = false
			mu.Unlock()
		})
		want := map[string][]string{}
		for i := range 5 {
			for k := range 100 {
				id := fmt.Sprintf("%d-%d", k, i)
				push(t, q, id)
				want[fmt.Sprint(k)] = append(want[fmt.Sprint(k)], id)
			}
			timetest.Sleep(10 * time.Second)
		}
		for size(t, q) > 0 {
			timetest.Sleep(time.Second)
		}
		if took := time.Since(start); took > 5*time.Minute+2*time.Second {
			t.Errorf("took %v: keys waited for each other", took)
		}
		stop()
		for k := range want {
			if !slices.Equal(got[k], want[k]) {
				t.Errorf("key %s: %q, want %q", k, got[k], want[k])
			}
		}
	})
}

// counted returns the number of goroutines. It waits a while until that is want, because
// a goroutine that has ended is counted until the runtime has removed it.
func counted(want int) (n int) {
	for range 100_000 {
		if n = runtime.NumGoroutine(); n == want {
			break
		}
		runtime.Gosched()
	}
	return n
}

// A goroutine exists only while its key has work.
func TestWorkLeavesWhenIdle(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		q := mem.New().Queue("q")
		runs := 0 // of one key: never two at a time
		var in []store.Item
		stop := work(t, q, func(ctx context.Context, k string, take func() []store.Item) {
			runs++
			time.Sleep(time.Minute)
			in = take()
			for _, i := range in {
				_ = i.Done(ctx)
			}
			if take() != nil {
				t.Error("take gives the same twice")
			}
		})
		synctest.Wait()
		idle := counted(0)
		push(t, q, "a-1", "a-2", "a-3")
		synctest.Wait()
		if n := counted(idle + 1); n != idle+1 {
			t.Errorf("%d goroutines for one key, want 1", n-idle)
		}
		timetest.Sleep(2 * time.Minute)
		synctest.Wait()
		if n := counted(idle); n != idle {
			t.Errorf("%d goroutines stay, want none", n-idle)
		}
		if runs != 1 || len(in) != 3 {
			t.Errorf("%d runs, the last with %d items, want 1 with 3", runs, len(in))
		}
		push(t, q, "a-4")
		timetest.Sleep(2 * time.Minute)
		synctest.Wait()
		if runs != 2 || len(in) != 1 {
			t.Errorf("%d runs, the last with %d items, want 2 with 1", runs, len(in))
		}
		stop()
	})
}

// Work that arrives while its key is busy is neither lost nor done concurrently.
func TestWorkJoins(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		q := mem.New().Queue("q")
		var batches [][]string
		stop := work(t, q, func(ctx context.Context, k string, take func() []store.Item) {
			var ids []string
			for _, i := range take() {
				ids = append(ids, i.ID)
				_ = i.Done(ctx)
			}
			batches = append(batches, ids)
			time.Sleep(time.Minute)
		})
		push(t, q, "a-1")
		timetest.Sleep(time.Second)
		push(t, q, "a-2", "a-3")
		timetest.Sleep(time.Hour)
		stop()
		if got := fmt.Sprint(batches); got != "[[a-1] [a-2 a-3]]" {
			t.Errorf("batches = %v", got)
		}
	})
}

// P16: Work waits for all. Work that was not taken is returned to the queue.
func TestWorkEnds(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		q := mem.New().Queue("q")
		ended := 0
		stop := work(t, q, func(ctx context.Context, k string, take func() []store.Item) {
			items := take()
			<-ctx.Done()
			time.Sleep(time.Minute)
			for _, i := range items {
				_ = i.Done(context.WithoutCancel(ctx))
			}
			ended++
		})
		push(t, q, "a-1")
		synctest.Wait()
		push(t, q, "a-2", "a-3")
		synctest.Wait()
		stop()
		if ended != 1 {
			t.Errorf("%d do have ended, want 1", ended)
		}
		for _, want := range []string{"a-2", "a-3"} {
			item, err := q.Pull(t.Context())
			if err != nil || item.ID != want {
				t.Errorf("Pull = %q, %v; want %q", item.ID, err, want)
			}
		}
	})
}

func TestWorkEndsWithItsQueue(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := mem.New()
		ended := make(chan error)
		go func() { ended <- store.Work(t.Context(), s.Queue("q"), key, nil) }()
		synctest.Wait()
		s.Close()
		if err := <-ended; !errors.Is(err, store.ErrClosed) {
			t.Errorf("Work = %v, want ErrClosed", err)
		}
	})
}
