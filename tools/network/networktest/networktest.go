// Package networktest has resolvers for tests, which ask nobody but the test, and addresses for their servers.
package networktest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Offline returns a resolver that reaches no name server.
func Offline() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no network")
	}}
}

// NameServer returns a resolver that asks a name server on loopback, which answers with what answer returns.
func NameServer(t testing.TB, answer func(dnsmessage.Question) []dnsmessage.ResourceBody) *net.Resolver {
	l, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-done })
	go func() {
		defer close(done)
		buf := make([]byte, 4096)
		for {
			n, from, err := l.ReadFrom(buf)
			if err != nil {
				return
			}
			var m dnsmessage.Message
			if m.Unpack(buf[:n]) != nil || len(m.Questions) != 1 {
				continue
			}
			m.Response = true
			m.Additionals = nil
			q := m.Questions[0]
			for _, body := range answer(q) {
				header := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
				m.Answers = append(m.Answers, dnsmessage.Resource{Header: header, Body: body})
			}
			if out, err := m.Pack(); err == nil {
				_, _ = l.WriteTo(out, from)
			}
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", l.LocalAddr().String())
	}}
}

// FreeAddress returns an address of this machine at which nobody listens. It stays free for the test, also while its
// server is away: the system gives ports of this range to nobody who did not ask for them, and FreeAddress gives
// each to one test at a time.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprint("127.0.0.1:", 20_000+rand.IntN(10_000))
		mark, err := (&net.ListenConfig{}).ListenPacket(t.Context(), "udp", address)
		if err != nil {
			continue
		}
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
		if err != nil {
			mark.Close()
			continue
		}
		l.Close()
		t.Cleanup(func() { mark.Close() })
		return address
	}
	t.Fatal("there is no free port")
	return ""
}
