package natstest

import (
	"bytes"
	"context"
	"net"
	"sync"
	"testing"
	"time"
)

// A Proxy is between clients and a server, and what the network does to them.
type Proxy struct {
	listener net.Listener
	server   string

	mu    sync.Mutex
	conns []net.Conn
	after string        // cuts the connection when the server answers to what contains this; "": never
	held  chan struct{} // closed when what is sent is passed on again; nil: it is
	delay time.Duration // of what is passed on
}

// StartProxy starts a Proxy before the server at that address, HOST:PORT, and stops it at the end of the test.
func StartProxy(t testing.TB, server string) *Proxy {
	t.Helper()
	l := Listen(t)
	p := &Proxy{listener: l, server: server}
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
		p.Stall(false)
		p.mu.Lock()
		for _, c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		all.Wait()
	})
	return p
}

// Listen listens on a port of its own.
func Listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Address returns the URL of the Proxy.
func (p *Proxy) Address() string { return "nats://" + p.listener.Addr().String() }

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
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
func (p *Proxy) sees(data []byte, armed chan struct{}) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != "" && bytes.Contains(data, []byte(p.after)) {
		p.after = ""
		armed <- struct{}{}
	}
	return true
}

// forward passes data on until pass refuses some, and then closes both sides.
func (p *Proxy) forward(to, from net.Conn, pass func([]byte) bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := from.Read(buf)
		if err != nil || !pass(buf[:n]) {
			return
		}
		p.wait()
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// wait waits until what was read may be passed on.
func (p *Proxy) wait() {
	p.mu.Lock()
	held, delay := p.held, p.delay
	p.mu.Unlock()
	if delay > 0 {
		time.Sleep(delay)
	}
	if held != nil {
		<-held
	}
}

// LoseAnswer has the next answer to what contains text lost.
func (p *Proxy) LoseAnswer(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = text
}

// WantLost fails the test unless the answer was lost.
func (p *Proxy) WantLost(t testing.TB) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.after != "" {
		t.Errorf("nothing with %q was sent", p.after)
	}
}

// Stall has what is sent wait, with the connections open, or arrive late, as in a network that was cut.
func (p *Proxy) Stall(stuck bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case stuck && p.held == nil:
		p.held = make(chan struct{})
	case !stuck && p.held != nil:
		close(p.held)
		p.held = nil
	}
}

// Delay has what is sent arrive so much later.
func (p *Proxy) Delay(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = d
}
