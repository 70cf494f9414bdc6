package sandbox

import (
	"bytes"
	"io"
	"sync"
)

// outputBufferSize is the most that is read from a program at once.
const outputBufferSize = 32 << 10

// maxComplaint is how much of what a program wrote first is kept, to say why it did not start.
const maxComplaint = 500

// An output passes on what a program writes, up to a limit. What is beyond is read, too, and
// discarded: the program need not wait, and the memory it takes here does not grow.
type output struct {
	mu        sync.Mutex
	left      int64  // bytes until the limit
	dropped   int64  // bytes beyond it
	complaint []byte // what was written first to standard error
}

// copyAll passes on to w what r has, until its end.
func (o *output) copyAll(w io.Writer, r io.Reader, complains bool) {
	buffer := make([]byte, outputBufferSize)
	for {
		n, err := r.Read(buffer)
		if !o.pass(w, buffer[:n], complains) {
			w = nil
		}
		if err != nil {
			return
		}
	}
}

// pass writes to w what of data is within the limit, and reports whether w took it.
func (o *output) pass(w io.Writer, data []byte, complains bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if complains {
		o.complaint = append(o.complaint, data[:min(len(data), maxComplaint-len(o.complaint))]...)
	}
	within := min(int64(len(data)), o.left)
	o.left -= within
	o.dropped += int64(len(data)) - within
	if w == nil || within == 0 {
		return w != nil
	}
	_, err := w.Write(data[:within])
	return err == nil
}

// firstComplaint returns in one line what was written first to standard error.
func (o *output) firstComplaint() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(bytes.Join(bytes.Fields(o.complaint), []byte(" ")))
}

// SameWriter reports whether a and b are one.
func SameWriter(a, b io.Writer) bool {
	defer func() { _ = recover() }() // they are of a type that cannot be compared
	return a == b
}
