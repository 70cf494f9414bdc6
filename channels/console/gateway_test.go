package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"parley/channels"
	"parley/chat"
)

func TestMain(m *testing.M) {
	if socket := os.Getenv("PARLEY_CONSOLE_CHILD"); socket != "" {
		child(socket)
		return
	}
	goleak.VerifyTestMain(m)
}

// child is the process at the terminal: parley chat, or with "gateway:" in
// front of the socket, a gateway with a terminal of its own, which echoes.
func child(socket string) {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	t := Terminal{In: os.Stdin, Out: os.Stdout, History: os.Getenv("PARLEY_CONSOLE_HISTORY"), Serves: os.Getenv("PARLEY_CONSOLE_SERVES"), Text: os.Getenv("PARLEY_CONSOLE_TEXT")}
	path, gateway := strings.CutPrefix(socket, "gateway:")
	var err error
	if !gateway {
		err = Chat(ctx, path, t)
	} else {
		c := New(Config{Name: "console", Socket: path, Local: &t, Leave: func(e error) { err = e; stop() }, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
		e := c.Run(ctx, func(_ context.Context, m chat.Message) error {
			r := m.Reply()
			r.Text = "echo: " + m.Text
			go func() { _, _ = c.Send(context.Background(), r) }()
			return nil
		})
		err = errors.Join(err, e, c.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// The powers of a Channel.
var (
	_ channels.Channel         = (*Channel)(nil)
	_ channels.Streamer        = (*Channel)(nil)
	_ channels.Stepper         = (*Channel)(nil)
	_ channels.Typer           = (*Channel)(nil)
	_ channels.Settler         = (*Channel)(nil)
	_ channels.Attacher        = (*Channel)(nil)
	_ channels.Announcer       = (*Channel)(nil)
	_ channels.HintShower      = (*Channel)(nil)
	_ channels.CommandMenu     = (*Channel)(nil)
	_ channels.DirectMessenger = (*Channel)(nil)
	_ io.Closer                = (*Channel)(nil)
)

const soon = time.Minute // longer than anything here takes on a busy machine

// A testGateway is a gateway as the channel sees it.
type testGateway struct {
	*Channel
	t      *testing.T
	socket string
	heard  chan chat.Message
	rest   func() // ends Run
	stop   func() // and closes
}

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// open opens a gateway whose channel serves a socket.
func open(t *testing.T, c Config) *testGateway {
	t.Helper()
	if c.Socket == "" {
		c.Socket = filepath.Join(t.TempDir(), "console.sock")
	}
	c.Name, c.Log = "console", quiet
	h := &testGateway{Channel: New(c), t: t, socket: c.Socket, heard: make(chan chat.Message, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- h.Run(ctx, func(_ context.Context, m chat.Message) error {
			h.heard <- m
			return nil
		})
	}()
	h.rest = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("Run: %v", err)
			}
		case <-time.After(soon):
			t.Error("Run did not end")
		}
	})
	h.stop = sync.OnceFunc(func() {
		h.rest()
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	t.Cleanup(h.stop)
	until(t, func() bool { return Running(ctx, c.Socket) })
	return h
}

// hear returns the next message that was delivered, which must say text.
func (h *testGateway) expectMessage(text string) chat.Message {
	h.t.Helper()
	select {
	case m := <-h.heard:
		if m.Text != text {
			h.t.Errorf("heard %q, want %q", m.Text, text)
		}
		return m
	case <-time.After(soon):
		h.t.Fatalf("did not hear %q", text)
		panic("not reached")
	}
}

// say sends a reply until somebody has seen it, as the outbox does.
func (h *testGateway) sendUntilShown(r chat.Reply) {
	h.t.Helper()
	if r.To.Chat == "" {
		r.To = chat.Address{Channel: "console", Chat: Local}
	}
	until(h.t, func() bool {
		_, err := h.Send(h.t.Context(), r)
		return err == nil
	})
}

func (h *testGateway) answer(m chat.Message, text string) {
	h.t.Helper()
	r := m.Reply()
	r.Text = text
	h.sendUntilShown(r)
}

// until polls for what happens in another process or behind a real socket.
func until(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(soon); !ok(); {
		if time.Now().After(end) {
			t.Fatal("did not come true")
		}
		select {
		case <-t.Context().Done():
			t.Fatal("the test ended before it came true")
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// A sink is a Writer to look into.
type sink struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *sink) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *sink) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func wait(t *testing.T, ended <-chan error) error {
	t.Helper()
	select {
	case err := <-ended:
		return err
	case <-time.After(soon):
		t.Fatal("did not end")
		return nil
	}
}

// retryable says when a reply is to be tried again.
func retryable(err error) time.Duration {
	var e *channels.Error
	if errors.As(err, &e) && !e.Permanent {
		return e.After
	}
	return 0
}
