package console

import (
	"context"
	"crypto/rand"
	"net"
	"slices"
	"sync"
	"time"
)

// A link is a client's way to the gateway. It mends lost connections, and says
// again on the next one what was not settled on the last (P3).
type link struct {
	dial     dialer
	as       string        // asTerminal: a message is settled when it is taken; asPipe: when it is answered
	patience time.Duration // until run gives up on a gateway that went away; 0: never
	frames   chan frame    // what the gateway says, and lost

	mu    sync.Mutex
	wire  *wire    // nil without a connection
	ended bool     // nothing is said any more
	open  []frame  // said and not settled
	shown []string // IDs of the latest replies that were shown
}

const (
	minBackoff = 100 * time.Millisecond
	maxBackoff = 5 * time.Second
	leaveTime  = 2 * time.Second // for what was said last to be taken
	remembered = 256             // replies shown
)

// run keeps the link up until ctx ends. It returns an error when the first
// connection cannot be made, or no later one within patience.
func (l *link) run(ctx context.Context) error {
	var down time.Time // since when; zero before the first connection
	for wait := minBackoff; ; {
		conn, err := l.dial(ctx)
		switch {
		case ctx.Err() != nil:
			if err == nil {
				conn.Close()
			}
			return nil
		case err == nil:
			useful, ended := l.talk(ctx, conn)
			if ended {
				return nil
			}
			if useful {
				wait = minBackoff
			}
			down = time.Now()
			l.pass(ctx, frame{Kind: lost})
		case down.IsZero(), l.patience > 0 && time.Since(down) > l.patience:
			return err
		}
		pause(ctx, wait)
		wait = min(2*wait, maxBackoff)
	}
}

// talk uses conn until it breaks or finish was called (ended), and says whether it was of any use.
func (l *link) talk(ctx context.Context, conn net.Conn) (useful, ended bool) {
	w := newWire(conn)
	w.send(frame{Kind: hello, ID: l.as})
	l.mu.Lock()
	for _, f := range l.open {
		w.send(f)
	}
	l.wire = w
	l.mu.Unlock()
	w.run(ctx, func(f frame) {
		useful = true
		switch {
		case f.Kind == taken && l.as == asTerminal:
			l.settle(f.ID)
		case (f.Kind == reply || f.Kind == live) && l.wasShown(f.ID):
			if f.Kind == reply {
				w.send(frame{Kind: got, ID: f.ID})
			}
			return
		}
		l.pass(ctx, f)
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wire = nil
	return useful, l.ended
}

func (l *link) pass(ctx context.Context, f frame) {
	select {
	case l.frames <- f:
	case <-ctx.Done():
	}
}

// say sends text now, or when there is a connection, and returns its ID.
func (l *link) say(text string) string {
	f := frame{Kind: say, ID: rand.Text(), Text: text}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = append(l.open, f)
	if l.wire != nil {
		l.wire.send(f)
	}
	return f.ID
}

// settle ends the care for the message id.
func (l *link) settle(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(f frame) bool { return f.ID == id })
}

func (l *link) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.open)
}

// got acknowledges the reply id, which was shown.
func (l *link) got(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown = append(l.shown, id); len(l.shown) > remembered {
		l.shown = l.shown[1:]
	}
	if l.wire != nil {
		l.wire.send(frame{Kind: got, ID: id})
	}
}

func (l *link) wasShown(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.shown, id)
}

// finish lets what was sent last go out and hangs up. It says whether there is anything to wait for.
func (l *link) finish() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = true
	if l.wire != nil {
		l.wire.finish()
	}
	return l.wire != nil
}

// start runs l. The channel it returns gets the error that ended l, and is then
// closed. hangUp ends l and waits for it.
func (l *link) start(ctx context.Context) (gone <-chan error, hangUp func()) {
	ctx, cancel := context.WithCancel(ctx)
	end := make(chan error, 1)
	go func() {
		defer close(end)
		end <- l.run(ctx)
	}()
	return end, func() {
		late := time.AfterFunc(leaveTime, cancel)
		defer late.Stop()
		if !l.finish() {
			cancel()
		}
		for {
			select {
			case <-l.frames: // nobody else reads them now
			case _, _ = <-end:
				cancel()
				return
			}
		}
	}
}
