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

// A link is a client's way to the gateway. It mends lost connections, and says
// again on the next one what was not settled on the last (P3). Who leaves when
// all is settled has lost nothing, and is not shown a reply again.
type link struct {
	dial     dialer
	as       string        // asTerminal, or asPipe: then it is the answer that settles a message
	patience time.Duration // until run gives up on a gateway that went away; 0: never
	frames   chan frame    // what the gateway says, and lost

	mu    sync.Mutex
	wire  *wire    // nil without a connection
	open  []frame  // messages and acknowledgements that are not settled
	shown []string // IDs of the latest replies that were shown
}

// startTime is how long a link waits for its first connection: the gateway may
// be in the middle of a restart.
const startTime = 10 * time.Second

// pauses are those between connections.
var pauses = channels.Backoff{Least: 100 * time.Millisecond, Most: 5 * time.Second}

// run keeps the link up until ctx ends. It returns an error when there is no
// connection within startTime, and later none within patience.
func (l *link) run(ctx context.Context) error {
	down, patience := time.Now(), startTime
	for wait := pauses; ctx.Err() == nil; channels.Sleep(ctx, wait.Next(nil)) {
		conn, err := l.dial(ctx)
		switch {
		case err == nil:
			if l.talk(ctx, conn) {
				wait = pauses
			}
			down, patience = time.Now(), l.patience
			l.pass(ctx, frame{Kind: lost})
		case ctx.Err() != nil:
		case patience > 0 && time.Since(down) > patience:
			return err
		}
	}
	return nil
}

// talk uses conn until it breaks, and says whether it was of any use.
func (l *link) talk(ctx context.Context, conn net.Conn) (useful bool) {
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
		case f.Kind == taken:
			l.settle(f.ID)
		case (f.Kind == reply || f.Kind == live || f.Kind == step) && l.wasShown(f.ID):
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
	return useful
}

func (l *link) pass(ctx context.Context, f frame) {
	select {
	case l.frames <- f:
	case <-ctx.Done():
	}
}

// say sends text now, or when there is a connection, and returns its ID.
func (l *link) say(text string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := frame{Kind: say, ID: rand.Text(), Text: text}
	l.post(f)
	return f.ID
}

// got acknowledges the reply id, which was shown.
func (l *link) got(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.shown = remember(l.shown, id)
	l.post(frame{Kind: got, ID: id})
}

// post sends f on every connection until it is settled.
func (l *link) post(f frame) {
	l.open = append(l.open, f)
	if l.wire != nil {
		l.wire.send(f)
	}
}

// settle ends the care for the message or the acknowledgement id.
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

func (l *link) wasShown(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.shown, id)
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
		cancel()
		for range end {
		}
	}
}
