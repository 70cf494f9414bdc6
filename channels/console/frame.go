package console

import (
	"context"
	"encoding/json"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// A frame is a message between a client and the gateway, one line of JSON.
type frame struct {
	Kind  string   `json:"kind"`
	ID    string   `json:"id,omitempty"`
	To    []string `json:"to,omitempty"` // of a reply: IDs of the messages it answers
	Text  string   `json:"text,omitempty"`
	Again bool     `json:"again,omitempty"` // of a message: the gateway has said that it is stored
	Files []string `json:"files,omitempty"`

	Failed bool   `json:"failed,omitempty"` // of a reply: it explains why there is no answer
	Hint   string `json:"hint,omitempty"`   // of a reply: how to answer the suggestions in it
	Asks   bool   `json:"asks,omitempty"`   // of a reply: the agent waits for the answer to it
	More   bool   `json:"more,omitempty"`   // of a reply: the same messages are answered by a later one, too
}

// The kinds of frames.
const (
	frameHello    = "hello"    // client, first and once: ID is asTerminal or asPipe
	frameMessage  = "say"      // client: a message
	frameStored   = "stored"   // gateway, to a pipe: message ID is stored, and not answered yet
	frameTaken    = "taken"    // gateway: message ID is stored or was an answer; or reply ID was acknowledged
	frameReply    = "reply"    // gateway: a reply, to be acknowledged
	frameShown    = "got"      // client: acknowledges reply ID, which was shown
	frameDraft    = "live"     // gateway: the text so far of reply ID, which is being written
	frameStep     = "step"     // gateway: a line about a tool call made for reply ID
	frameTyping   = "typing"   // gateway: the agent is busy
	frameNote     = "note"     // gateway: a line to show that is no reply, and is not acknowledged
	frameCommands = "commands" // gateway: the names of the commands, with blanks between them
	frameLost     = "lost"     // never sent: tells the client's user interface that the connection broke
)

// The kinds of clients.
const (
	asTerminal = "terminal"
	asPipe     = "pipe"
)

const (
	writeTimeout = 10 * time.Second // for one frame
	maxQueue     = 1024             // frames; a peer that reads more slowly is disconnected
)

// A frameConn is one end of a connection that carries frames.
type frameConn struct {
	conn      net.Conn
	queue     chan *queueSlot
	draftSlot *queueSlot // where the latest draft is queued; used by senders only
}

// A queueSlot is a place in the queue. A newer frame may replace the queued one
// until it is sent.
type queueSlot struct{ atomic.Pointer[frame] }

func newFrameConn(conn net.Conn) *frameConn {
	return &frameConn{conn: conn, queue: make(chan *queueSlot, maxQueue), draftSlot: &queueSlot{}}
}

// run calls handle for each received frame until the connection or ctx ends.
func (c *frameConn) run(ctx context.Context, handle func(frame)) {
	defer context.AfterFunc(ctx, func() { c.conn.Close() })()
	var writing sync.WaitGroup
	ended := make(chan struct{})
	writing.Go(func() { c.write(ended) })
	for in := json.NewDecoder(c.conn); ; {
		var f frame
		if in.Decode(&f) != nil {
			break
		}
		handle(f)
	}
	c.conn.Close()
	close(ended)
	writing.Wait()
}

// send queues f and never blocks. A draft or a reply replaces a queued draft. After
// a step, drafts get a new slot, so that the step keeps its place among them.
func (c *frameConn) send(f frame) {
	s := &queueSlot{}
	s.Store(&f)
	switch f.Kind {
	case frameDraft:
		if c.draftSlot.Swap(&f) != nil {
			return
		}
		c.draftSlot = s
	case frameReply:
		c.draftSlot.Store(nil)
		c.draftSlot = &queueSlot{}
	case frameStep:
		c.draftSlot = &queueSlot{}
	}
	select {
	case c.queue <- s:
	default:
		c.conn.Close()
	}
}

// close ends the connection, and with it run.
func (c *frameConn) close() { c.conn.Close() }

// write sends the queued frames until ended is closed.
func (c *frameConn) write(ended <-chan struct{}) {
	defer c.conn.Close()
	for enc := json.NewEncoder(c.conn); ; {
		var s *queueSlot
		select {
		case s = <-c.queue:
		case <-ended:
			return
		}
		_ = c.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if f := s.Swap(nil); f != nil && enc.Encode(f) != nil {
			return
		}
	}
}
