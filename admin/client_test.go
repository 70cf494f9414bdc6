package admin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestCloseWaitsForOpen checks that a command that is interrupted while it opens a
// gateway closes that gateway all the same.
func TestCloseWaitsForOpen(t *testing.T) {
	c := NewClient(filepath.Join(t.TempDir(), "admin.sock"))
	opening := make(chan struct{})
	goOn := make(chan struct{})
	closed := false
	c.Open = func() (func() error, error) {
		close(opening)
		<-goOn
		return func() error {
			closed = true
			return nil
		}, nil
	}
	ctx, interrupt := context.WithCancel(t.Context())
	asked := make(chan error)
	go func() { asked <- c.Ask(ctx, "GET", "/api/status", nil, nil) }()
	<-opening
	interrupt()
	if err := <-asked; !errors.Is(err, context.Canceled) {
		t.Errorf("an interrupted question ended with %v", err)
	}
	go close(goOn)
	if err := c.Close(); err != nil || !closed {
		t.Errorf("Close returned %v; the gateway is closed: %v", err, closed)
	}
}

// TestGatewayEndsWhileAsked: what only reads is asked again when the gateway ends before it has answered, and nothing
// that changes something is.
func TestGatewayEndsWhileAsked(t *testing.T) {
	var asked sync.Map // by method: *atomic.Int64
	times := func(method string) *atomic.Int64 {
		n, _ := asked.LoadOrStore(method, new(atomic.Int64))
		return n.(*atomic.Int64)
	}
	c, _ := newServedClient(t, func(w http.ResponseWriter, r *http.Request) {
		if times(r.Method).Add(1) > 1 {
			fmt.Fprint(w, "{}")
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	if err := c.Ask(t.Context(), "GET", "/api/status", nil, nil); err != nil || times("GET").Load() != 2 {
		t.Errorf("a question ended with %v after %d times", err, times("GET").Load())
	}
	if err := c.Ask(t.Context(), "POST", "/api/jobs", nil, nil); err == nil || times("POST").Load() != 1 {
		t.Errorf("a change ended with %v after %d times", err, times("POST").Load())
	}
}

// A remote is the gateway on another machine, if there is one.
type remote struct {
	dial   func(ctx context.Context) (net.Conn, error)
	closed int
}

func (r *remote) Dial(ctx context.Context) (net.Conn, error) { return r.dial(ctx) }
func (r *remote) Close() error {
	r.closed++
	return nil
}

// Where no gateway serves the socket one on another machine is asked, and the client opens none. It opens one if none
// answers there either, and not if that cannot be known.
func TestElsewhere(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "{}") }))
	defer s.Close()
	wrong := errors.New("servers out of reach")
	for want, dial := range map[error]func(ctx context.Context) (net.Conn, error){
		nil: func(ctx context.Context) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
		},
		wrong:                 func(context.Context) (net.Conn, error) { return nil, wrong },
		errors.ErrUnsupported: func(context.Context) (net.Conn, error) { return nil, nil },
	} {
		c := NewClient(filepath.Join(t.TempDir(), "admin.sock"))
		there := &remote{dial: dial}
		c.Elsewhere = there
		c.Open = func() (func() error, error) { return nil, errors.ErrUnsupported }
		if err := c.Ask(t.Context(), "GET", "/api/status", nil, nil); !errors.Is(err, want) {
			t.Errorf("asked elsewhere: %v, want %v", err, want)
		}
		bridge := http.Client{Transport: c.Transport()}
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/mcp", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := bridge.Do(req)
		if (err == nil) != (want == nil) || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("a transport where Ask ends with %v: %v", want, err)
		}
		if err == nil {
			resp.Body.Close()
		}
		bridge.CloseIdleConnections()
		if err := c.Close(); err != nil || there.closed != 1 {
			t.Errorf("Close = %v, and closes it %d times", err, there.closed)
		}
	}
}

// newServedClient returns a Client of a gateway that answers with do, and what it prints.
func newServedClient(t *testing.T, do http.HandlerFunc) (*Client, *bytes.Buffer) {
	socket := filepath.Join(t.TempDir(), "admin.sock")
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(do)
	server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	c := NewClient(socket)
	var out bytes.Buffer
	c.Out = &out
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c, &out
}

// Of a conversation that is not stored any more, each command names it, and says why that may be.
func TestUnknownConversation(t *testing.T) {
	c, _ := newServedClient(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": {"message": "not found; it may have been deleted"}}`, http.StatusNotFound)
	})
	const want = "nothing is stored of a conversation telegram:42: parley sessions list shows all there are; " +
		"it may have been deleted, or removed because it was old"
	for name, do := range map[string]func(context.Context, string) error{
		"show":   func(ctx context.Context, session string) error { return c.PrintSession(ctx, session, false) },
		"json":   func(ctx context.Context, session string) error { return c.PrintSession(ctx, session, true) },
		"export": c.ExportSession, "delete": c.DeleteSession,
		"replay": func(ctx context.Context, session string) error {
			_, err := c.Recording(ctx, session)
			return err
		},
	} {
		if err := do(t.Context(), "telegram:42"); err == nil || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A search that finds nothing says so.
func TestSearchWithoutFinds(t *testing.T) {
	c, out := newServedClient(t, func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("q") != "" && r.FormValue("q") != "zebras tonight" {
			t.Errorf("asked for %q", r.FormValue("q"))
		}
		_, _ = w.Write([]byte(`{"talks": [], "found": []}`))
	})
	if err := c.PrintSessions(t.Context(), []string{"zebras", "tonight"}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.HasPrefix(got, "Nothing like that was found") {
		t.Errorf("printed %q", got)
	}
	out.Reset()
	if err := c.PrintSessions(t.Context(), nil); err != nil || out.Len() > 0 {
		t.Errorf("a list printed %q, %v", out, err)
	}
}

// What does not exist is told once.
func TestNotFoundOnce(t *testing.T) {
	for body, want := range map[string]string{
		`{"error": {"message": "not found; it may have been deleted"}}`: "not found; it may have been deleted",
		`{"error": "no tool named x"}`:                                  "no tool named x",
	} {
		err := readRefusal(&http.Response{StatusCode: http.StatusNotFound, Body: io.NopCloser(strings.NewReader(body))})
		if !errors.Is(err, ErrNotFound) || err.Error() != want {
			t.Errorf("%s is read as %v", body, err)
		}
	}
}

func TestLetters(t *testing.T) {
	for want, n := range map[string][2]int{
		"0 replies, 0 messages": {0, 0}, "1 reply, 2 messages": {1, 2}, "2 replies, 1 message": {2, 1},
	} {
		if got := letters(n[0], n[1]); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
