package serve

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
)

const (
	maxBodyBytes   = 1 << 20
	maxSessions    = 200 // of one key
	sessionTimeout = 30 * time.Minute
	bodyTimeout    = time.Minute      // for reading a request
	writeTimeout   = 30 * time.Second // for one write

	// statelessVersion is the first version of the protocol that has no sessions.
	statelessVersion = "2026-07-28"
)

// A caller is whoever sends requests.
type caller struct {
	who    chat.Sender
	prefix string // of the sessions of its key
}

// tag begins the IDs of c's sessions, so that nobody else can use them.
func (c caller) tag() string { return digest(c.who.ID, c.prefix)[:tagLength-1] + "-" }

const tagLength = 17

// newSessionID returns an ID for a session of c.
func (c caller) newSessionID() string { return c.tag() + rand.Text() }

type callerKey struct{} // of the caller in the context of a request

// An endpoint serves the protocol over HTTP, and gives each caller a server of their own. Whoever mounts it
// checks hosts, origins and keys.
type endpoint struct {
	build     func(caller) *mcp.Server
	stateful  http.Handler // up to the version before statelessVersion
	stateless http.Handler

	mu      sync.Mutex
	servers map[caller]*served
}

// A served is the server of a caller.
type served struct {
	server *mcp.Server
	used   time.Time // when it was needed last
}

// isOver reports whether s is of no more use, such as that of a key that was revoked. A session of a server
// that is needed begins within bodyTimeout.
func (s *served) isOver() bool {
	for range s.server.Sessions() {
		return false
	}
	return time.Since(s.used) > sessionTimeout
}

// newEndpoint returns an endpoint whose servers build makes. Their sessions have the IDs of [caller.newSessionID].
func newEndpoint(build func(caller) *mcp.Server) *endpoint {
	e := &endpoint{build: build, servers: map[caller]*served{}}
	find := func(r *http.Request) *mcp.Server { return e.server(r.Context().Value(callerKey{}).(caller)) }
	options := mcp.StreamableHTTPOptions{
		SessionTimeout:             sessionTimeout,
		MaxRequestBodyBytes:        maxBodyBytes,
		DisableLocalhostProtection: true, // hosts and origins are checked for the whole HTTP server

		// A client whose connection broke reads what it missed.
		EventStore: &events{callers: map[string]*callerEvents{}},
	}
	e.stateful = mcp.NewStreamableHTTPHandler(find, &options)
	options.Stateless = true
	options.EventStore = nil
	// The protocol has it that a client that closes the connection cancels the request.
	options.PropagateRequestCancellation = true
	e.stateless = mcp.NewStreamableHTTPHandler(find, &options)
	return e
}

// server returns the server of c.
func (e *endpoint) server(c caller) *mcp.Server {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.servers[c]
	if s == nil {
		maps.DeleteFunc(e.servers, func(_ caller, s *served) bool { return s.isOver() })
		s = &served{server: e.build(c)}
		e.servers[c] = s
	}
	s.used = time.Now()
	return s.server
}

// close ends all sessions.
func (e *endpoint) close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, s := range e.servers {
		for session := range s.server.Sessions() {
			errs = append(errs, session.Close())
		}
	}
	return errors.Join(errs...)
}

// serve answers a request of c.
func (e *endpoint) serve(w http.ResponseWriter, r *http.Request, c caller) {
	if !readBody(w, r) {
		return
	}
	session := r.Header.Get("Mcp-Session-Id")
	if session != "" && !strings.HasPrefix(session, c.tag()) {
		http.Error(w, "session not found", http.StatusNotFound)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), callerKey{}, c))
	handler := e.stateful
	if r.Header.Get("MCP-Protocol-Version") >= statelessVersion {
		handler = e.stateless
	} else if session == "" && r.Method == http.MethodPost && e.isCrowded(c) {
		w.Header().Set("Retry-After", "60")
		http.Error(w, "too many sessions are open: end some of them", http.StatusTooManyRequests)
		return
	}
	handler.ServeHTTP(&limitedWriter{w}, r)
}

// isCrowded reports whether c may open no further session.
func (e *endpoint) isCrowded(c caller) bool {
	n := 0
	for range e.server(c).Sessions() {
		n++
	}
	return n >= maxSessions
}

// readBody reads the body of r within bodyTimeout. If that fails, it answers r and returns false.
func readBody(w http.ResponseWriter, r *http.Request) bool {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer can
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBodyBytes))
	if err == nil {
		_ = control.SetReadDeadline(time.Time{}) // it would end a request without a body, which is a stream
		r.Body = io.NopCloser(bytes.NewReader(body))
		return true
	}
	w.Header().Set("Connection", "close") // nobody waits for the rest
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		http.Error(w, "the request is larger than 1 MiB", http.StatusRequestEntityTooLarge)
	} else {
		http.Error(w, "the request could not be read", http.StatusBadRequest)
	}
	return false
}

// A limitedWriter limits how long a client may take to read what it is sent.
type limitedWriter struct{ w http.ResponseWriter }

// Header implements [http.ResponseWriter].
func (p *limitedWriter) Header() http.Header { return p.w.Header() }

// WriteHeader implements [http.ResponseWriter].
func (p *limitedWriter) WriteHeader(status int) { p.w.WriteHeader(status) }

// Write implements [http.ResponseWriter].
func (p *limitedWriter) Write(b []byte) (int, error) {
	control := http.NewResponseController(p.w)
	_ = control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }()
	n, err := p.w.Write(b)
	if err != nil {
		return n, err
	}
	return n, control.Flush()
}

// Flush implements [http.Flusher].
func (p *limitedWriter) Flush() { _ = http.NewResponseController(p.w).Flush() }

// Unwrap is for [http.ResponseController].
func (p *limitedWriter) Unwrap() http.ResponseWriter { return p.w }
