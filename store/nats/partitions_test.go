package nats_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/partitions"
)

// Members whose processes share servers divide the work: one that is cut off from them has ended its work before the
// others begin it, and so has one that leaves.
func TestPartitions(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	var w workers
	var running sync.WaitGroup
	proxies := map[string]*natstest.Proxy{}
	leave := map[string]chan struct{}{}
	ended := map[string]chan error{}
	all := []string{"a", "b", "c"}
	for _, id := range all {
		proxies[id] = natstest.StartProxy(t, srv.Addr().String())
		asked, returned := make(chan struct{}), make(chan error, 1)
		leave[id] = asked
		ended[id] = returned
		s := openAt(t, nats.WithLeaseTime(nats.Config{URL: proxies[id].Address()}, 6*time.Second))
		running.Go(func() {
			returned <- partitions.Join(t.Context(), partitions.Config{
				Store: s,
				ID:    partitions.MemberID(id),
				Name:  id,
				Log:   slog.New(slog.DiscardHandler),
				Work:  func(ctx context.Context, p int, release <-chan struct{}) { w.work(ctx, t, id, p, release) },
			}, asked)
		})
	}
	t.Cleanup(running.Wait)
	w.wait(t, all...)
	proxies["a"].Stall(true)
	if err := <-ended["a"]; !errors.Is(err, store.ErrLockLost) {
		t.Errorf("Join = %v where no server was reached, want %v", err, store.ErrLockLost)
	}
	w.wait(t, "b", "c")
	close(leave["b"])
	if err := <-ended["b"]; err != nil {
		t.Errorf("Join = %v after leaving", err)
	}
	w.wait(t, "c")
	proxies["a"].Stall(false)
}

// Workers are who works on each partition, "" for nobody.
type workers struct {
	mu sync.Mutex
	of [partitions.Count]string
}

func (w *workers) work(ctx context.Context, t *testing.T, id string, p int, release <-chan struct{}) {
	w.mu.Lock()
	if other := w.of[p]; other != "" {
		t.Errorf("%s works on partition %d, and so does %s", id, p, other)
	}
	w.of[p] = id
	w.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-release:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of[p] = ""
}

// wait waits until the work is divided among ids.
func (w *workers) wait(t *testing.T, ids ...string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for !w.isDivided(ids) {
		if time.Now().After(deadline) {
			t.Fatalf("after a minute the work is not divided among %s", ids)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *workers) isDivided(ids []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	counts := map[string]int{}
	for _, id := range w.of {
		counts[id]++
	}
	return len(counts) == len(ids) && !slices.ContainsFunc(ids, func(id string) bool {
		return counts[id] < partitions.Count/len(ids)
	})
}
