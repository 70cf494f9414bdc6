// Package proxy lets a program in a sandbox without a network reach some hosts by HTTP and HTTPS.
//
// The sandbox has a network namespace of its own with nothing in it. Before the program is started there, Relay
// opens a listening socket on the loopback interface of that namespace and hands it out to a Proxy, which is in
// Parley's process and in its network. The program finds the proxy's address in its environment. What cannot
// speak to a proxy reaches nothing.
//
// A name is resolved once for each connection, the addresses found are judged (R-S19), and an address that was
// judged is the one that is connected to: a name server that answers differently the next time gains nothing.
package proxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/tools/network"
)

const (
	maxConnections = 64       // of one program, at once
	maxHeader      = 32 << 10 // bytes of a request's or a response's header
	maxNoted       = 100      // hosts that are noted as refused or reached
	headerTimeout  = 10 * time.Second
	dialTimeout    = 10 * time.Second // for all addresses of a name
	minDialTimeout = 2 * time.Second  // for one of them
	answerTimeout  = 2 * time.Minute  // until a server begins to answer
	idleTimeout    = 5 * time.Minute  // of a tunnel in which nothing moves
	keepTimeout    = time.Minute      // of a connection without a request
)

// A Config is what all proxies have in common.
type Config struct {
	Guard    *network.Guard // which addresses may be connected to; nil allows the public web
	Resolver *net.Resolver  // may be nil
	Log      *slog.Logger   // may be nil

	// Dial connects to an address that was judged; nil is a [net.Dialer]. Tests have it lead to servers of their own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// A Proxy serves one program. It must be closed. It is safe for concurrent use.
type Proxy struct {
	policy   policy
	guard    *network.Guard
	resolver *net.Resolver
	dialer   func(ctx context.Context, network, address string) (net.Conn, error)
	log      *slog.Logger

	child    *os.File      // until Started: the end of the pair of sockets that the program inherits
	handover *net.UnixConn // our end, on which Relay hands over its listening socket
	server   *http.Server
	forward  *httputil.ReverseProxy
	slots    chan struct{}  // has an element for each connection
	open     sync.WaitGroup // connections

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{} // closed when no connection is accepted any more

	mu      sync.Mutex
	refused []string
	reached []string
}

// Start returns a Proxy that lets a program reach hosts, which are as in sandbox.Network. What it refuses, it
// refuses in the name of key, the config key that lists them.
func Start(hosts []string, key string, c Config) (*Proxy, error) {
	rules, err := newPolicy(hosts, key)
	if err != nil {
		return nil, err
	}
	p := &Proxy{
		policy:   rules,
		guard:    c.Guard,
		resolver: cmp.Or(c.Resolver, net.DefaultResolver),
		dialer:   c.Dial,
		log:      cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		slots:    make(chan struct{}, maxConnections),
		done:     make(chan struct{}),
	}
	if p.guard == nil {
		p.guard = network.NewGuard(nil, c.Resolver)
	}
	if p.dialer == nil {
		p.dialer = (&net.Dialer{}).DialContext
	}
	if err := p.openHandover(); err != nil {
		return nil, fmt.Errorf("open the way to a program's proxy: %w", err)
	}
	p.ctx, p.stop = context.WithCancel(context.Background())
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			return p.dial(ctx, address)
		},
		DisableCompression:     true,
		MaxResponseHeaderBytes: maxHeader,
		ResponseHeaderTimeout:  answerTimeout,
		IdleConnTimeout:        keepTimeout,
	}
	p.forward = &httputil.ReverseProxy{
		Transport:     transport,
		Rewrite:       rewrite,
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status, text := p.explain(err)
			http.Error(w, text, status)
		},
		ErrorLog: slog.NewLogLogger(p.log.Handler(), slog.LevelDebug),
	}
	p.server = &http.Server{
		Handler:           p,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepTimeout,
		MaxHeaderBytes:    maxHeader,
		BaseContext:       func(net.Listener) context.Context { return p.ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateClosed {
				p.closed()
			}
		},
		ErrorLog: p.forward.ErrorLog,
	}
	go func() {
		defer close(p.done)
		p.receive()
		transport.CloseIdleConnections()
	}()
	return p, nil
}

// rewrite completes a request to a server. Whoever wants to speak another protocol on the same connection has
// CONNECT for that.
func rewrite(r *httputil.ProxyRequest) {
	r.Out.Host = r.In.Host
	for _, name := range []string{"Connection", "Upgrade", "Http2-Settings"} {
		r.Out.Header.Del(name)
	}
}

// File returns what the program must inherit, for Relay. It is closed by Started.
func (p *Proxy) File() *os.File { return p.child }

// Started must be called when the process that inherits File was started, or could not be.
func (p *Proxy) Started() { p.child.Close() }

// Refused returns the hosts that the program was refused, with their ports, each once.
func (p *Proxy) Refused() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.refused)
}

// Reached returns the hosts that the program reached, with their ports, each once.
func (p *Proxy) Reached() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.reached)
}

// Close ends all connections, and returns when none is left.
func (p *Proxy) Close() {
	p.stop()
	p.child.Close()
	p.handover.Close()
	p.server.Close()
	<-p.done
	p.open.Wait()
}

// closed must be called when a connection that was accepted is closed.
func (p *Proxy) closed() {
	<-p.slots
	p.open.Done()
}

// receive waits until the program's socket is handed over, and serves it until Close.
func (p *Proxy) receive() {
	l, err := receiveListener(p.handover)
	p.handover.Close()
	if err != nil {
		p.log.Debug("a program in a sandbox opened no way to its proxy", "err", err)
		return
	}
	p.serve(l)
}

// serve accepts connections from l until Close.
func (p *Proxy) serve(l net.Listener) {
	err := p.server.Serve(&limitedListener{l, p})
	p.log.Debug("the proxy of a program in a sandbox ended", "err", err)
}

// A limitedListener accepts a connection when there is a slot for it.
type limitedListener struct {
	inner net.Listener
	proxy *Proxy
}

func (l *limitedListener) Addr() net.Addr { return l.inner.Addr() }
func (l *limitedListener) Close() error   { return l.inner.Close() }

func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.proxy.slots <- struct{}{}:
	case <-l.proxy.ctx.Done():
		return nil, net.ErrClosed
	}
	l.proxy.open.Add(1)
	conn, err := l.inner.Accept()
	if err != nil {
		l.proxy.closed()
	}
	return conn, err
}

// ServeHTTP does one request of the program.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "":
		http.Error(w, "this is a proxy for HTTP and HTTPS, and no server", http.StatusBadRequest)
	default:
		p.forward.ServeHTTP(w, r)
	}
}

// dial connects to the host and port of address if the program may reach it.
func (p *Proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	t, err := parseTarget(address)
	if err != nil {
		return nil, errTarget
	}
	conn, err := p.connect(ctx, t)
	if no, ok := errors.AsType[refusal](err); ok && p.note(&p.refused, t) {
		p.log.Info("a program in a sandbox was refused a host", "host", t.String(), "reason", string(no))
	}
	if err != nil {
		return nil, err
	}
	if p.note(&p.reached, t) {
		p.log.Info("a program in a sandbox reached a host", "host", t.String(), "address", conn.RemoteAddr().String())
	}
	return conn, nil
}

// note adds t to list, and reports whether it was not there.
func (p *Proxy) note(list *[]string, t target) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(*list) == maxNoted || slices.Contains(*list, t.String()) {
		return false
	}
	*list = append(*list, t.String())
	return true
}

// errTarget is the error for what is no host and port.
var errTarget = errors.New("what the program wants to reach is no host with a port")

// connect returns a connection to t. An error may be a refusal.
func (p *Proxy) connect(ctx context.Context, t target) (net.Conn, error) {
	if err := p.policy.check(t); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	name := t.name
	if strings.Contains(name, ".") {
		name += "." // or else the machine's search domains would be appended to it
	}
	found, err := p.resolver.LookupNetIP(ctx, "ip", name)
	if err != nil {
		return nil, fmt.Errorf("find the host %s: %w", t.name, err)
	}
	var allowed []netip.Addr
	for _, address := range found {
		if address = address.Unmap(); p.guard.Reach(ctx, address) != network.Nowhere {
			allowed = append(allowed, address)
		}
	}
	if len(allowed) == 0 {
		return nil, refusal(fmt.Sprintf("%s has the private or internal address %s, which programs may not reach",
			t.name, found[0].Unmap()))
	}
	patience := max(dialTimeout/time.Duration(len(allowed)), minDialTimeout)
	var failed error
	for _, address := range allowed {
		conn, err := p.dialAddress(ctx, netip.AddrPortFrom(address, t.port), patience)
		if err == nil {
			return conn, nil
		}
		failed = err
	}
	return nil, fmt.Errorf("reach %s: %w", t.name, failed)
}

func (p *Proxy) dialAddress(ctx context.Context, address netip.AddrPort, patience time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return p.dialer(ctx, "tcp", address.String())
}

// explain returns how a request that failed is answered.
func (p *Proxy) explain(err error) (status int, text string) {
	if no, ok := errors.AsType[refusal](err); ok {
		return http.StatusForbidden, "refused by the sandbox: " + string(no)
	}
	if errors.Is(err, errTarget) {
		return http.StatusBadRequest, err.Error()
	}
	p.log.Debug("a host did not answer a program in a sandbox", "err", err)
	return http.StatusBadGateway, "the sandbox's proxy could not " + err.Error()
}

// tunnel does a CONNECT request: it passes on all bytes between the program and the host that it names.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer p.closed() // a hijacked connection has no StateClosed
	defer conn.Close()
	unwatch := context.AfterFunc(p.ctx, func() { conn.Close() })
	defer unwatch()
	upstream, err := p.dial(p.ctx, r.URL.Host)
	if err != nil {
		status, text := p.explain(err)
		writeRefusal(conn, status, text)
		return
	}
	defer upstream.Close()
	unwatchUpstream := context.AfterFunc(p.ctx, func() { upstream.Close() })
	defer unwatchUpstream()
	extend(conn, upstream)
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered()) // what the program sent without waiting
	if _, err := upstream.Write(early); err != nil {
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { pass(upstream, conn) })
	pass(conn, upstream)
	both.Wait()
}

// writeRefusal answers a CONNECT request. Many programs show nothing but the first line of such an answer, so
// that has the reason, too.
func writeRefusal(conn net.Conn, status int, text string) {
	_ = conn.SetWriteDeadline(time.Now().Add(headerTimeout))
	line := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s\n", status, line, len(text)+1, text)
}

// extend lets both connections be idle for idleTimeout from now on.
func extend(a, b net.Conn) {
	deadline := time.Now().Add(idleTimeout)
	_ = a.SetDeadline(deadline)
	_ = b.SetDeadline(deadline)
}

// pass copies from one connection to the other until it ends, and tells the other that it did. An error
// ends both, and so does idleTimeout in which nothing moves.
func pass(to, from net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		extend(from, to)
		if n > 0 {
			if _, failed := to.Write(buffer[:n]); failed != nil {
				err = failed
			}
		}
		if errors.Is(err, io.EOF) {
			if half, ok := to.(interface{ CloseWrite() error }); ok {
				_ = half.CloseWrite()
			}
			return
		}
		if err != nil {
			from.Close()
			to.Close()
			return
		}
	}
}
