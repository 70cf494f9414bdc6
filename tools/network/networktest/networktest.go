// Package networktest has resolvers for tests, which ask nobody but the test.
package networktest

import (
	"context"
	"errors"
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
