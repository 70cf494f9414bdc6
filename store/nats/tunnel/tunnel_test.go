package tunnel

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/nettest"

	"parley/store"
	"parley/timetest"
)

// A bus is one in memory. Each subscription has its messages one after the other, as those of NATS have.
type bus struct {
	mu   sync.Mutex
	subs map[string][]*inbox
	lose func(subject string, body []byte) bool // nil: none is lost
	down error                                  // of each Publish
}

type inbox struct {
	bodies chan []byte
	done   chan struct{}
}

func (b *bus) Publish(subject string, body []byte) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.down != nil {
		return b.down
	}
	if b.lose != nil && b.lose(subject, body) {
		return nil
	}
	for _, in := range b.subs[subject] {
		in.bodies <- bytes.Clone(body)
	}
	return nil
}

func (b *bus) Subscribe(subject string, receive func([]byte)) (stop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.subs == nil {
		b.subs = map[string][]*inbox{}
	}
	in := &inbox{bodies: make(chan []byte, 10_000), done: make(chan struct{})}
	b.subs[subject] = append(b.subs[subject], in)
	go func() {
		for {
			select {
			case body := <-in.bodies:
				receive(body)
			case <-in.done:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		close(in.done)
		b.subs[subject] = slices.DeleteFunc(b.subs[subject], func(other *inbox) bool { return other == in })
		if len(b.subs[subject]) == 0 {
			delete(b.subs, subject)
		}
	}), nil
}

// subscriptions counts those of ends.
func (b *bus) subscriptions() (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for subject := range b.subs {
		if strings.HasPrefix(subject, "t.end.") {
			n++
		}
	}
	return n
}

func always() error { return nil }

// pair returns both ends of a connection, each of a Tunnel of its own. Closing those ends everything.
func pair(t *testing.T, b *bus) (near, far net.Conn) {
	t.Helper()
	server, client := New(b, "t", always), New(b, "t", always)
	t.Cleanup(func() {
		client.Close()
		server.Close()
		if n := b.subscriptions(); n != 0 {
			t.Errorf("%d subscriptions are left", n)
		}
	})
	l, err := server.Listen("web")
	if err != nil {
		t.Fatal(err)
	}
	near, err = client.Dial(t.Context(), "web", store.Caller{From: "10.0.0.1:5", At: "localhost:80"})
	if err != nil {
		t.Fatal(err)
	}
	far, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	return near, far
}

// A connection is one as package net wants it.
func TestConn(t *testing.T) {
	nettest.TestConn(t, func() (c1, c2 net.Conn, stop func(), err error) {
		b := &bus{}
		server, client := New(b, "t", always), New(b, "t", always)
		stop = func() {
			client.Close()
			server.Close()
		}
		l, err := server.Listen("web")
		if err != nil {
			return nil, nil, nil, err
		}
		if c1, err = client.Dial(context.Background(), "web", store.Caller{}); err != nil {
			return nil, nil, nil, err
		}
		c2, err = l.Accept()
		return c1, c2, stop, err
	})
}

// Whoever accepts knows for whom a connection was made, and where.
func TestCaller(t *testing.T) {
	_, far := pair(t, &bus{})
	if from, at := far.RemoteAddr().String(), far.LocalAddr().String(); from != "10.0.0.1:5" || at != "localhost:80" {
		t.Errorf("from %q, at %q", from, at)
	}
}

// An HTTP server behind a tunnel answers many at a time, also more than fits into the window, in both directions.
func TestHTTP(t *testing.T) {
	b := &bus{}
	server, client := New(b, "t", always), New(b, "t", always)
	defer server.Close()
	defer client.Close()
	l, err := server.Listen("web")
	if err != nil {
		t.Fatal(err)
	}
	s := http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(w, r.Body) })}
	var served sync.WaitGroup
	served.Go(func() { _ = s.Serve(l) })
	defer served.Wait()
	defer s.Close()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return client.Dial(ctx, "web", store.Caller{})
	}}
	defer transport.CloseIdleConnections()
	var asked sync.WaitGroup
	for range 8 {
		asked.Go(func() {
			sent := make([]byte, 3*window*maxChunk)
			_, _ = rand.Read(sent)
			req, err := http.NewRequestWithContext(t.Context(), "POST", "http://x/", bytes.NewReader(sent))
			if err != nil {
				t.Error(err)
				return
			}
			resp, err := (&http.Client{Transport: transport}).Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer resp.Body.Close()
			if got, err := io.ReadAll(resp.Body); err != nil || !bytes.Equal(got, sent) {
				t.Errorf("%d of %d bytes came back: %v", len(got), len(sent), err)
			}
		})
	}
	asked.Wait()
}

// What was written before Close arrives; then the connection has ended.
func TestCloseIsAfterAll(t *testing.T) {
	near, far := pair(t, &bus{})
	sent := bytes.Repeat([]byte("0123456789"), 20_000)
	go func() {
		_, _ = near.Write(sent)
		near.Close()
	}()
	if got, err := io.ReadAll(far); err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d of %d bytes came: %v", len(got), len(sent), err)
	}
}

// A lost message of any kind is never taken for the end of a connection, nor does what follows take its place.
func TestLostMessage(t *testing.T) {
	for _, kind := range []byte{frameData, frameRead, frameEnd} {
		t.Run(string(kind), func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				b := &bus{}
				near, far := pair(t, b)
				lost := false
				b.mu.Lock()
				b.lose = func(_ string, body []byte) bool {
					isLost := !lost && body[0] == kind
					lost = lost || isLost
					return isLost
				}
				b.mu.Unlock()
				go func() {
					for range 3 {
						_, _ = near.Write([]byte("abc"))
					}
					if kind == frameEnd {
						near.Close()
					}
				}()
				began := time.Now()
				got, err := io.ReadAll(far)
				if !errors.Is(err, ErrBroken) {
					t.Errorf("%q, %v", got, err)
				}
				if took := time.Since(began); took > silenceLimit+aliveInterval {
					t.Errorf("that took %v", took)
				}
			})
		})
	}
}

// A connection whose other end is gone without a word ends, and an idle one stays.
func TestSilence(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := &bus{}
		near, far := pair(t, b)
		timetest.Sleep(time.Hour)
		go func() { _, _ = near.Write([]byte("still there")) }()
		got := make([]byte, 11)
		if _, err := io.ReadFull(far, got); err != nil || string(got) != "still there" {
			t.Errorf("%q, %v", got, err)
		}
		b.mu.Lock()
		b.lose = func(string, []byte) bool { return true }
		b.mu.Unlock()
		began := time.Now()
		if _, err := far.Read(got); !errors.Is(err, ErrBroken) {
			t.Error(err)
		}
		if took := time.Since(began); took > silenceLimit+aliveInterval {
			t.Errorf("that took %v", took)
		}
	})
}

// If the bus takes nothing, connections are broken.
func TestBusIsDown(t *testing.T) {
	b := &bus{}
	near, far := pair(t, b)
	b.mu.Lock()
	b.down = errors.New("no servers")
	b.mu.Unlock()
	_, _ = near.Write([]byte("abc"))
	if _, err := near.Read(make([]byte, 1)); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), "no servers") {
		t.Error(err)
	}
	far.Close()
}

// Nobody answers where nobody listens, where whoever does must not be used any more, or where nobody accepts.
func TestNoAnswer(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := &bus{}
		var usable atomic.Bool
		client, server := New(b, "t", always), New(b, "t", func() error {
			if usable.Load() {
				return nil
			}
			return errors.New("taken over")
		})
		defer client.Close()
		defer server.Close()
		dial := func() {
			t.Helper()
			began := time.Now()
			if _, err := client.Dial(t.Context(), "web", store.Caller{}); !errors.Is(err, ErrNoAnswer) || time.Since(began) != acceptTimeout {
				t.Errorf("after %v: %v", time.Since(began), err)
			}
		}
		dial()
		l, err := server.Listen("web")
		if err != nil {
			t.Fatal(err)
		}
		dial()
		usable.Store(true)
		for range backlog {
			if _, err := client.Dial(t.Context(), "web", store.Caller{}); err != nil {
				t.Fatal(err)
			}
		}
		dial()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
			t.Error(err)
		}
		dial()
		timetest.Sleep(time.Second)
		if n := b.subscriptions(); n != 0 {
			t.Errorf("%d connections are left that nobody accepted", n)
		}
	})
}

// Close ends connections that are in use, and those whose other end does not read.
func TestClose(t *testing.T) {
	b := &bus{}
	server, client := New(b, "t", always), New(b, "t", always)
	l, err := server.Listen("web")
	if err != nil {
		t.Fatal(err)
	}
	near, err := client.Dial(t.Context(), "web", store.Caller{})
	if err != nil {
		t.Fatal(err)
	}
	far, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	written := make(chan error)
	go func() {
		_, err := near.Write(make([]byte, 4*window*maxChunk))
		written <- err
	}()
	_, _ = io.ReadFull(far, make([]byte, maxChunk))
	client.Close()
	if err := <-written; err == nil {
		t.Error("what cannot arrive was written")
	}
	if _, err := io.Copy(io.Discard, far); !errors.Is(err, ErrBroken) {
		t.Errorf("what is incomplete ends with %v", err)
	}
	if _, err := client.Dial(t.Context(), "web", store.Caller{}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	server.Close()
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if n := b.subscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
}

// Whoever reads slowly has all that was sent before the other end closed, and that end is gone by then.
func TestSlowReader(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		near, far := pair(t, &bus{})
		const frames, size = 25, 1000
		go func() {
			for range frames {
				_, _ = near.Write(make([]byte, size))
			}
			near.Close()
		}()
		n, piece := 0, make([]byte, size)
		for {
			timetest.Sleep(2 * time.Second)
			m, err := far.Read(piece)
			if n += m; err == nil {
				continue
			}
			if !errors.Is(err, io.EOF) || n != frames*size {
				t.Errorf("%d of %d bytes, %v", n, frames*size, err)
			}
			return
		}
	})
}

// Whoever writes to an end that has closed learns it, though it does not read what that end has said before.
func TestWriteAfterEnd(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		near, far := pair(t, &bus{})
		go func() {
			_, _ = near.Write([]byte("unread"))
			near.Close()
		}()
		timetest.Sleep(time.Second)
		var err error
		for range 2 {
			_, err = far.Write([]byte("who hears this?"))
		}
		if err == nil {
			t.Error("it was written")
		}
	})
}

// An end that breaks the rules loses its connection, and harms nobody else.
func TestRules(t *testing.T) {
	for name, follows := range map[string][]byte{"end twice": {frameEnd}, "data after the end": {frameData, 'x'}} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				near, far := pair(t, &bus{})
				go func() { _, _ = near.Write([]byte("unread")) }()
				timetest.Sleep(time.Second) // far's end waits for a reader
				sender := near.(*conn).end
				sender.send(frameEnd, nil)
				sender.send(follows[0], follows[1:])
				timetest.Sleep(time.Second)
				if _, err := io.Copy(io.Discard, far); !errors.Is(err, ErrBroken) {
					t.Errorf("it ends with %v", err)
				}
			})
		})
	}
}

// Whoever calls has nothing published but to ends.
func TestForeignSubject(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := &bus{}
		server := New(b, "t", always)
		defer server.Close()
		if _, err := server.Listen("web"); err != nil {
			t.Fatal(err)
		}
		told := make(chan []byte, 1)
		stop, err := b.Subscribe("t.bucket.x", func(body []byte) { told <- body })
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if err := b.Publish("t.dial.web", []byte(`{"Subject":"t.bucket.x"}`)); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(time.Second)
		if len(told) > 0 {
			t.Errorf("published there: %q", <-told)
		}
	})
}
