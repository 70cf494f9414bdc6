package nats_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"parley/store"
	"parley/store/nats"
	"parley/store/nats/natstest"
)

// A gateway that waits for the Store reaches the one that has it, and nobody once that one may have been taken over.
func TestConnector(t *testing.T) {
	t.Parallel()
	srv := natstest.Start(t, natstest.Listening(t))
	p := natstest.StartProxy(t, srv.Addr().String())
	cfg := nats.WithLeaseTime(nats.Config{URL: p.Address()}, 3*time.Second)
	first, err := cfg.Open(t.Context(), store.Host{})
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	l, err := first.(store.Connector).Listen("the page, of *.>")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan net.Conn, 1)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn
		}
	}()
	other := nats.WithLeaseTime(nats.Config{URL: srv.ClientURL()}, 3*time.Second)
	dials := make(chan store.Dial, 1)
	opened := make(chan store.Store, 1)
	go func() {
		second, err := other.Open(t.Context(), store.Host{Waiting: func(_ string, dial store.Dial, _ store.Remote) { dials <- dial }})
		if err != nil {
			t.Error(err)
		}
		opened <- second
	}()
	dial := <-dials
	near, err := dial(t.Context(), "the page, of *.>", store.Caller{From: "10.0.0.1:5", At: "localhost:80", Public: "https://a.example"})
	if err != nil {
		t.Fatal(err)
	}
	far := <-accepted
	if from, at := far.RemoteAddr(), far.LocalAddr(); from != (store.Address{Name: "10.0.0.1:5"}) || at != (store.Address{Name: "localhost:80", Public: "https://a.example"}) {
		t.Errorf("from %v, at %v", from, at)
	}
	go func() {
		_, _ = far.Write([]byte("hello"))
		far.Close()
	}()
	if said, err := io.ReadAll(near); string(said) != "hello" || err != nil {
		t.Errorf("%q, %v", said, err)
	}
	if _, err := dial(t.Context(), "something else", store.Caller{}); err == nil {
		t.Error("somebody answers to another name")
	}

	p.Stall(true)
	second := <-opened
	p.Stall(false)
	if conn, err := dial(t.Context(), "the page, of *.>", store.Caller{}); err == nil {
		conn.Close()
		t.Error("a gateway that was taken over answers")
	}
	if err := second.Close(); err != nil {
		t.Error(err)
	}
	if _, err := second.(store.Connector).Listen("late"); !errors.Is(err, store.ErrClosed) && err == nil {
		t.Errorf("Listen on a Store that is closed = %v", err)
	}
}
