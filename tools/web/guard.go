package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"parley/tools/network"
)

const (
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of a response header
)

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// ports are the ports of the web. Networks in AllowPrivate may have others.
var ports = []uint16{80, 443, 8080, 8443}

// A guard makes requests to the public web only. It checks addresses when the
// connection is made, so that a name cannot change its address after the check
// (F17).
type guard struct {
	next      http.RoundTripper
	addresses *network.Guard
	anyPort   bool // addresses decides about ports: some networks are allowed with all of them
}

func newGuard(c Config) *guard {
	return &guard{addresses: network.NewGuard(c.AllowPrivate, c.resolver), anyPort: len(c.AllowPrivate) > 0}
}

// Client returns a client for the public web and the networks that c allows. It
// reaches no private networks, under any name and by any redirect, no other ports
// and no other schemes, and it uses no proxy. Its errors have the texts of D-082
// and D-083. The caller limits time and the size of bodies, since the client
// serves streams too. It is safe for concurrent use.
func Client(c Config) *http.Client {
	g := newGuard(c)
	d := &net.Dialer{Timeout: 10 * time.Second, Resolver: c.resolver, ControlContext: g.control}
	g.next = &http.Transport{DialContext: d.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConns: 20, IdleConnTimeout: 30 * time.Second}
	return &http.Client{Transport: g, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		r.Header.Del("Referer") // may contain a secret from the previous address
		if len(via) > maxRedirects {
			return refuse("Redirect blocked: more than %d redirects", maxRedirects)
		}
		return nil
	}}
}

// A refusal says why a request is not made.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// RoundTrip makes one request: the first, or one after a redirect.
func (g *guard) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	resp, err = g.send(r)
	var no refusal
	if r.Response != nil && errors.As(err, &no) {
		err = refuse("Redirect blocked: %s", strings.TrimPrefix(string(no), "Blocked: "))
	}
	return resp, err
}

// send makes a request unless it must not be made.
func (g *guard) send(r *http.Request) (*http.Response, error) {
	if err := g.check(r.URL); err != nil {
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	resp, err := g.next.RoundTrip(r)
	if address := privateAddress(""); errors.As(err, &address) {
		return nil, refuse("Blocked: %s resolves to private/internal address %s", r.URL.Hostname(), address)
	}
	return resp, err
}

// check returns what is wrong with u, before any name is looked up.
func (g *guard) check(u *url.URL) error {
	host := u.Hostname()
	port, err := strconv.ParseUint(cmp.Or(u.Port(), defaultPorts[u.Scheme]), 10, 16)
	switch {
	case defaultPorts[u.Scheme] == "":
		return refuse("Only http/https allowed, got '%s'", cmp.Or(u.Scheme, "none"))
	case host == "":
		return refuse("Blocked: the URL names no host")
	case u.User != nil:
		return refuse("Blocked: a URL must not hold a user name or password")
	case network.IsObfuscatedIP(host):
		return refuse("Blocked: %s is an address in a form that hides what it is", host)
	case err != nil || !g.anyPort && !slices.Contains(ports, uint16(port)):
		return refuse("Blocked: port %s is not allowed", u.Port())
	}
	return nil
}

// A privateAddress is the error for a private address.
type privateAddress string

func (a privateAddress) Error() string { return string(a) }

// control refuses connections to addresses outside the public web.
func (g *guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	switch g.addresses.Reach(ctx, ap.Addr()) {
	case network.Nowhere:
		return privateAddress(ap.Addr().WithZone("").Unmap().String())
	case network.PublicWeb:
		if !slices.Contains(ports, ap.Port()) {
			return refuse("Blocked: port %d is not allowed", ap.Port())
		}
	}
	return nil
}
