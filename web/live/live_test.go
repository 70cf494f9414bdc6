package live_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	g "maragu.dev/gomponents"

	"parley/web/live"
)

// A reader is sent what has changed, once; nothing is computed before there is one and
// after it has left; and Close ends a stream.
func TestFollow(t *testing.T) {
	s := live.New()
	var computed, value atomic.Int64
	value.Store('a')
	parts := func(context.Context) ([]live.Part, error) {
		computed.Add(1)
		return []live.Part{{ID: "same", Node: g.Text("<same>")}, {ID: "other", Node: g.Text(string(rune(value.Load())))}}, nil
	}
	over := make(chan error, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		over <- s.Serve(w, r, live.Follow(time.Millisecond, parts))
	}))
	defer server.Close()
	read := func() (*bufio.Scanner, context.CancelFunc) {
		ctx, leave := context.WithCancel(t.Context())
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		if kind := answer.Header.Get("Content-Type"); kind != "text/event-stream" {
			t.Errorf("the answer is %s", kind)
		}
		return bufio.NewScanner(answer.Body), leave
	}
	next := func(lines *bufio.Scanner) string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	if computed.Load() > 0 {
		t.Error("it computes without a reader")
	}
	lines, leave := read()
	for _, want := range []string{`{"html":"\u0026lt;same\u0026gt;","id":"same"}`, `{"html":"a","id":"other"}`} {
		if got := next(lines); got != want {
			t.Errorf("first comes %s, want %s", got, want)
		}
	}
	value.Store('b')
	if got := next(lines); got != `{"html":"b","id":"other"}` {
		t.Errorf("then comes %s", got)
	}
	leave()
	if err := <-over; err != nil {
		t.Error(err)
	}
	lines, leave = read()
	defer leave()
	next(lines)
	s.Close()
	for next(lines) != "" {
		continue
	}
	if err := <-over; err != nil {
		t.Error(err)
	}
	if err := s.Serve(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil), nil); err == nil {
		t.Error("a stream begins after the end")
	}
}
