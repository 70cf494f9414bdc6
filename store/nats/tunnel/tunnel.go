// Package tunnel carries connections between processes that share a bus of messages, so that one of them reaches
// another without an address or a port of its own.
//
// A process that serves something calls Listen with a name, and others Dial it. Each end of a connection has a subject
// of its own. The bus may lose messages but not reorder those of one sender: frames of data have numbers, and an end
// that misses one, or hears nothing for a while, ends the connection with ErrBroken. So whoever reads a connection to
// its end has all of it.
package tunnel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"parley/store"
)

// Errors of connections and of Dial.
var (
	ErrBroken   = errors.New("connection lost: what was sent did not arrive, or the other end is gone")
	ErrNoAnswer = errors.New("nobody accepts the connection")
)

// A Bus brings messages to all who have subscribed to their subject at the time. All methods may be called
// concurrently.
type Bus interface {
	Publish(subject string, body []byte) error
	// Subscribe calls receive with one message after the other until stop is called. It owns the body.
	Subscribe(subject string, receive func(body []byte)) (stop func(), err error)
}

// A Tunnel makes connections over a Bus.
type Tunnel struct {
	bus    Bus
	prefix string       // of subjects
	usable func() error // see Listen

	closing context.Context // ends when the Tunnel is being closed
	stop    context.CancelFunc
	mu      sync.Mutex // held to add to ends
	ends    sync.WaitGroup
}

// New returns a Tunnel. Its subjects begin with prefix. It accepts no connection while usable returns an error.
func New(bus Bus, prefix string, usable func() error) *Tunnel {
	t := &Tunnel{bus: bus, prefix: prefix, usable: usable}
	t.closing, t.stop = context.WithCancel(context.Background())
	return t
}

// Close ends all connections and listeners.
func (t *Tunnel) Close() {
	t.mu.Lock()
	t.stop()
	t.mu.Unlock()
	t.ends.Wait()
}

// A call asks for a connection.
type call struct {
	store.Caller
	Subject string // of the end that asks
}

// acceptTimeout is how long Dial waits.
const acceptTimeout = time.Second

// Dial connects to whoever listens under name. It returns ErrNoAnswer if nobody does.
func (t *Tunnel) Dial(ctx context.Context, name string, caller store.Caller) (net.Conn, error) {
	e, err := t.newEnd()
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	if err := e.call(name, caller); err != nil {
		e.fail(err)
		return nil, fmt.Errorf("connect to %s: %w", name, err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, acceptTimeout, ErrNoAnswer)
	defer cancel()
	select {
	case <-e.connected:
		return e.conn(store.Caller{}), nil
	case <-e.ended.Done():
		err = context.Cause(e.ended)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	e.fail(err)
	return nil, fmt.Errorf("connect to %s: %w", name, err)
}

// call asks whoever listens under name for a connection.
func (e *end) call(name string, caller store.Caller) error {
	body, err := json.Marshal(call{caller, e.subject})
	if err != nil {
		return err
	}
	return e.tunnel.bus.Publish(e.tunnel.prefix+".dial."+name, body)
}

// Listen returns a listener for the connections that are dialled under name. What [net.Conn.RemoteAddr] and LocalAddr
// return is what the [store.Caller] says. One process at a time listens under a name.
func (t *Tunnel) Listen(name string) (net.Listener, error) {
	l := &listener{tunnel: t, name: name, calls: make(chan net.Conn, backlog)}
	l.closing, l.close = context.WithCancel(t.closing)
	stop, err := t.bus.Subscribe(t.prefix+".dial."+name, l.receive)
	if err != nil {
		l.close()
		return nil, fmt.Errorf("listen for %s: %w", name, err)
	}
	context.AfterFunc(l.closing, stop)
	return l, nil
}

// backlog is how many connections wait to be accepted. More are not answered.
const backlog = 128

type listener struct {
	tunnel  *Tunnel
	name    string
	calls   chan net.Conn
	closing context.Context
	close   context.CancelFunc
}

func (l *listener) receive(body []byte) {
	var c call
	isBusy := len(l.calls) == cap(l.calls)
	if json.Unmarshal(body, &c) != nil || l.tunnel.usable() != nil || isBusy || l.closing.Err() != nil {
		return
	}
	if !strings.HasPrefix(c.Subject, l.tunnel.endPrefix()) { // and nothing is published anywhere else
		return
	}
	e, err := l.tunnel.newEnd()
	if err != nil {
		return // whoever called finds that nobody answers
	}
	e.connect(c.Subject)
	e.send(frameAccept, []byte(e.subject))
	l.calls <- e.conn(c.Caller) // receive alone writes there
	if l.closing.Err() != nil {
		l.drop()
	}
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closing.Done():
		return nil, &net.OpError{Op: "accept", Net: store.Forwarded, Addr: l.Addr(), Err: net.ErrClosed}
	}
}

// Close implements [net.Listener]. Connections that nobody has accepted are closed.
func (l *listener) Close() error {
	l.close()
	l.drop()
	return nil
}

// drop closes the connections that nobody has accepted.
func (l *listener) drop() {
	for {
		select {
		case c := <-l.calls:
			c.Close()
		default:
			return
		}
	}
}

// Addr implements [net.Listener].
func (l *listener) Addr() net.Addr { return store.Address{Name: l.name} }

func (t *Tunnel) endPrefix() string { return t.prefix + ".end." }

// newEnd returns an end that nobody uses yet. It ends with the Tunnel.
func (t *Tunnel) newEnd() (*end, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closing.Err() != nil {
		return nil, net.ErrClosed
	}
	e := &end{tunnel: t, subject: t.endPrefix() + rand.Text(), chunks: make(chan []byte, window)}
	e.places = make(chan struct{}, window)
	e.app, e.far = net.Pipe()
	e.connected, e.over = make(chan struct{}), make(chan struct{})
	e.ended, e.fail = context.WithCancelCause(context.Background())
	e.hear()
	stop, err := t.bus.Subscribe(e.subject, e.receive)
	if err != nil {
		return nil, err
	}
	t.ends.Go(func() {
		defer stop()
		e.run()
	})
	return e, nil
}
