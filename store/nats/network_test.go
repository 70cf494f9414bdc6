package nats_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/storetest"
)

// A proxy is between clients and a server.
type proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns []net.Conn
	after string // cuts the connection when the server answers to what contains this; "": never
	stuck bool   // nothing is passed on
}

func startProxy(t *testing.T, s *server.Server) *proxy {
	t.Helper()
	l := listen(t)
	p := &proxy{listener: l, server: s.Addr().String()}
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { p.serve(ctx, client) })
		}
	})
	t.Cleanup(func() {
		stop()
		l.Close()
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		all.Wait()
	})
	return p
}

func (p *proxy) address() string { return "nats://" + p.listener.Addr().String() }

func (p *proxy) serve(ctx context.Context, client net.Conn) {
	server, err := new(net.Dialer).DialContext(ctx, "tcp", p.server)
	if err != nil {
		client.Close()
		return
	}
	p.mu.Lock()
	p.conns = append(p.conns, client, server)
	p.mu.Unlock()
	var both sync.WaitGroup
	armed := make(chan struct{}, 1) // holds a token when the next answer is to be lost
	both.Go(func() { p.forward(server, client, func(data []byte) bool { return p.sees(data, armed) }) })
	both.Go(func() {
		p.forward(client, server, func([]byte) bool {
			select {
			case <-armed:
				return false
			default:
				return true
			}
		})
	})
	both.Wait()
}

// sees arms the connection if data has what the proxy waits for.
func (p *proxy) sees(data []byte, armed chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != "" && bytes.Contains(data, []byte(p.after)) {
		p.after = ""
		armed <- struct{}{}
	}
	return true
}

// forward passes data on until pass refuses some, and then closes both sides.
func (p *proxy) forward(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass(buf[:n]) {
			return
		}
		p.mu.Lock()
		stuck := p.stuck
		p.mu.Unlock()
		if stuck {
			continue
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// loseAnswer has the next answer to what contains text lost.
func (p *proxy) loseAnswer(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = text
}

// lost fails the test unless an answer was lost.
func (p *proxy) lost(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != "" {
		t.Errorf("nothing with %q was sent", p.after)
	}
}

// stall has nothing passed on any more, with the connections open, or goes on.
func (p *proxy) stall(stuck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stuck = stuck
}

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
	p := startProxy(t, natstest.Start(t, natstest.Listening(t)))
	s := openAt(t, nats.Config{URL: p.address()})
	ctx := t.Context()
	l, b, q := s.Log("l"), s.Bucket("b"), s.Queue("q")

	const publish = "HPUB parley.log"
	p.loseAnswer(publish)
	if seq, err := l.Append(ctx, 0, []byte("a")); seq != 1 || err != nil {
		t.Errorf("Append = %d, %v", seq, err)
	}
	p.lost(t)
	p.loseAnswer("Nats-Batch-Commit")
	if seq, err := l.Append(ctx, 1, []byte("b"), []byte("c")); seq != 3 || err != nil {
		t.Errorf("Append of two = %d, %v", seq, err)
	}
	p.lost(t)
	if got := fmt.Sprint(storetest.Records(t, l, 0)); got != "[1:a 2:b 3:c]" {
		t.Errorf("records = %s", got)
	}
	if seq, err := l.Append(ctx, 3, []byte("d")); seq != 4 || err != nil { // the end that is remembered is right
		t.Errorf("Append = %d, %v", seq, err)
	}

	p.loseAnswer("HPUB parley.bucket")
	rev, err := b.Put(ctx, "k", []byte("1"), 0)
	if err != nil {
		t.Errorf("Put = %v", err)
	}
	p.lost(t)
	large := bytes.Repeat([]byte{'x'}, 2<<20)
	p.loseAnswer("Nats-Batch-Commit")
	rev, err = b.Put(ctx, "k", large, rev)
	if err != nil {
		t.Errorf("Put of a large value = %v", err)
	}
	p.lost(t)
	if val, at, err := b.Get(ctx, "k"); !bytes.Equal(val, large) || at != rev || err != nil {
		t.Errorf("Get = %d bytes at %d, %v; want %d at %d", len(val), at, err, len(large), rev)
	}
	p.loseAnswer("Parley-Kind: gone")
	if err := b.Delete(ctx, "k"); err != nil {
		t.Errorf("Delete = %v", err)
	}
	p.lost(t)
	p.loseAnswer("STREAM.PURGE")
	if err := l.Trim(ctx, 2); err != nil {
		t.Errorf("Trim = %v", err)
	}
	p.lost(t)

	p.loseAnswer("Nats-Batch-Commit")
	if err := q.Push(ctx, "id", []byte("body")); err != nil {
		t.Errorf("Push = %v", err)
	}
	p.lost(t)
	if n, err := q.Len(ctx); n != 1 || err != nil {
		t.Errorf("Len = %d, %v", n, err)
	}
	item, err := q.Pull(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.loseAnswer("STREAM.PURGE")
	if err := item.Done(ctx); err != nil {
		t.Errorf("Done = %v", err)
	}
	p.lost(t)
	if got := fmt.Sprint(storetest.Keys(t, b, ""), storetest.Records(t, l, 0)); got != "[] [3:c 4:d]" {
		t.Errorf("at the end there are %s", got)
	}
}

// A process that cannot reach the servers counts its locks as lost before another one gets them, and what it wrote for
// a record that is no longer the last one is refused.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := startProxy(t, srv)
	const leaseTime = 1200 * time.Millisecond
	cut := openAt(t, nats.WithLeaseTime(nats.Config{URL: p.address()}, leaseTime))
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
	p.stall(true)
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
	p.stall(false)
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
