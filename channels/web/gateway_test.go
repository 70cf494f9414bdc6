package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/workspace"
)

const patience = time.Minute // on a machine that is busy

var quiet = slog.New(slog.DiscardHandler)

// A gateway is a Channel behind a real HTTP server. Who comes is in the header Who.
type testGateway struct {
	*testing.T
	*Channel
	url  string
	work *workspace.Workspace
}

func open(t *testing.T, s store.Store, change ...func(*Config)) *testGateway {
	t.Helper()
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	var uploads atomic.Int64
	cfg := Config{Name: "web", Store: s, Open: w.OpenNamed, Log: quiet, Save: func(_ context.Context, _ chat.Address, _ chat.Sender, name string, r io.Reader) (chat.File, error) {
		path := fmt.Sprintf("inbox/%d-upload", uploads.Add(1))
		body, err := io.ReadAll(r)
		if err == nil {
			err = w.Names().WriteFile(path, body)
		}
		return chat.File{Path: path, Name: name, Size: int64(len(body))}, err
	}}
	for _, f := range change {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := chat.Sender{ID: r.Header.Get("Who"), Name: r.Header.Get("Who"), Role: chat.User}
		c.Serve(w, r, who)
	}))
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return &testGateway{t, c, srv.URL, w}
}

const probe = "is anybody there?"

// hear runs the channel and keeps what it delivers. refuse, if any, says what to refuse.
func (h *testGateway) hear(refuse func(chat.Message) error) (heard func() []chat.Message, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var mu sync.Mutex
	var all []chat.Message
	ended := make(chan error, 1)
	go func() {
		ended <- h.Channel.Run(ctx, func(_ context.Context, m chat.Message) error {
			if m.ID == probe {
				return nil
			}
			if refuse != nil {
				if err := refuse(m); err != nil {
					return err
				}
			}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, m)
			return nil
		})
	}()
	until(h.T, "the channel runs", func() bool {
		return !errors.Is(h.intake.Deliver(chat.Message{ID: probe}), network.ErrShut)
	})
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			h.Errorf("Run = %v", err)
		}
	})
	h.Cleanup(stop)
	return func() []chat.Message {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}, stop
}

// An answer is the head of a response.
type answer struct {
	StatusCode int
	Header     http.Header
}

// do sends a request as who and returns the answer with its body.
func (h *testGateway) do(who, method, path string, body any, headers ...string) (answer, string) {
	h.Helper()
	var b io.Reader
	kind := "application/json"
	switch body := body.(type) {
	case nil:
	case io.Reader:
		b, kind = body, "application/octet-stream"
	default:
		enc, err := json.Marshal(body)
		if err != nil {
			h.Fatal(err)
		}
		b = bytes.NewReader(enc)
	}
	req, err := http.NewRequestWithContext(h.Context(), method, h.url+path, b)
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Who", who)
	if b != nil {
		req.Header.Set("Content-Type", kind)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true, DisableCompression: true}).RoundTrip(req)
	if err != nil {
		h.Fatal(err)
	}
	defer res.Body.Close()
	got, err := io.ReadAll(res.Body)
	if err != nil {
		h.Fatal(err)
	}
	return answer{res.StatusCode, res.Header}, string(got)
}

// must is do, whose status must be that.
func (h *testGateway) must(status int, who, method, path string, body any, headers ...string) string {
	h.Helper()
	res, got := h.do(who, method, path, body, headers...)
	if res.StatusCode != status {
		h.Fatalf("%s %s = %d %s, want %d", method, path, res.StatusCode, got, status)
	}
	return got
}

type words = map[string]any

// say says text in the conversation id of who.
func (h *testGateway) say(who, id, message, text string) {
	h.Helper()
	h.must(http.StatusAccepted, who, "POST", "/c/"+id+"/messages", words{"id": message, "text": text})
}

func (h *testGateway) reply(who, id, reply, text string) channels.Receipt {
	h.Helper()
	rc, err := h.Send(h.Context(), chat.Reply{ID: reply, To: h.address(who, id), Text: text})
	if err != nil {
		h.Fatal(err)
	}
	return rc
}

// A got is an event as it came.
type got struct{ name, id, data string }

// A tab is a browser that reads along.
type tab struct {
	mu     sync.Mutex
	events []got
	over   chan struct{}
	leave  context.CancelFunc
}

// watch reads the events of a conversation from a number on.
func (h *testGateway) watch(who, id, after string) *tab {
	h.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	req, err := http.NewRequestWithContext(ctx, "GET", h.url+"/c/"+id+"/events", nil)
	if err != nil {
		h.Fatal(err)
	}
	req.Header.Set("Who", who)
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := (&http.Transport{}).RoundTrip(req)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		h.Fatalf("events: %s", res.Status)
	}
	b := &tab{over: make(chan struct{}), leave: cancel}
	go func() {
		defer close(b.over)
		b.read(res.Body)
	}()
	h.Cleanup(func() {
		cancel()
		<-b.over
	})
	return b
}

func (b *tab) read(r io.Reader) {
	var e got
	s := bufio.NewScanner(r)
	s.Buffer(nil, 4<<20)
	for s.Scan() {
		field, value, _ := strings.Cut(s.Text(), ": ")
		switch field {
		case "event":
			e.name = value
		case "id":
			e.id = value
		case "data":
			e.data = value
		case "":
			if e.name != "" {
				b.mu.Lock()
				b.events = append(b.events, e)
				b.mu.Unlock()
			}
			e = got{}
		}
	}
}

// all returns the events of that name so far.
func (b *tab) all(name string) (es []got) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		if e.name == name {
			es = append(es, e)
		}
	}
	return es
}

// entries returns what the messages say, edits in their places.
func (b *tab) entries() []renderedEntry {
	var es []renderedEntry
	for _, e := range b.all("message") {
		var n renderedEntry
		if err := json.Unmarshal([]byte(e.data), &n); err != nil {
			panic(err)
		}
		if i := slices.IndexFunc(es, func(o renderedEntry) bool { return o.Seq == n.Edits }); n.Edits > 0 && i >= 0 {
			es[i] = n
			es[i].Seq = n.Edits
		} else if n.Edits == 0 {
			es = append(es, n)
		}
	}
	return es
}

func (b *tab) texts() []string {
	var ts []string
	for _, e := range b.entries() {
		ts = append(ts, e.Text)
	}
	return ts
}

// until waits until what is the case.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); {
		if time.Now().After(end) {
			t.Fatalf("never came true: %s", what)
		}
		<-time.After(2 * time.Millisecond)
	}
}

// shows waits until the tab shows exactly texts.
func (b *tab) shows(t *testing.T, texts ...string) {
	t.Helper()
	for end := time.Now().Add(patience); !slices.Equal(b.texts(), texts); {
		if time.Now().After(end) {
			t.Fatalf("shown: %q, want %q", b.texts(), texts)
		}
		<-time.After(2 * time.Millisecond)
	}
}

func newTestGateway(t *testing.T, change ...func(*Config)) *testGateway {
	return open(t, mem.New(), change...)
}

// write puts a file into the workspace.
func (h *testGateway) write(path, body string) {
	h.Helper()
	dir := filepath.Join(h.work.Dir(), filepath.Dir(path))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		h.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.work.Dir(), path), []byte(body), 0o600); err != nil {
		h.Fatal(err)
	}
}
