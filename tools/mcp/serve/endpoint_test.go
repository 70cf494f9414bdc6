package serve

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/timetest"
)

const (
	hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	ready    = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	listing  = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	callText = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"%s","arguments":%s%s}}`

	// meta is of requests of the versions without sessions.
	meta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"x","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
)

var (
	anna = caller{who: chat.Sender{ID: "anna"}, prefix: "one"}
	bob  = caller{who: chat.Sender{ID: "bob"}, prefix: "one"}
)

// testTools are what the servers of a test's endpoint have.
type testTools struct {
	size    int           // bytes of what large returns
	release chan struct{} // lets slow return

	mu     sync.Mutex
	events []string // what has become of slow
}

func (s *testTools) note(event string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, event)
}

func (s *testTools) noted() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.events, " ")
}

// endpoint returns an endpoint with the tools large and slow.
func (s *testTools) endpoint() *endpoint {
	s.release = make(chan struct{})
	return newEndpoint(func(c caller) *mcp.Server {
		server := newServer("test", mcp.ServerOptions{GetSessionID: c.newSessionID})
		text := func(text string) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		}
		type call = *mcp.CallToolRequest
		type result = *mcp.CallToolResult
		mcp.AddTool(server, &mcp.Tool{Name: "large"}, func(context.Context, call, any) (result, any, error) {
			return text(strings.Repeat("x", s.size))
		})
		mcp.AddTool(server, &mcp.Tool{Name: "slow"}, func(ctx context.Context, _ call, _ any) (result, any, error) {
			s.note("began")
			select {
			case <-s.release:
				s.note("done")
				return text("slow and sure")
			case <-ctx.Done():
				s.note("cancelled")
				return text("cancelled")
			}
		})
		return server
	})
}

// newRequest returns a request in a version of the protocol.
func newRequest(method, body, version, session string) *http.Request {
	r := httptest.NewRequestWithContext(context.Background(), method, "http://parley.test/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range map[string]string{"MCP-Protocol-Version": version, "Mcp-Session-Id": session} {
		if value != "" {
			r.Header.Set(name, value)
		}
	}
	return r
}

// answer returns what e answers c.
func (c caller) answer(e *endpoint, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	e.serve(w, r, c)
	return w
}

// open opens a session.
func (c caller) open(t *testing.T, e *endpoint) (session string) {
	t.Helper()
	w := c.answer(e, newRequest(http.MethodPost, hello, "", ""))
	session = w.Header().Get("Mcp-Session-Id")
	if w.Code != http.StatusOK || session == "" {
		t.Fatalf("no session: %d %s", w.Code, w.Body)
	}
	if w := c.answer(e, newRequest(http.MethodPost, ready, "", session)); w.Code != http.StatusAccepted {
		t.Fatalf("not initialized: %d %s", w.Code, w.Body)
	}
	return session
}

// TestSessionsOfAKey: a key has 200 sessions at most. One that is ended, or that nobody uses for half an hour,
// makes room, and other keys are not concerned.
func TestSessionsOfAKey(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		e := new(testTools).endpoint()
		defer e.close()
		var session string
		for range maxSessions {
			session = anna.open(t, e)
		}
		w := anna.answer(e, newRequest(http.MethodPost, hello, "", ""))
		if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" {
			t.Errorf("one more session: %d %s", w.Code, w.Body)
		}
		if w := anna.answer(e, newRequest(http.MethodPost, listing, "", session)); w.Code != http.StatusOK {
			t.Errorf("a session that there is: %d %s", w.Code, w.Body)
		}
		bob.open(t, e)
		caller{anna.who, "two"}.open(t, e)
		if w := anna.answer(e, newRequest(http.MethodDelete, "", "", session)); w.Code != http.StatusNoContent {
			t.Errorf("ending a session: %d %s", w.Code, w.Body)
		}
		anna.open(t, e)
		timetest.Sleep(sessionTimeout + time.Second)
		if e.isCrowded(anna) {
			t.Error("sessions that nobody uses are kept")
		}
		anna.open(t, e)
	})
}

// TestForeignSession: R-S14: a session is served under the key that opened it only.
func TestForeignSession(t *testing.T) {
	e := new(testTools).endpoint()
	defer e.close()
	session := anna.open(t, e)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		for _, other := range []caller{bob, {anna.who, "two"}} {
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second) // for a stream that is served
			w := other.answer(e, newRequest(method, listing, "2025-11-25", session).WithContext(ctx))
			stop()
			if w.Code != http.StatusNotFound {
				t.Errorf("%s by %v: %d %s", method, other, w.Code, w.Body)
			}
		}
	}
	if w := anna.answer(e, newRequest(http.MethodPost, listing, "2025-11-25", session)); w.Code != http.StatusOK {
		t.Errorf("one's own session: %d %s", w.Code, w.Body)
	}
}

// TestRequestSize: a request of 1 MiB is read, and a larger one refused, without reading it to its end.
func TestRequestSize(t *testing.T) {
	e := new(testTools).endpoint()
	defer e.close()
	for size, status := range map[int]int{
		maxBodyBytes:     http.StatusOK,
		maxBodyBytes + 1: http.StatusRequestEntityTooLarge,
	} {
		for _, version := range []string{"2025-11-25", statelessVersion} {
			body := hello
			if version == statelessVersion {
				body = strings.Replace(listing, `list"`, `list","params":{`+meta[1:]+`}`, 1)
			}
			body += strings.Repeat(" ", size-len(body))
			r := newRequest(http.MethodPost, body, version, "")
			r.Header.Set("Mcp-Method", "tools/list")
			if w := anna.answer(e, r); w.Code != status {
				t.Errorf("%d bytes in %s: %d %.200s", size, version, w.Code, w.Body)
			}
		}
	}
	r := newRequest(http.MethodPost, "", "2025-11-25", "")
	all := strings.NewReader(strings.Repeat(" ", 64*maxBodyBytes))
	r.Body = io.NopCloser(all)
	if w := anna.answer(e, r); w.Code != http.StatusRequestEntityTooLarge || all.Len() < 60*maxBodyBytes {
		t.Errorf("%d, and %d bytes are left unread", w.Code, all.Len())
	}
}

// A testHTTP serves an endpoint to anna, over connections in memory that have no buffers.
type testHTTP struct {
	t        *testing.T
	listener *timetest.Listener
}

// serveHTTP serves e until the test ends.
func serveHTTP(t *testing.T, e *endpoint) testHTTP {
	l := timetest.NewListener()
	serve := func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, anna) }
	server := &http.Server{Handler: http.HandlerFunc(serve)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	t.Cleanup(func() {
		_ = e.close()
		_ = server.Close()
		serving.Wait()
	})
	return testHTTP{t, l}
}

// send sends a request over a connection of its own, whose response the caller reads or not.
func (s testHTTP) send(r *http.Request) net.Conn {
	s.t.Helper()
	conn, err := s.listener.Dial(s.t.Context(), "", "")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if err := r.Write(conn); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// read returns the status and header of the response to r, and its body.
func (s testHTTP) read(r *http.Request) (status int, header http.Header, body string) {
	s.t.Helper()
	r.Close = true // the connection serves nothing else
	conn := s.send(r)
	resp, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// open opens a session.
func (s testHTTP) open() (session string) {
	s.t.Helper()
	_, header, _ := s.read(newRequest(http.MethodPost, hello, "", ""))
	session = header.Get("Mcp-Session-Id")
	s.read(newRequest(http.MethodPost, ready, "", session))
	return session
}

// callOf returns a request that calls a tool. Without a session it is of the versions that have none.
func callOf(tool, session string) *http.Request { return callWith(tool, "{}", session) }

// callWith is callOf with arguments.
func callWith(tool, args, session string) *http.Request {
	if session != "" {
		return newRequest(http.MethodPost, fmt.Sprintf(callText, tool, args, ""), "2025-11-25", session)
	}
	r := newRequest(http.MethodPost, fmt.Sprintf(callText, tool, args, meta), statelessVersion, "")
	r.Header.Set("Mcp-Method", "tools/call")
	r.Header.Set("Mcp-Name", tool)
	return r
}

// TestSlowRequest: a request whose body does not come is given up after a minute.
func TestSlowRequest(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := serveHTTP(t, new(testTools).endpoint())
		conn, err := s.listener.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began := time.Now()
		const part = "POST /mcp HTTP/1.1\r\nHost: parley.test\r\nContent-Length: 100\r\n\r\n{"
		if _, err := io.WriteString(conn, part); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if took := time.Since(began); resp.StatusCode != http.StatusBadRequest || took != bodyTimeout {
			t.Errorf("%s after %v", resp.Status, took)
		}
	})
}

// TestSlowReader: a client that does not read what it is sent is given up after half a minute. Others are served
// meanwhile, and the result is there when it comes back, if its version of the protocol has that.
func TestSlowReader(t *testing.T) {
	for _, version := range []string{"2025-11-25", statelessVersion} {
		t.Run(version, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				tools := &testTools{size: 1 << 20}
				s := serveHTTP(t, tools.endpoint())
				session := ""
				if version != statelessVersion {
					session = s.open()
				}
				conn := s.send(callOf("large", session))
				lines := bufio.NewReader(conn)
				id := ""
				for id == "" && session != "" {
					line, err := lines.ReadString('\n')
					if err != nil {
						t.Fatal(err)
					}
					id, _ = strings.CutPrefix(strings.TrimSpace(line), "id: ")
					if id == strings.TrimSpace(line) {
						id = ""
					}
				}
				timetest.Sleep(writeTimeout - time.Second)
				if status, _, body := s.read(callOf("large", session)); status != http.StatusOK {
					t.Errorf("beside it: %d %.300s", status, body)
				}
				timetest.Sleep(2 * time.Second)
				rest, err := io.ReadAll(lines)
				if len(rest) > tools.size/2 {
					t.Errorf("it still gets %d bytes (%v)", len(rest), err)
				}
				if session == "" {
					return
				}
				again := newRequest(http.MethodGet, "", version, session)
				again.Header.Set("Last-Event-ID", id)
				status, _, body := s.read(again)
				if status != http.StatusOK || !strings.Contains(body, strings.Repeat("x", tools.size)) {
					t.Errorf("it comes back, and gets %d %.300s", status, body)
				}
			})
		})
	}
}

// TestLongCall: a call may take an hour.
func TestLongCall(t *testing.T) {
	for _, version := range []string{"2025-11-25", statelessVersion} {
		t.Run(version, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				tools := &testTools{}
				s := serveHTTP(t, tools.endpoint())
				session := ""
				if version != statelessVersion {
					session = s.open()
				}
				go func() {
					timetest.Sleep(time.Hour)
					close(tools.release)
				}()
				if status, _, body := s.read(callOf("slow", session)); !strings.Contains(body, "slow and sure") {
					t.Errorf("%d %s, and the call %s", status, body, tools.noted())
				}
			})
		})
	}
}

// TestStandingStream: the stream on which a client hears of what nobody asked for is not given up.
func TestStandingStream(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := serveHTTP(t, new(testTools).endpoint())
		r := newRequest(http.MethodGet, "", "2025-11-25", s.open())
		r.Close = true // with the stream, the connection would end
		conn := s.send(r)
		if err := conn.SetReadDeadline(time.Now().Add(2 * bodyTimeout)); err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(conn)
		if !errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(got), "200 OK") {
			t.Errorf("%v after %s", err, got)
		}
	})
}

// TestLostConnection: a lost connection cancels the call where the protocol has it so. In the versions before, the
// call goes on, and the client that comes back gets its result.
func TestLostConnection(t *testing.T) {
	for version, want := range map[string]string{"2025-11-25": "began done", statelessVersion: "began cancelled"} {
		t.Run(version, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				tools := &testTools{}
				s := serveHTTP(t, tools.endpoint())
				session := ""
				if version != statelessVersion {
					session = s.open()
				}
				conn := s.send(callOf("slow", session))
				synctest.Wait()
				_ = conn.Close()
				synctest.Wait()
				close(tools.release)
				synctest.Wait()
				if got := tools.noted(); got != want {
					t.Errorf("%q, want %q", got, want)
				}
			})
		})
	}
}
