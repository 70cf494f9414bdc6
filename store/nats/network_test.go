package nats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/storetest"
)

func openAt(t *testing.T, cfg nats.Config) *nats.Store {
	t.Helper()
	s, err := nats.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// The server has done what it was asked, and the answer is lost: nothing is done twice, and nobody is told that another
// one was faster.
func TestLostAnswer(t *testing.T) {
	t.Parallel()
	p := natstest.StartProxy(t, natstest.Start(t, natstest.Listening(t)).Addr().String())
	s := openAt(t, nats.Config{URL: p.Address()})
	ctx := t.Context()
	l, b, q := s.Log("l"), s.Bucket("b"), s.Queue("q")

	const publish = "HPUB parley.log"
	p.LoseAnswer(publish)
	if seq, err := l.Append(ctx, 0, []byte("a")); seq != 1 || err != nil {
		t.Errorf("Append = %d, %v", seq, err)
	}
	p.WantLost(t)
	p.LoseAnswer("Nats-Batch-Commit")
	if seq, err := l.Append(ctx, 1, []byte("b"), []byte("c")); seq != 3 || err != nil {
		t.Errorf("Append of two = %d, %v", seq, err)
	}
	p.WantLost(t)
	if got := fmt.Sprint(storetest.Records(t, l, 0)); got != "[1:a 2:b 3:c]" {
		t.Errorf("records = %s", got)
	}
	if seq, err := l.Append(ctx, 3, []byte("d")); seq != 4 || err != nil { // the end that is remembered is right
		t.Errorf("Append = %d, %v", seq, err)
	}

	p.LoseAnswer("HPUB parley.bucket")
	rev, err := b.Put(ctx, "k", []byte("1"), 0)
	if err != nil {
		t.Errorf("Put = %v", err)
	}
	p.WantLost(t)
	large := bytes.Repeat([]byte{'x'}, 2<<20)
	p.LoseAnswer("Nats-Batch-Commit")
	rev, err = b.Put(ctx, "k", large, rev)
	if err != nil {
		t.Errorf("Put of a large value = %v", err)
	}
	p.WantLost(t)
	if val, at, err := b.Get(ctx, "k"); !bytes.Equal(val, large) || at != rev || err != nil {
		t.Errorf("Get = %d bytes at %d, %v; want %d at %d", len(val), at, err, len(large), rev)
	}
	p.LoseAnswer("Parley-Kind: gone")
	if err := b.Delete(ctx, "k"); err != nil {
		t.Errorf("Delete = %v", err)
	}
	p.WantLost(t)
	p.LoseAnswer("STREAM.PURGE")
	if err := l.Trim(ctx, 2); err != nil {
		t.Errorf("Trim = %v", err)
	}
	p.WantLost(t)

	p.LoseAnswer("Nats-Batch-Commit")
	if err := q.Push(ctx, "id", []byte("body")); err != nil {
		t.Errorf("Push = %v", err)
	}
	p.WantLost(t)
	if n, err := q.Len(ctx); n != 1 || err != nil {
		t.Errorf("Len = %d, %v", n, err)
	}
	item, err := q.Pull(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.LoseAnswer("STREAM.PURGE")
	if err := item.Done(ctx); err != nil {
		t.Errorf("Done = %v", err)
	}
	p.WantLost(t)
	if got := fmt.Sprint(storetest.Keys(t, b, ""), storetest.Records(t, l, 0)); got != "[] [3:c 4:d]" {
		t.Errorf("at the end there are %s", got)
	}
}

// A process that cannot reach the servers counts its locks as lost before another one gets them, and what it wrote for
// a record that is no longer the last one is refused.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := natstest.StartProxy(t, srv.Addr().String())
	const leaseTime = 1200 * time.Millisecond
	cut := openAt(t, nats.WithLeaseTime(nats.Config{URL: p.Address()}, leaseTime))
	other := openAt(t, nats.WithLeaseTime(nats.Config{URL: srv.ClientURL()}, leaseTime))
	ctx := t.Context()
	first, err := cut.Lock(ctx, "l")
	if err != nil {
		t.Fatal(err)
	}
	brief, cancel := context.WithTimeout(ctx, 2*leaseTime)
	defer cancel()
	if _, err := other.Lock(brief, "l"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Lock of what another process holds = %v", err)
	}
	p.Stall(true)
	second, err := other.Lock(ctx, "l")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-first.Lost:
	default:
		t.Error("another process has the lock, and the first does not know that it was lost")
	}
	if second.Fence <= first.Fence {
		t.Errorf("fence %d after %d", second.Fence, first.Fence)
	}
	if _, err := other.Log("l").Append(ctx, 0, []byte("other")); err != nil {
		t.Fatal(err)
	}
	p.Stall(false)
	first.Unlock() // it is not this one's to give back
	if _, err := cut.Log("l").Append(ctx, 0, []byte("late")); !errors.Is(err, store.ErrConflict) {
		t.Errorf("Append after what is no longer the last record = %v", err)
	}
	select {
	case <-second.Lost:
		t.Error("the second process has lost the lock")
	case <-time.After(leaseTime):
	}
	second.Unlock()
	third, err := cut.Lock(ctx, "l") // at once
	if err != nil || third.Fence <= second.Fence {
		t.Errorf("Lock = fence %d, %v", third.Fence, err)
	}
}

// A process that closes its Store knows that it has lost its locks before another one gets them.
func TestCloseEndsLeases(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := natstest.StartProxy(t, srv.Addr().String())
	ends := openAt(t, nats.WithLeaseTime(nats.Config{URL: p.Address()}, 3*time.Second))
	other := openAt(t, nats.WithLeaseTime(nats.Config{URL: srv.ClientURL()}, 3*time.Second))
	first, err := ends.Lock(t.Context(), "l")
	if err != nil {
		t.Fatal(err)
	}
	p.Delay(900 * time.Millisecond) // another one gets the lock while Close waits to hear that it is free
	closed := make(chan error)
	go func() { closed <- ends.Close() }()
	second, err := other.Lock(t.Context(), "l")
	if err != nil {
		t.Fatal(err)
	}
	defer second.Unlock()
	select {
	case <-first.Lost:
	default:
		t.Error("another process has the lock, and the first was not told")
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// Work belongs to one process at a time. The next one gets it in its order, and is told that it may have been begun.
func TestQueueMoves(t *testing.T) {
	t.Parallel()
	srv := startServer(t)
	cfg := nats.WithLeaseTime(nats.Config{}, 1200*time.Millisecond)
	first, second := open(t, srv, cfg), open(t, srv, cfg)
	ctx := t.Context()
	for i := range 3 {
		if err := first.Queue("q").Push(ctx, fmt.Sprint(i), nil); err != nil {
			t.Fatal(err)
		}
	}
	if item, err := first.Queue("q").Pull(ctx); item.ID != "0" || item.Again || err != nil {
		t.Fatalf("Pull = %q, again: %v, %v", item.ID, item.Again, err)
	}
	brief, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	if item, err := second.Queue("q").Pull(brief); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Pull of work that another process has = %q, %v", item.ID, err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 4 {
		item, err := second.Queue("q").Pull(ctx)
		if err != nil || item.ID != fmt.Sprint(i) || item.Again != (i < 3) {
			t.Errorf("Pull = %q, again: %v, %v; want %d", item.ID, item.Again, err, i)
		}
		if i == 2 {
			if err := second.Queue("q").Push(ctx, "3", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
}
