package console

import (
	"context"
	"encoding/json"
	"net"
	"slices"
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
	writeTime = 10 * time.Second // for the other end to take a batch of frames
	maxQueue  = 1024             // frames that wait for a slow reader; more, and it is dropped
)

// A wire is one end of a connection. Sending never blocks.
type wire struct {
	conn net.Conn
	wake chan struct{} // there is something in queue

	mu    sync.Mutex
	queue []frame
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, wake: make(chan struct{}, 1)}
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

// send queues f. The text of a reply in the making replaces an earlier one.
func (w *wire) send(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := func(q frame) bool { return f.Kind == live && q.Kind == live && q.ID == f.ID }
	if i := slices.IndexFunc(w.queue, same); i >= 0 {
		w.queue[i] = f
		return
	}
	if len(w.queue) == maxQueue {
		w.conn.Close()
		return
	}
	w.queue = append(w.queue, f)
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wire) write(ended <-chan struct{}) {
	for {
		select {
		case <-w.wake:
		case <-ended:
			return
		}
		w.mu.Lock()
		frames := w.queue
		w.queue = nil
		w.mu.Unlock()
		_ = w.conn.SetWriteDeadline(time.Now().Add(writeTime))
		for _, f := range frames {
			line, _ := json.Marshal(f) // of strings: cannot go wrong
			if _, err := w.conn.Write(append(line, '\n')); err != nil {
				w.conn.Close()
				return
			}
		}
	}
}
