// Package admin is what the command line does with a gateway: a client of the
// gateway's admin socket, and the texts that the commands print.
package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"parley/channels/console"
	"parley/store/bolt/dirlock"
)

// ErrNotFound says that what was asked for does not exist.
var ErrNotFound = errors.New("not found")

// A notFoundError is an answer that says what does not exist, in words for people. It is
// ErrNotFound.
type notFoundError string

func (e notFoundError) Error() string        { return string(e) }
func (e notFoundError) Is(target error) bool { return target == ErrNotFound }

// A Refusal is why a gateway does not do what it was asked.
type Refusal string

func (r Refusal) Error() string { return string(r) }

// Socket returns the path of the admin socket: the gateway with that data folder
// serves the owner there, without a password.
func Socket(dataDir string) string { return filepath.Join(dataDir, "admin.sock") }

// A Client asks a gateway. The command that uses it prints to Out. Its methods must
// not be called concurrently.
type Client struct {
	Zone *time.Location // of the times that are printed
	Out  io.Writer

	// Elsewhere is asked when no gateway serves the socket. The client closes it. If it is nil, there is none.
	Elsewhere Remote

	// Open is called when no gateway serves the socket, also if one just ended, and none answers elsewhere. It
	// opens a gateway that serves the socket until close is called, or waits for one
	// that is about to start: then close is nil. If Open is nil, there is no other gateway.
	Open func() (close func() error, err error)

	socket string
	http   http.Client

	mu     sync.Mutex   // held while Open runs, which may go on when a request was interrupted
	own    func() error // closes the gateway that Open opened; nil if there is none
	closed bool
}

// A Remote is the gateway that answers on another machine.
type Remote interface {
	// Dial connects to it. Without an error, the connection is nil if there is none.
	Dial(ctx context.Context) (net.Conn, error)
	Close() error
}

// NewClient returns a Client that dials socket.
func NewClient(socket string) *Client {
	c := &Client{Zone: time.Local, Out: io.Discard, socket: socket}
	c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return c.dial(ctx)
	}}
	return c
}

// Running reports whether the gateway that answered is one that runs, not one that
// was opened for the command.
func (c *Client) Running() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.own == nil
}

// Close ends what the client opened, and waits for what it is opening.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	if c.Elsewhere != nil {
		errs = append(errs, c.Elsewhere.Close())
	}
	if c.own != nil {
		errs = append(errs, c.own())
	}
	return errors.Join(errs...)
}

// dialRunning connects to the gateway that serves socket, or else to the one elsewhere, which may be nil. The error is
// a noneError if there is none.
func dialRunning(ctx context.Context, socket string, elsewhere Remote) (net.Conn, error) {
	conn, err := console.Dial(ctx, socket)
	if err == nil {
		return conn, nil
	}
	if elsewhere != nil {
		if conn, err := elsewhere.Dial(ctx); conn != nil || err != nil {
			return conn, err
		}
	}
	return nil, noneError{err}
}

// A noneError says that no gateway runs.
type noneError struct{ error }

func (e noneError) Unwrap() error { return e.error }

// dial connects to the gateway that runs, or else to one that Open opens. Nothing is
// asked of a gateway before, so none can end between the question and the dial.
func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	conn, err := dialRunning(ctx, c.socket, c.Elsewhere)
	if _, none := errors.AsType[noneError](err); !none {
		return conn, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Open == nil || c.own != nil || c.closed {
		return nil, err
	}
	if c.own, err = c.Open(); err != nil {
		return nil, err
	}
	return console.Dial(ctx, c.socket)
}

// Transport returns a transport that sends all requests to the running gateway. Unlike Ask it never opens the
// gateway's folder itself.
func (c *Client) Transport() *http.Transport {
	return &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialRunning(ctx, c.socket, c.Elsewhere)
	}}
}

// Ask sends a request, with in as JSON unless it is nil, and decodes the answer
// into out unless that is nil.
func (c *Client) Ask(ctx context.Context, method, path string, in, out any) error {
	answer, err := c.Request(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer answer.Close()
	if out == nil {
		return nil
	}
	return json.NewDecoder(answer).Decode(out)
}

// Request is [Client.Ask] for an answer that the caller reads and closes. What only reads is asked once more if the
// gateway ended before it answered: another may have begun, or the client opens one.
func (c *Client) Request(ctx context.Context, method, path string, in any) (io.ReadCloser, error) {
	var body bytes.Buffer
	if in != nil {
		if err := json.NewEncoder(&body).Encode(in); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, &body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if method == http.MethodGet && hasEnded(err) {
		resp, err = c.http.Do(req)
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return nil, failed.Err // the URL is of no use to the operator
	}
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < http.StatusMultipleChoices {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	return nil, readRefusal(resp)
}

// hasEnded reports whether err says that the gateway ended while it was asked.
func hasEnded(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF)
}

// readRefusal returns the error that the gateway answered with.
func readRefusal(resp *http.Response) error {
	var refusal struct{ Error json.RawMessage }
	var long struct{ Message string }
	if json.NewDecoder(resp.Body).Decode(&refusal) != nil {
		return fmt.Errorf("the gateway says %s", resp.Status)
	}
	text := "" // the API about tools has only the text
	if json.Unmarshal(refusal.Error, &text) != nil && json.Unmarshal(refusal.Error, &long) == nil {
		text = long.Message
	}
	switch {
	case text == "":
		return fmt.Errorf("the gateway says %s", resp.Status)
	case resp.StatusCode == http.StatusNotFound:
		return notFoundError(text)
	}
	return Refusal(text)
}

// startTimeout is the time that a command waits for a gateway that is about to start.
const startTimeout = 10 * time.Second

// GatewayStarts reports whether err says that another process has the data folder,
// and that proves to be a gateway that serves socket.
func GatewayStarts(ctx context.Context, err error, socket string) bool {
	var locked *dirlock.LockedError
	// One that stands by serves it, too, but for the moment in which it takes over.
	if !errors.As(err, &locked) || locked.Brief {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !console.Running(ctx, socket) {
		select {
		case <-ctx.Done():
			return false
		case <-time.After(100 * time.Millisecond):
		}
	}
	return true
}
