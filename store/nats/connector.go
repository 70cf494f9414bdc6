package nats

import (
	"context"
	"net"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

// Listen implements [store.Connector].
func (s *Store) Listen(name string) (net.Listener, error) { return s.tunnel.Listen(token(name)) }

// dial connects to the gateway that has the Store.
func (s *Store) dial(ctx context.Context, name string, c store.Caller) (net.Conn, error) {
	return s.tunnel.Dial(ctx, token(name), c)
}

// A bus is the connection to the servers as a [tunnel.Bus]. Its messages are not stored.
type bus struct{ conn *client.Conn }

// Publish implements [tunnel.Bus].
func (b bus) Publish(subject string, body []byte) error { return b.conn.Publish(subject, body) }

// Subscribe implements [tunnel.Bus].
func (b bus) Subscribe(subject string, receive func([]byte)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subject, func(m *client.Msg) { receive(m.Data) })
	if err != nil {
		return nil, err
	}
	return func() { _ = sub.Unsubscribe() }, nil // it can only fail if the connection has ended
}
