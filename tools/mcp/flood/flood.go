// Package flood limits how fast an MCP server may send messages.
package flood

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// What a server may send on one connection (R-S22). A message counts as so many bytes more than it has,
// because it costs time to handle a small one, too: a server may send 8,192 small ones at once, and 512
// in each second after them.
const (
	messageCost  = 8 << 10
	receiveBurst = 64 << 20 // bytes that it may send at once
	receiveRate  = 4 << 20  // bytes in each second after them

	// floodTime is how long reading may be delayed, all in all, before the connection is ended.
	floodTime = 10 * time.Second
)

var (
	errFlood = errors.New("it sends messages without end")
	errBatch = errors.New("it sends several messages as one, which its version of the protocol does not have")
)

// An Intake limits what a server sends: what comes too fast is read more slowly, so that the server has
// to wait, and the connection of a server that does not stop is ended.
type Intake struct {
	ctx context.Context // of the connection
	end func(error)     // ends the connection

	mu      sync.Mutex
	allowed int64         // bytes; below zero, somebody waits
	at      time.Time     // when allowed was right
	delayed time.Duration // all in all, since there was no need to
}

// New returns an Intake for a connection that ctx belongs to, and that end ends.
func New(ctx context.Context, end func(error)) *Intake {
	return &Intake{ctx: ctx, end: end, allowed: receiveBurst, at: time.Now()}
}

// take waits until so many bytes and messages may be received.
func (i *Intake) take(bytes, messages int) error {
	delay, ok := i.delay(int64(bytes) + int64(messages)*messageCost)
	if !ok {
		i.end(errFlood)
		return errFlood
	}
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-i.ctx.Done():
		return context.Cause(i.ctx)
	}
}

// delay returns how long to wait until cost may be received. ok is false if there was too much of that.
func (i *Intake) delay(cost int64) (delay time.Duration, ok bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := time.Now()
	i.allowed = min(i.allowed+int64(now.Sub(i.at).Seconds()*receiveRate), receiveBurst)
	i.at = now
	if i.allowed == receiveBurst {
		i.delayed = 0
	}
	i.allowed -= cost
	if i.allowed >= 0 {
		return 0, true
	}
	delay = time.Duration(float64(-i.allowed) / receiveRate * float64(time.Second))
	i.delayed += delay
	return delay, i.delayed <= floodTime
}

// A Counter returns how many messages end in what was read.
type Counter func([]byte) (messages int, err error)

// Reader returns a reader of what a server sends, which reads from r as fast as i allows.
func (i *Intake) Reader(r io.ReadCloser, count Counter) io.ReadCloser {
	return &intakeReader{ReadCloser: r, intake: i, count: count}
}

type intakeReader struct {
	io.ReadCloser
	intake *Intake
	count  Counter
}

// Read implements [io.Reader].
func (r *intakeReader) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	messages, wrong := r.count(p[:n])
	if wrong != nil {
		r.intake.end(wrong)
		return 0, wrong
	}
	if limited := r.intake.take(n, messages); limited != nil {
		return 0, limited
	}
	return n, err
}

// Lines returns a Counter of messages of one line each. Arrays of messages are refused: the SDK
// would read millions of them at once, in any version of the protocol.
func Lines() Counter {
	began := false // the line has something in it
	return func(p []byte) (messages int, err error) {
		for _, b := range p {
			switch {
			case b == '\n' && began:
				messages++
				began = false
			case began, b == '\n', b == '\r', b == ' ', b == '\t':
			case b == '[':
				return 0, errBatch
			default:
				began = true
			}
		}
		return messages, nil
	}
}

// Events returns a Counter of events: lines that end with an empty one.
func Events() Counter {
	began, empty := false, true // the event, and its last line
	return func(p []byte) (messages int, err error) {
		for _, b := range p {
			switch {
			case b == '\n' && empty && began:
				messages++
				began = false
			case b == '\n':
				empty = true
			case b != '\r':
				began, empty = true, false
			}
		}
		return messages, nil
	}
}
