package endpoints

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/response"
	"parley/store"
	"parley/web"
)

// patience is how long a connection waits for a gateway that answers: another one takes over in less, also if the first
// is told to end and has turns to finish, which takes less than 20 seconds (P16).
const patience = 25 * time.Second

// A Forwarder passes connections on to the gateway that answers.
type Forwarder struct {
	Config
	Log *slog.Logger

	patience time.Duration // for tests; 0 stands for patience
}

// Run listens at the endpoints, and passes connections on with dial until ctx ends, when they end, too. It tells
// [CheckHealth] if the servers cannot be reached. It returns the connections that wait for a gateway still.
func (f Forwarder) Run(ctx context.Context, dial store.Dial, servers store.Remote) Waiting {
	all, page, err := f.listen(ctx)
	health, errHealth := f.listenHealth()
	if err := errors.Join(err, errHealth); err != nil { // it is reached at the others, and at none while it stands by
		f.Log.Warn("not all connections can be passed on to the gateway that answers", "err", err)
	}
	if page != "" {
		f.Log.Info("connections are passed on to the gateway that answers", "page", page)
	}
	p := relay{ctx: ctx, dial: dial, patience: cmp.Or(f.patience, patience), refused: newHandoff(), waiting: Waiting{}}
	p.at = store.Caller{At: page, Public: f.Public}
	var parts sync.WaitGroup
	refuser := &http.Server{Handler: http.HandlerFunc(refuse), ReadHeaderTimeout: patience}
	parts.Go(func() { _ = refuser.Serve(p.refused) }) // ErrServerClosed
	parts.Go(func() { announce(ctx, newInstance(web.StandsBy, f.Version, page), dial) })
	for _, l := range all {
		parts.Go(func() { p.serve(l) })
	}
	if health != nil {
		parts.Go(func() { serveHealth(health, servers) })
	}
	<-ctx.Done()
	if health != nil {
		_ = health.Close()
	}
	for _, l := range all {
		_ = l.Close() // nothing more comes in
	}
	_ = refuser.Close()
	parts.Wait()
	return p.waiting
}

// Waiting are connections, of which nothing was read yet, by the names under which they are passed on.
type Waiting map[string][]net.Conn

// listener returns a listener for those under name, which nobody else takes.
func (w Waiting) listener(name string) net.Listener {
	h := newHandoff()
	h.conns = make(chan net.Conn, len(w[name]))
	for _, conn := range w[name] {
		h.conns <- conn
	}
	delete(w, name)
	return h
}

// Close closes those that nobody took.
func (w Waiting) Close() {
	for _, all := range w {
		for _, conn := range all {
			conn.Close()
		}
	}
}

// A relay passes connections on until ctx ends.
type relay struct {
	ctx      context.Context
	dial     store.Dial
	at       store.Caller // this gateway
	patience time.Duration
	refused  *handoff // connections that could not be passed on

	mu      sync.Mutex
	waiting Waiting // when ctx ended
}

// serve passes on what l accepts until it is closed.
func (p *relay) serve(l endpoint) {
	acceptAll(l, func(conn net.Conn) { p.pass(conn, l.name) })
}

// acceptAll calls handle with each connection that l accepts, until l is closed and each call has returned.
func acceptAll(l net.Listener, handle func(net.Conn)) {
	var open sync.WaitGroup
	defer open.Wait()
	for {
		conn, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return
		case err != nil: // such as too many open files
			time.Sleep(100 * time.Millisecond)
		default:
			open.Go(func() { handle(conn) })
		}
	}
}

// pass passes one connection on until it ends.
func (p *relay) pass(conn net.Conn, name string) {
	caller := p.at
	caller.From = conn.RemoteAddr().String()
	there, err := p.connect(name, caller)
	if err != nil {
		p.leave(conn, name)
		return
	}
	defer context.AfterFunc(p.ctx, func() {
		abort(conn)
		there.Close()
	})()
	var ways sync.WaitGroup
	ways.Go(func() { copyAll(conn, there) })
	ways.Go(func() { copyAll(there, conn) })
	ways.Wait()
}

// leave leaves conn, which could not be passed on, to whoever answers it. A terminal connects again by itself.
func (p *relay) leave(conn net.Conn, name string) {
	switch {
	case name == Terminal:
		conn.Close()
	case p.ctx.Err() != nil:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.waiting[name] = append(p.waiting[name], conn)
	case !p.refused.give(conn):
		conn.Close()
	}
}

// abort closes conn so that the other end does not take what it has for all there is.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// readTimeout is how long whoever is connected may read nothing of what there is.
const readTimeout = 2 * time.Minute

// A limitedWriter gives up a connection whose other end does not read.
type limitedWriter struct{ net.Conn }

// Write implements [io.Writer].
func (w limitedWriter) Write(p []byte) (int, error) {
	if err := w.SetWriteDeadline(time.Now().Add(readTimeout)); err != nil {
		return 0, err
	}
	return w.Conn.Write(p)
}

// connect dials until a gateway answers, or none has for a while.
func (p *relay) connect(name string, c store.Caller) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.patience)
	defer cancel()
	for {
		conn, err := p.dial(ctx, name, c)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond): // dial itself waits, unless the store cannot be reached
		}
	}
}

// copyAll copies from to to until one of them ends, and closes both. A connection that broke off is not taken for one
// that has ended.
func copyAll(to, from net.Conn) {
	end := net.Conn.Close
	if _, err := io.Copy(limitedWriter{to}, from); err != nil {
		end = func(c net.Conn) error {
			abort(c)
			return nil
		}
	}
	_, _ = end(to), end(from)
}

// refuse tells whoever asks that no gateway answers.
func refuse(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Connection", "close") // the next one may be passed on
	response.Problem{
		Status: http.StatusServiceUnavailable, Text: "no gateway answers at present: try again in a few seconds",
		RetryAfter: 5 * time.Second,
	}.Write(w, r)
}

// A handoff is a listener whose connections others have accepted.
type handoff struct {
	conns chan net.Conn
	done  chan struct{}
	end   func()
}

func newHandoff() *handoff {
	h := &handoff{conns: make(chan net.Conn), done: make(chan struct{})}
	h.end = sync.OnceFunc(func() { close(h.done) })
	return h
}

// give reports false if nobody takes conn.
func (h *handoff) give(conn net.Conn) bool {
	select {
	case h.conns <- conn:
		return true
	case <-h.done:
		return false
	}
}

// Accept implements [net.Listener].
func (h *handoff) Accept() (net.Conn, error) {
	select {
	case conn := <-h.conns:
		return conn, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. It closes what nobody has accepted.
func (h *handoff) Close() error {
	h.end()
	for {
		select {
		case conn := <-h.conns:
			conn.Close()
		default:
			return nil
		}
	}
}

// Addr implements [net.Listener].
func (h *handoff) Addr() net.Addr { return store.Address{} }
