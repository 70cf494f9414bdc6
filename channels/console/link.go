package console

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"sync"
	"time"

	"parley/channels"
)

// A link connects a client to the gateway. It reconnects when a connection breaks,
// and sends again what was not settled on the last one (P3). A client that leaves
// when everything is settled loses nothing and is shown no reply twice.
type link struct {
	dial             Dialer
	kind             string        // asTerminal, or asPipe, whose messages are settled by their answers
	reconnectTimeout time.Duration // until run gives up on a gateway that went away; 0: no limit
	frames           chan frame    // from the gateway, and frameLost

	mu        sync.Mutex
	conn      *frameConn // nil while disconnected
	unsettled []frame    // messages and acknowledgements, in order
	shown     []string   // IDs of the latest replies that were shown
}

// firstDialTimeout is how long a link tries to make its first connection: the
// gateway may be restarting.
const firstDialTimeout = 10 * time.Second

// reconnectBackoff is the pause between connections.
var reconnectBackoff = channels.Backoff{Least: 100 * time.Millisecond, Most: 5 * time.Second}

// run keeps the link up until ctx ends. It returns an error if it cannot connect
// within firstDialTimeout, or reconnect within reconnectTimeout.
func (l *link) run(ctx context.Context) error {
	down := time.Now()
	timeout := firstDialTimeout
	for wait := reconnectBackoff; ctx.Err() == nil; channels.Sleep(ctx, wait.Next(nil)) {
		conn, err := l.dial(ctx)
		switch {
		case err == nil:
			if l.useConnection(ctx, conn) {
				wait = reconnectBackoff
			}
			down = time.Now()
			timeout = l.reconnectTimeout
			l.emit(ctx, frame{Kind: frameLost})
		case ctx.Err() != nil:
		case timeout > 0 && time.Since(down) > timeout:
			return err
		}
	}
	return nil
}

// useConnection exchanges frames on conn until it breaks, and reports whether it
// received any.
func (l *link) useConnection(ctx context.Context, conn net.Conn) (received bool) {
	fc := newFrameConn(conn)
	fc.send(frame{Kind: frameHello, ID: l.kind})
	l.mu.Lock()
	for _, f := range l.unsettled {
		fc.send(f)
	}
	l.conn = fc
	l.mu.Unlock()
	fc.run(ctx, func(f frame) {
		received = true
		switch {
		case f.Kind == frameTaken:
			l.settle(f.ID)
		case f.Kind == frameStored:
			l.noteStored(f.ID)
			return
		case (f.Kind == frameReply || f.Kind == frameDraft || f.Kind == frameStep) && l.wasShown(f.ID):
			if f.Kind == frameReply {
				fc.send(frame{Kind: frameShown, ID: f.ID})
			}
			return
		}
		l.emit(ctx, f)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = nil
	return received
}

// emit passes f to whoever reads l.frames.
func (l *link) emit(ctx context.Context, f frame) {
	select {
	case l.frames <- f:
	case <-ctx.Done():
	}
}

// sendMessage sends text, now or once there is a connection, and returns its ID.
func (l *link) sendMessage(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := frame{Kind: frameMessage, ID: rand.Text(), Text: text}
	l.queueFrame(f)
	return f.ID
}

// acknowledge acknowledges the reply id, which was shown.
func (l *link) acknowledge(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = remember(l.shown, id)
	l.queueFrame(frame{Kind: frameShown, ID: id})
}

// queueFrame sends f on every connection until it is settled. The caller holds mu.
func (l *link) queueFrame(f frame) {
	l.unsettled = append(l.unsettled, f)
	if l.conn != nil {
		l.conn.send(f)
	}
}

// settle drops the message or acknowledgement id from what is sent again.
func (l *link) settle(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unsettled = slices.DeleteFunc(l.unsettled, func(f frame) bool { return f.ID == id })
}

// noteStored notes that the gateway has the message id. It is sent again all the same until it is answered: with that,
// the next gateway knows who waits for the answer.
func (l *link) noteStored(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range l.unsettled {
		l.unsettled[i].Again = l.unsettled[i].Again || l.unsettled[i].ID == id
	}
}

func (l *link) countUnsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.unsettled)
}

func (l *link) wasShown(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.shown, id)
}

// start runs l. It returns a channel that receives the error of run and is then
// closed, and hangUp, which ends run and waits for it.
func (l *link) start(ctx context.Context) (gone <-chan error, hangUp func()) {
	ctx, cancel := context.WithCancel(ctx)
	end := make(chan error, 1)
	go func() {
		defer close(end)
		end <- l.run(ctx)
	}()
	return end, func() {
		cancel()
		for range end {
		}
	}
}
