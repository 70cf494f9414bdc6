package console

import (
	"bytes"
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
	taken  = "taken"  // gateway: message ID cannot be lost any more
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
	wake chan struct{} // something in queue or ended changed

	mu    sync.Mutex
	queue []frame
	ended bool
}

func newWire(conn net.Conn) *wire {
	return &wire{conn: conn, wake: make(chan struct{}, 1)}
}

// run calls handle for each frame that comes in, until the connection or ctx ends.
func (w *wire) run(ctx context.Context, handle func(frame)) {
	defer context.AfterFunc(ctx, func() { w.conn.Close() })()
	var writer sync.WaitGroup
	writer.Go(w.write)
	for in := json.NewDecoder(w.conn); ; {
		var f frame
		if in.Decode(&f) != nil {
			break
		}
		handle(f)
	}
	w.conn.Close()
	w.finish()
	writer.Wait()
}

// send queues f. The text of a reply in the making replaces an earlier one.
func (w *wire) send(f frame) {
	w.mu.Lock()
	defer w.mu.Unlock()
	same := func(q frame) bool { return q.Kind == live && q.ID == f.ID }
	switch i := slices.IndexFunc(w.queue, same); {
	case w.ended:
	case f.Kind == live && i >= 0:
		w.queue[i] = f
	case len(w.queue) == maxQueue:
		w.conn.Close()
	default:
		w.queue = append(w.queue, f)
		w.signal()
	}
}

// finish ends the connection once all that was sent is written.
func (w *wire) finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	w.signal()
}

func (w *wire) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wire) write() {
	defer w.conn.Close()
	for range w.wake {
		w.mu.Lock()
		frames, ended := w.queue, w.ended
		w.queue = nil
		w.mu.Unlock()
		var lines bytes.Buffer
		for enc := json.NewEncoder(&lines); len(frames) > 0; frames = frames[1:] {
			_ = enc.Encode(frames[0]) // strings into memory: cannot go wrong
		}
		if lines.Len() > 0 {
			_ = w.conn.SetWriteDeadline(time.Now().Add(writeTime))
			if _, err := w.conn.Write(lines.Bytes()); err != nil {
				return
			}
		}
		if ended {
			return
		}
	}
}
