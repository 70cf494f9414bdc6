package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp/flood"
	"parley/tools/network"
)

func newService(name string, server *Server, addresses *network.Guard, in *flood.Intake) Service {
	return Service{Name: name, Entry: *server, Client: newHTTPClient(*server, addresses, in)}
}

// newHTTPClient returns a client that reaches a server, and the public web for what the server refers
// to: where it redirects, and where one signs in (R-S19). Of private networks it reaches nothing but
// the hosts and ports that the owner named: that of the server, and that of its authorization server.
// It adds headers to requests to the server and to no others. What is received counts for in, which is
// nil outside of a connection.
func newHTTPClient(server Server, addresses *network.Guard, in *flood.Intake) *http.Client {
	g := &guard{own: hostPortOf(server.URL), headers: server.Headers, addresses: addresses, intake: in}
	allowed := []string{g.own}
	if server.Auth != nil && server.Auth.Server != "" {
		allowed = append(allowed, hostPortOf(server.Auth.Server))
	}
	named := &net.Dialer{Timeout: 10 * time.Second, ControlContext: network.RefuseMetadata}
	other := &net.Dialer{Timeout: 10 * time.Second, ControlContext: g.control}
	g.next = &http.Transport{
		DialContext: func(ctx context.Context, kind, target string) (net.Conn, error) {
			if slices.Contains(allowed, target) {
				return named.DialContext(ctx, kind, target)
			}
			return other.DialContext(ctx, kind, target)
		},
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		MaxIdleConns:           10,
		IdleConnTimeout:        30 * time.Second,
	}
	return &http.Client{Transport: g, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if len(via) > maxRedirects {
			return fmt.Errorf("more than %d redirects", maxRedirects)
		}
		return nil
	}}
}

const maxRedirects = 5

// hostPortOf returns the host and port that an address leads to.
func hostPortOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		u = &url.URL{}
	}
	return hostPort(u)
}

// hostPort returns the host and port that u leads to.
func hostPort(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// A guard sends requests to one server, and to the public web.
type guard struct {
	own       string // host and port of the server
	headers   map[string]string
	addresses *network.Guard
	intake    *flood.Intake
	next      http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (g *guard) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.own == hostPort(r.URL) && len(g.headers) > 0 {
		r = r.Clone(r.Context())
		for name, value := range g.headers {
			if http.CanonicalHeaderKey(name) == "Host" {
				r.Host = value
			} else if r.Header.Get(name) == "" || !isProtocolHeader(name) {
				r.Header.Set(name, value)
			}
		}
	}
	resp, err := g.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	count := flood.Counter(func([]byte) (int, error) { return 0, nil })          // there is one for each request
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") { // the SDK limits each event
		count = flood.Events()
	} else {
		resp.Body = &limitedBody{body: resp.Body, left: maxMessage}
	}
	if g.intake != nil {
		resp.Body = g.intake.Reader(resp.Body, count)
	}
	return resp, nil
}

// isProtocolHeader reports whether a header says how a request is to be read, which no config changes.
func isProtocolHeader(name string) bool {
	name = strings.ToLower(name)
	return slices.Contains([]string{"accept", "content-type", "content-length", "last-event-id"}, name) ||
		strings.HasPrefix(name, "mcp-")
}

// control refuses connections to addresses outside the public web.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if g.addresses.Reach(ctx, ap.Addr()) == network.Nowhere {
		return fmt.Errorf("%s is in a private network, and neither the server that the config names nor, "+
			"in auth.server, its authorization server", ap)
	}
	return nil
}

// A limitedBody fails after so many bytes.
type limitedBody struct {
	body io.ReadCloser
	left int64
}

func (b *limitedBody) Close() error { return b.body.Close() }

func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.body.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

var errTooLarge = errors.New("the answer is larger than 16 MB")

// httpTransport returns what messages are exchanged by with a server that is reached by HTTP.
func (c *connection) httpTransport(kind string) sdk.Transport {
	v := c.v
	s := newService(v.key.server, v.server, v.config.Addresses, c.newIntake())
	if kind == typeSSE {
		return &sdk.SSEClientTransport{Endpoint: v.server.URL, HTTPClient: s.Client, MaxEventSize: maxMessage}
	}
	t := &sdk.StreamableClientTransport{Endpoint: v.server.URL, HTTPClient: s.Client, MaxEventSize: maxMessage}
	if v.config.SignIn == nil {
		return t
	}
	if h := v.config.SignIn.Handler(s, v.key.who); h != nil {
		t.OAuthHandler = waitingHandler{h}
	}
	return t
}
