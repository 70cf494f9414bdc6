package console

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"time"
)

// A frame is what one end tells the other: one line of JSON.
type frame struct {
	Kind  string   `json:"kind"`
	ID    string   `json:"id,omitempty"`
	To    []string `json:"to,omitempty"` // of a reply: the messages it answers
	Text  string   `json:"text,omitempty"`
	Files []string `json:"files,omitempty"`
}

// The kinds of frames.
const (
	hello  = "hello"  // client, once, first: ID is asTerminal or asPipe
	say    = "say"    // client: a message
	taken  = "taken"  // gateway: it has a terminal's message ID, which cannot be lost any more, or the acknowledgement of reply ID
	reply  = "reply"  // gateway: a reply, to be acknowledged
	got    = "got"    // client: reply ID was shown
	live   = "live"   // gateway: the text so far of reply ID
	typing = "typing" // gateway: the agent is busy
	lost   = "lost"   // never sent: a client's link is down
)

// The kinds of clients.
const (
	asTerminal = "terminal"
	asPipe     = "pipe"
)

const (
	writeTime = 10 * time.Second // for the other end to take a frame
	maxQueue  = 1024             // frames that wait for a slow reader; more, and it is dropped
)

// A wire is one end of a connection.
type wire struct {
	conn  net.Conn
	out   chan frame
	stage chan frame // the newest reply in the making, if it was not written yet
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, out: make(chan frame, maxQueue), stage: make(chan frame, 1)}
}

// run calls handle for each frame that comes in, until the connection or ctx ends.
func (w *wire) run(ctx context.Context, handle func(frame)) {
	defer context.AfterFunc(ctx, func() { w.conn.Close() })()
	var writer sync.WaitGroup
	ended := make(chan struct{})
	writer.Go(func() { w.write(ended) })
	for in := json.NewDecoder(w.conn); ; {
		var f frame
		if in.Decode(&f) != nil {
			break
		}
		handle(f)
	}
	w.conn.Close()
	close(ended)
	writer.Wait()
}

// send queues f and never blocks. A reply, in the making or not, takes the place
// of what was to be shown of it.
func (w *wire) send(f frame) {
	out := w.out
	if f.Kind == live || f.Kind == reply {
		select {
		case <-w.stage:
		default:
		}
	}
	if f.Kind == live {
		out = w.stage
	}
	select {
	case out <- f:
	default:
		w.conn.Close()
	}
}

func (w *wire) write(ended <-chan struct{}) {
	defer w.conn.Close()
	for enc := json.NewEncoder(w.conn); ; {
		var f frame
		select {
		case f = <-w.out:
		case f = <-w.stage:
		case <-ended:
			return
		}
		_ = w.conn.SetWriteDeadline(time.Now().Add(writeTime))
		if enc.Encode(f) != nil {
			return
		}
	}
}
