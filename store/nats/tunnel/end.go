package tunnel

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"parley/store"
)

const (
	window   = 32       // frames of data that the other end has not read
	maxChunk = 32 << 10 // bytes of data in one of them

	aliveInterval = 5 * time.Second // between two signs of life
	silenceLimit  = 3 * aliveInterval
)

// What a frame is for is in its first byte. Its number follows in eight bytes, from 1 in each direction, and then what
// it carries.
const (
	frameAccept = 'a' // carries the subject of the end that accepts
	frameData   = 'd' // carries bytes
	frameRead   = 'r' // one frame of data has been read
	frameAlive  = 'l' // a sign of life
	frameEnd    = 'e' // no data follows
	frameBreak  = 'b' // data that was written is not sent
)

const headSize = 1 + 8

// An end is one end of a connection.
type end struct {
	tunnel    *Tunnel
	subject   string        // where it receives
	app, far  net.Conn      // a pipe: whoever uses the connection has app
	connected chan struct{} // closed when peer is known
	peer      string        // where the other end receives

	places chan struct{}             // holds a token for each frame of data that the other end has not read
	chunks chan []byte               // data that was received; closed after the last
	heard  atomic.Pointer[time.Time] // when a frame was received last
	ended  context.Context
	fail   context.CancelCauseFunc // ends ended

	mu       sync.Mutex // held to send
	sent     uint64     // number of the last frame
	received uint64     // likewise; of receive alone

	over chan struct{} // closed when the other end sends no more data, and no signs of life
}

func (e *end) hear() {
	now := time.Now()
	e.heard.Store(&now)
}

func (e *end) silence() time.Duration { return time.Since(*e.heard.Load()) }

// errDone says that an end has sent and received everything.
var errDone = errors.New("connection closed")

// connect says where the other end receives. It is called once.
func (e *end) connect(peer string) {
	e.peer = peer
	close(e.connected)
}

func (e *end) isConnected() bool { return isClosed(e.connected) }

func (e *end) isOver() bool { return isClosed(e.over) }

func isClosed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// run works until the connection ends.
func (e *end) run() {
	var parts sync.WaitGroup
	parts.Go(e.sendAll)
	parts.Go(e.deliverAll)
	parts.Go(e.keepAlive)
	<-e.ended.Done()
	e.far.Close()
	parts.Wait()
	if e.isConnected() && errors.Is(context.Cause(e.ended), ErrBroken) {
		e.send(frameBreak, nil)
	}
}

// send publishes one frame. If that fails the connection is broken.
func (e *end) send(kind byte, body []byte) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sent++
	frame := binary.BigEndian.AppendUint64([]byte{kind}, e.sent)
	if err := e.tunnel.bus.Publish(e.peer, append(frame, body...)); err != nil {
		e.fail(fmt.Errorf("%w: %w", ErrBroken, err))
	}
}

// sendAll sends what is written, and that it ends.
func (e *end) sendAll() {
	select {
	case <-e.connected:
	case <-e.ended.Done():
		return
	}
	chunk := make([]byte, maxChunk)
	for {
		n, err := e.far.Read(chunk)
		switch {
		case e.ended.Err() != nil:
			return
		case errors.Is(err, os.ErrDeadlineExceeded): // the Tunnel is being closed, and the connection in use
			e.fail(ErrBroken)
			return
		case err != nil:
			e.send(frameEnd, nil)
			e.fail(errDone)
			return
		case e.isOver(), !e.waitForPlace(): // nobody is there to read it
			e.fail(ErrBroken)
			return
		}
		e.send(frameData, chunk[:n])
	}
}

// waitForPlace waits until the other end has room for a frame. It returns false if the connection ends first.
func (e *end) waitForPlace() bool {
	select {
	case e.places <- struct{}{}:
		return true
	default:
	}
	select {
	case e.places <- struct{}{}:
		return true
	case <-e.over:
	case <-e.tunnel.closing.Done(): // the other end may not read for long
	case <-e.ended.Done():
	}
	return false
}

// deliverAll hands over what is received, until the other end sends nothing more.
func (e *end) deliverAll() {
	for {
		select {
		case chunk, more := <-e.chunks:
			if !more {
				e.fail(errDone)
				return
			}
			if _, err := e.far.Write(chunk); err != nil { // nobody reads any more
				return
			}
			e.send(frameRead, nil)
		case <-e.ended.Done():
			return
		}
	}
}

// keepAlive tells the other end that this one is there, and finds out if that one is.
func (e *end) keepAlive() {
	tick := time.NewTicker(aliveInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-e.tunnel.closing.Done():
			_ = e.far.SetReadDeadline(time.Now()) // what was written before is sent; that of a pipe cannot fail
			if !e.isConnected() {
				e.fail(net.ErrClosed)
			}
			return
		case <-e.ended.Done():
			return
		}
		if e.isOver() { // whoever reads what has come may take its time
			continue
		}
		if e.silence() > silenceLimit {
			e.fail(ErrBroken)
			return
		}
		if e.isConnected() {
			e.send(frameAlive, nil)
		}
	}
}

// receive takes a frame from the bus. It never waits.
func (e *end) receive(frame []byte) {
	if len(frame) < headSize || e.ended.Err() != nil {
		return
	}
	e.hear()
	e.received++
	number, body := binary.BigEndian.Uint64(frame[1:headSize]), frame[headSize:]
	late := e.isOver() && (frame[0] == frameData || frame[0] == frameEnd) // what was read may still be said
	if number != e.received || late {
		e.fail(ErrBroken)
		return
	}
	switch frame[0] {
	case frameAccept:
		if !e.isConnected() {
			e.connect(string(body))
		}
	case frameData:
		select {
		case e.chunks <- body:
		default: // more than there are places for
			e.fail(ErrBroken)
		}
	case frameRead:
		select {
		case <-e.places:
		default:
		}
	case frameEnd:
		close(e.over)
		close(e.chunks)
	case frameBreak:
		e.fail(ErrBroken)
	}
}

// conn returns the connection that this is an end of.
func (e *end) conn(c store.Caller) net.Conn { return &conn{Conn: e.app, end: e, caller: c} }

// A conn is what whoever uses an end has.
type conn struct {
	net.Conn
	end    *end
	caller store.Caller
}

// Read implements [net.Conn]. After all that the other end has sent it returns io.EOF, and ErrBroken if there was more.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if cause := context.Cause(c.end.ended); errors.Is(err, io.EOF) && errors.Is(cause, ErrBroken) {
		err = cause
	}
	return n, err
}

// RemoteAddr implements [net.Conn].
func (c *conn) RemoteAddr() net.Addr { return store.Address{Name: c.caller.From} }

// LocalAddr implements [net.Conn].
func (c *conn) LocalAddr() net.Addr {
	return store.Address{Name: c.caller.At, Public: c.caller.Public}
}
