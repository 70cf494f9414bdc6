package console

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
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
	step   = "step"   // gateway: a line on what the agent does on the way to reply ID
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
	out   chan *slot
	stage *slot // of the newest text of a reply in the making; of whoever sends such
}

// A slot is a place in the queue. It may get a newer frame until it is its turn.
type slot struct{ atomic.Pointer[frame] }

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, out: make(chan *slot, maxQueue), stage: &slot{}}
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
// of what was to be shown of it; a step does not, so that it comes after.
func (w *wire) send(f frame) {
	s := &slot{}
	s.Store(&f)
	switch f.Kind {
	case live:
		if w.stage.Swap(&f) != nil {
			return
		}
		w.stage = s
	case reply:
		w.stage.Store(nil)
		w.stage = &slot{}
	case step:
		w.stage = &slot{}
	}
	select {
	case w.out <- s:
	default:
		w.conn.Close()
	}
}

func (w *wire) write(ended <-chan struct{}) {
	defer w.conn.Close()
	for enc := json.NewEncoder(w.conn); ; {
		var s *slot
		select {
		case s = <-w.out:
		case <-ended:
			return
		}
		_ = w.conn.SetWriteDeadline(time.Now().Add(writeTime))
		if f := s.Swap(nil); f != nil && enc.Encode(f) != nil {
			return
		}
	}
}
