package shell

import (
	"os"
	"sync"
)

const (
	maxHead    = 2 << 20 // bytes of a stream that are kept of its beginning …
	maxTail    = 2 << 20 // … and of its end
	maxPending = 1 << 20 // bytes that wait for a file
)

// A recorder takes in what a command writes. It is safe for concurrent use.
type recorder struct {
	mu      sync.Mutex
	stdout  clipped
	stderr  clipped
	pending []byte   // both, as they came, until there is a file
	file    *os.File // nil while the command is waited for
}

// streams returns the writers of a command's two streams.
func (r *recorder) streams() (stdout, stderr stream) {
	return stream{r, &r.stdout}, stream{r, &r.stderr}
}

// A stream is one of the two that a recorder takes in.
type stream struct {
	to   *recorder
	kept *clipped
}

// Write implements io.Writer. It does not fail: a command is not to end because its output cannot be
// kept.
func (s stream) Write(p []byte) (int, error) {
	s.to.mu.Lock()
	defer s.to.mu.Unlock()
	if s.to.file != nil {
		_, _ = s.to.file.Write(p)
		return len(p), nil
	}
	s.kept.add(p)
	s.to.pending = append(s.to.pending, p...)
	if over := len(s.to.pending) - maxPending; over > 0 {
		s.to.pending = append([]byte{}, s.to.pending[over:]...)
	}
	return len(p), nil
}

// moveTo writes what came so far to f, and then what comes.
func (r *recorder) moveTo(f *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := f.Write(r.pending)
	r.pending = nil
	r.file = f
	return err
}

// close closes the file, if there is one.
func (r *recorder) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		_ = r.file.Close()
	}
}

// texts returns what was written so far, and how many bytes of it wait for a file.
func (r *recorder) texts() (stdout, stderr string, pending int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stdout.text(), r.stderr.text(), int64(len(r.pending))
}

// A clipped holds the beginning and the end of what is added.
type clipped struct {
	head    []byte
	tail    []byte // up to twice maxTail, so that it is rarely moved
	dropped int64  // bytes between the two
}

func (c *clipped) add(p []byte) {
	if n := min(len(p), maxHead-len(c.head)); n > 0 {
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	c.tail = append(c.tail, p...)
	if len(c.tail) > 2*maxTail {
		c.trim()
	}
}

// trim drops what is before the last maxTail bytes.
func (c *clipped) trim() {
	if over := len(c.tail) - maxTail; over > 0 {
		c.dropped += int64(over)
		c.tail = append([]byte{}, c.tail[over:]...)
	}
}

// text returns what is held, with a line where something is missing.
func (c *clipped) text() string {
	if len(c.tail) > maxTail {
		c.trim()
	}
	if c.dropped == 0 {
		return string(c.head) + string(c.tail)
	}
	return string(c.head) + "\n" + missing(c.dropped, "bytes") + "\n" + string(c.tail)
}
