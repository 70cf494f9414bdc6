package nats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
)

// A Store that a newer version has written is left alone, also if that happened while this one stood by.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	ctx := t.Context()
	cfg := nats.WithLeaseTime(nats.Config{URL: srv.ClientURL()}, 1500*time.Millisecond)
	first, err := cfg.Open(ctx, store.Host{})
	if err != nil {
		t.Fatal(err)
	}
	waiting := make(chan string, 1)
	second := make(chan error, 1)
	go func() {
		again := cfg
		s, err := again.Open(ctx, store.Host{Waiting: func(holder string, _ store.Dial, _ store.Remote) { waiting <- holder }})
		if err == nil {
			s.Close()
		}
		second <- err
	}()
	<-waiting
	js := jetStream(t, srv)
	stream, err := js.Stream(ctx, "parley-logs")
	if err != nil {
		t.Fatal(err)
	}
	newer := stream.CachedInfo().Config
	if newer.Metadata["parley-format"] != "1" {
		t.Errorf("the metadata is %q", newer.Metadata)
	}
	newer.Metadata["parley-format"] = "2"
	if _, err := js.UpdateStream(ctx, newer); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-second; !errors.Is(err, nats.ErrNewer) {
		t.Errorf("who stood by: %v", err)
	}
	_, err = cfg.Open(ctx, store.Host{Brief: true})
	if !errors.Is(err, nats.ErrNewer) || !strings.Contains(err.Error(), "stream parley-logs: it has format 2, and this version understands 1 at most") {
		t.Errorf("who comes later: %v", err)
	}
	if _, err := cfg.Examine(ctx); !errors.Is(err, nats.ErrNewer) {
		t.Errorf("doctor: %v", err)
	}
}

// One gateway uses a Store, and another one stands by. Once it may have taken over, nothing that the first does has an
// effect any more, whether that has noticed or not.
func TestStandBy(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := natstest.StartProxy(t, srv.Addr().String())
	const leaseTime = 1500 * time.Millisecond
	ctx := t.Context()
	configAt := func(address string) *nats.Config {
		cfg := nats.WithLeaseTime(nats.Config{URL: address}, leaseTime)
		return &cfg
	}
	stopped := make(chan error, 1)
	first, err := configAt(p.Address()).Open(ctx, store.Host{
		Stopped: func(err error) { stopped <- err },
		Waiting: func(holder string, _ store.Dial, _ store.Remote) { t.Errorf("it waits for %s", holder) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	if _, err := first.Bucket("b").Put(ctx, "k", []byte("first"), store.Any); err != nil {
		t.Fatal(err)
	}

	_, err = configAt(srv.ClientURL()).Open(ctx, store.Host{Brief: true})
	if err == nil || !strings.Contains(err.Error(), "in use by another gateway, process ") {
		t.Errorf("a command beside a gateway: %v", err)
	}
	if text, err := configAt(srv.ClientURL()).Examine(ctx); err != nil || !strings.Contains(text, "copies of everything: 1, last used by process ") {
		t.Errorf("Examine = %q, %v", text, err)
	}

	type opened struct {
		store store.Store
		err   error
	}
	second := make(chan opened, 1)
	waiting := make(chan string, 1)
	go func() {
		s, err := configAt(srv.ClientURL()).Open(ctx, store.Host{Waiting: func(holder string, _ store.Dial, _ store.Remote) { waiting <- holder }})
		second <- opened{s, err}
	}()
	if holder := <-waiting; !strings.Contains(holder, "process ") {
		t.Errorf("it waits for %q", holder)
	}
	if err := store.Usable(first); err != nil {
		t.Errorf("Usable = %v", err)
	}
	p.Stall(true)
	o := <-second
	if o.err != nil {
		t.Fatal(o.err)
	}
	defer o.store.Close()
	p.Stall(false)
	if err := store.Usable(first); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Usable of a Store that was taken over = %v", err)
	}
	if _, err := first.Bucket("b").Put(ctx, "k", []byte("late"), store.Any); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Put in a Store that was taken over = %v", err)
	}
	if err := <-stopped; !strings.Contains(err.Error(), "start it again to stand by") {
		t.Errorf("Stopped was told %v", err)
	}
	if val, _, err := o.store.Bucket("b").Get(ctx, "k"); string(val) != "first" || err != nil {
		t.Errorf("Get = %q, %v", val, err)
	}
}

// A gateway that stands by can be told to end.
func TestStandByEnds(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	cfg := &nats.Config{URL: srv.ClientURL()}
	if text, err := cfg.Examine(t.Context()); err != nil || !strings.Contains(text, "has nothing stored yet") {
		t.Errorf("Examine = %q, %v", text, err)
	}
	first, err := cfg.Open(t.Context(), store.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	ctx, cancel := context.WithCancel(t.Context())
	_, err = cfg.Open(ctx, store.Host{Waiting: func(string, store.Dial, store.Remote) { cancel() }})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Open = %v", err)
	}
}

// A gateway that takes over has all locks of the one before at once, and so its work.
func TestWorkAfterTakeOver(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := natstest.StartProxy(t, srv.Addr().String())
	const leaseTime = 8 * time.Second
	ctx := t.Context()
	cut := nats.WithLeaseTime(nats.Config{URL: p.Address()}, leaseTime)
	first, err := cut.Open(ctx, store.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	lock, err := first.Lock(ctx, "l")
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Queue("q").Push(ctx, "before", nil); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Queue("q").Pull(ctx); err != nil {
		t.Fatal(err)
	}
	other := nats.WithLeaseTime(nats.Config{URL: srv.ClientURL()}, leaseTime)
	second, err := other.Open(ctx, store.Host{Waiting: func(string, store.Dial, store.Remote) { // what is begun from now on it knows, too
		if err := first.Queue("q").Push(ctx, "id", nil); err != nil {
			t.Error(err)
		}
		if _, err := first.Queue("q").Pull(ctx); err != nil {
			t.Error(err)
		}
		p.Stall(true)
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	soon, cancel := context.WithTimeout(ctx, leaseTime/2)
	defer cancel()
	for _, want := range []string{"before", "id"} {
		if item, err := second.Queue("q").Pull(soon); item.ID != want || !item.Again || err != nil {
			t.Errorf("Pull = %q, again: %v, %v; want %s", item.ID, item.Again, err, want)
		}
	}
	if next, err := second.Lock(soon, "l"); err != nil || next.Fence <= lock.Fence {
		t.Errorf("Lock = fence %d, %v, after %d", next.Fence, err, lock.Fence)
	}
	p.Stall(false)
}
