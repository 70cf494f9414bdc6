package nats_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
)

// openSoon opens a Store on servers that have just been started.
func openSoon(t *testing.T, cfg nats.Config) *nats.Store {
	t.Helper()
	var s *nats.Store
	waitFor(t, "the cluster", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		opened, err := nats.Open(ctx, cfg)
		if err != nil {
			return false
		}
		s = opened
		return true
	})
	t.Cleanup(func() { s.Close() })
	return s
}

// Servers are killed, one after the other, while many write. What was acknowledged is there, once and in order.
func TestKilledServersTorture(t *testing.T) {
	t.Parallel()
	kills := 2
	if os.Getenv("PARLEY_TORTURE") != "" {
		kills = 60
	}
	members := natstest.StartMembers(t)
	var ports []int
	for _, m := range members {
		ports = append(ports, m.Port)
	}
	cfg := nats.Config{URL: natstest.AddressOf(ports), Replicas: 3}
	s := openSoon(t, cfg)
	w := writers{store: s, pushed: map[string]bool{}}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() { w.appendRecords(t, ctx, i) })
		all.Go(func() { w.count(t, ctx) })
		all.Go(func() { w.push(t, ctx, i) })
	}
	for n := range kills {
		w.wait(t, 30)
		m := members[n%len(members)]
		m.Kill()
		w.wait(t, 30) // the others go on without it
		m.Start(t)
	}
	w.wait(t, 30)
	stop()
	all.Wait()
	w.check(t)
}

// writers write to a Store, and remember what was acknowledged.
type writers struct {
	store store.Store

	mu      sync.Mutex
	records [3]int // of each writer
	counted int
	pushed  map[string]bool
	done    int
}

func (w *writers) acknowledged(what func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	what()
	w.done++
}

// wait waits until so many more writes are acknowledged.
func (w *writers) wait(t *testing.T, writes int) {
	t.Helper()
	w.mu.Lock()
	goal := w.done + writes
	w.mu.Unlock()
	waitFor(t, "writes", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.done >= goal
	})
}

// appendRecords appends two or three records at a time.
func (w *writers) appendRecords(t *testing.T, ctx context.Context, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		recs := [][]byte{fmt.Append(nil, writer, " ", n, " 0"), fmt.Append(nil, writer, " ", n, " 1")}
		if _, err := w.store.Log("l").Append(context.WithoutCancel(ctx), store.Any, recs...); err != nil {
			t.Errorf("Append = %v", err)
			return
		}
		w.acknowledged(func() { w.records[writer]++ })
	}
}

// count adds one to a number.
func (w *writers) count(t *testing.T, ctx context.Context) {
	b := w.store.Bucket("b")
	for ctx.Err() == nil {
		val, rev, err := b.Get(context.WithoutCancel(ctx), "n")
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Get = %v", err)
			return
		}
		n, _ := strconv.Atoi(string(val))
		_, err = b.Put(context.WithoutCancel(ctx), "n", fmt.Append(nil, n+1), rev)
		if errors.Is(err, store.ErrConflict) {
			continue
		}
		if err != nil {
			t.Errorf("Put = %v", err)
			return
		}
		w.acknowledged(func() { w.counted++ })
	}
}

func (w *writers) push(t *testing.T, ctx context.Context, writer int) {
	for n := 0; ctx.Err() == nil; n++ {
		id := fmt.Sprint(writer, " ", n)
		if err := w.store.Queue("q").Push(context.WithoutCancel(ctx), id, []byte(id)); err != nil {
			t.Errorf("Push = %v", err)
			return
		}
		w.acknowledged(func() { w.pushed[id] = true })
	}
}

func (w *writers) check(t *testing.T) {
	var next [3]int
	var last [3]int
	for r, err := range w.store.Log("l").Since(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		var writer, n, part int
		if _, err := fmt.Sscan(string(r.Body), &writer, &n, &part); err != nil {
			t.Fatal(err)
		}
		if n != next[writer] || part != last[writer] {
			t.Fatalf("record %d is %q, want append %d, part %d", r.Seq, r.Body, next[writer], last[writer])
		}
		last[writer] = 1 - part
		next[writer] += part
	}
	if next != w.records {
		t.Errorf("the log has %v appends of each writer, of which %v were acknowledged", next, w.records)
	}
	val, _, err := w.store.Bucket("b").Get(t.Context(), "n")
	if err != nil || string(val) != fmt.Sprint(w.counted) {
		t.Errorf("the number is %s, %v after %d additions", val, err, w.counted)
	}
	for range len(w.pushed) {
		item, err := w.store.Queue("q").Pull(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !w.pushed[item.ID] {
			t.Errorf("work %q came twice, or was never pushed", item.ID)
		}
		delete(w.pushed, item.ID)
		if err := item.Done(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := w.store.Queue("q").Len(t.Context()); n != 0 || err != nil {
		t.Errorf("Len = %d, %v when all is done", n, err)
	}
}
