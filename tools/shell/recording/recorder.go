// Package recording takes in what a command writes: both ends of it at first, and then, once the command goes on
// in the background, all of it in a file.
package recording

import (
	"io"
	"os"
	"sync"

	"parley/tools/sandbox"
)

const (
	maxKept    = 2 << 20 // characters of each stream
	maxPending = 1 << 20 // bytes that wait for a file
)

// A Recorder takes in what a command writes. It is safe for concurrent use.
type Recorder struct {
	mu      sync.Mutex
	stdout  sandbox.Ends
	stderr  sandbox.Ends
	pending []byte   // both, as they came, until there is a file
	file    *os.File // nil while the command is waited for
}

// Streams returns the writers of a command's two streams.
func (r *Recorder) Streams() (stdout, stderr io.Writer) {
	r.stdout.Max = maxKept
	r.stderr.Max = maxKept
	return stream{r, &r.stdout}, stream{r, &r.stderr}
}

// A stream is one of the two that a Recorder takes in.
type stream struct {
	to   *Recorder
	kept *sandbox.Ends
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
	_, _ = s.kept.Write(p)
	s.to.pending = append(s.to.pending, p...)
	if over := len(s.to.pending) - maxPending; over > 0 {
		s.to.pending = append([]byte{}, s.to.pending[over:]...)
	}
	return len(p), nil
}

// MoveTo writes what came so far to f, and then what comes.
func (r *Recorder) MoveTo(f *os.File) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := f.Write(r.pending)
	r.pending = nil
	r.file = f
	return err
}

// Close closes the file, if there is one.
func (r *Recorder) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file != nil {
		_ = r.file.Close()
	}
}

// Texts returns what was written so far, and how many bytes of it wait for a file.
func (r *Recorder) Texts() (stdout, stderr string, pending int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stdout.String(), r.stderr.String(), int64(len(r.pending))
}
