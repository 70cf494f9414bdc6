package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// A frame is what one end tells the other: one line of JSON.
type frame struct {
	Kind  string   `json:"kind"`
	ID    string   `json:"id,omitempty"`
	To    []string `json:"to,omitempty"` // of a reply: the messages it answers
	Text  string   `json:"text,omitempty"`
	Files []string `json:"files,omitempty"`

	Failed bool `json:"failed,omitempty"` // of a reply: it says why there is no answer
}

// The kinds of frames.
const (
	hello  = "hello"  // client, once, first: ID is asTerminal or asPipe
	say    = "say"    // client: a message
	taken  = "taken"  // gateway: message ID cannot be lost any more, or reply ID is known to have arrived
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

// Running says whether a gateway serves socket.
func Running(ctx context.Context, socket string) bool {
	conn, err := Dial(ctx, socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// Dial connects to the socket at path, within five seconds.
func Dial(ctx context.Context, path string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the gateway: %w", err)
	}
	return conn, nil
}

// longest is what a socket's path may have, in bytes, with some to spare: the
// limit is 104 or a few more.
const longest = 95

// Listen makes the socket at path, which is removed when the listener is closed.
// One that a dead process left is replaced, also if it belongs to another user;
// one that is served is not. Only the owner may ever open it: it is made in a
// directory of its own and moved to path when its mode is right. The caller
// holds the lock of the data folder.
func Listen(path string) (net.Listener, error) {
	if len(path) > longest {
		return nil, fmt.Errorf("socket: path %s is too long: use a data folder with a shorter name", path)
	}
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() != fs.ModeSocket {
		return nil, fmt.Errorf("socket: %s is in the way: it is no socket", path)
	}
	conn, err := Dial(context.Background(), path)
	switch {
	case err == nil:
		conn.Close()
		return nil, fmt.Errorf("socket: another gateway serves %s", path)
	case errors.Is(err, syscall.EACCES): // a process of another user left it: it would hold the lock if it were alive
	case !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist): // it may be alive
		return nil, fmt.Errorf("socket: %w", err)
	}
	dir, err := os.MkdirTemp(filepath.Dir(path), ".s")
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	defer os.RemoveAll(dir)
	private := filepath.Join(dir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	made, err := os.Lstat(private)
	if err := errors.Join(err, os.Chmod(private, 0o600), os.Rename(private, path)); err != nil {
		l.Close()
		return nil, fmt.Errorf("socket: %w", err)
	}
	return &listener{socket: l, path: path, made: made}, nil
}

// A listener removes its socket when it is closed, unless another is in its place.
type listener struct {
	socket *net.UnixListener
	path   string
	made   fs.FileInfo
}

func (l *listener) Accept() (net.Conn, error) { return l.socket.Accept() }
func (l *listener) Addr() net.Addr            { return l.socket.Addr() }

func (l *listener) Close() error {
	if info, err := os.Lstat(l.path); err == nil && os.SameFile(info, l.made) {
		_ = os.Remove(l.path) // the next who listens replaces it
	}
	return l.socket.Close()
}
