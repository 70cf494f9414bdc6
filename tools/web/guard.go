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
)

const (
	maxRedirects = 5
	maxHeader    = 64 << 10 // bytes of an answer's header
)

var defaultPorts = map[string]string{"http": "80", "https": "443"}

// ports are those of the web. Networks that AllowPrivate opens may have others.
var ports = []uint16{80, 443, 8080, 8443}

// public is where the IPv6 addresses of the web are; of IPv4 it is all of them.
// private is what is not the web there (R-S19, D-083).
var (
	public  = prefixes("0.0.0.0/0 2000::/3")
	private = prefixes("0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24 192.168.0.0/16 " +
		"198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 2001::/23 2001:db8::/32 3fff::/20")
)

// never are addresses that AllowPrivate does not open: the metadata services
// of clouds, which hand out keys, and IPv6 addresses that stand for an IPv4
// one and would be a way around the rest.
var never = prefixes("169.254.0.0/16 100.100.100.200/32 168.63.129.16/32 192.0.0.192/32 fd00:ec2::/32 fd20:ce::/32 " +
	"::ffff:0:0:0/96 64:ff9b::/96 64:ff9b:1::/48 2001::/32 2002::/16")

func prefixes(list string) (ps []netip.Prefix) {
	for p := range strings.FieldsSeq(list) {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

// A guard makes requests to the public web only. Addresses are checked when the
// connection is made, so that a name gains nothing by having another one a
// moment later (F17).
type guard struct {
	next  http.RoundTripper
	allow []netip.Prefix
}

// Client returns a client for the public web and what c allows besides. It
// reaches no private networks, by whatever name or redirect, no other ports and
// no other schemes, and uses no proxy; an error holds the text of D-082 or
// D-083. Time and the size of bodies are the caller's to limit, since it serves
// streams too. It is safe for use by several goroutines.
func Client(c Config) *http.Client {
	g := &guard{allow: c.AllowPrivate}
	d := &net.Dialer{Timeout: 10 * time.Second, Resolver: c.resolver, ControlContext: g.control}
	g.next = &http.Transport{DialContext: d.DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: 10 * time.Second,
		MaxResponseHeaderBytes: maxHeader, MaxIdleConns: 20, IdleConnTimeout: 30 * time.Second}
	return &http.Client{Transport: g, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		r.Header.Del("Referer") // may hold a secret of the page before
		if len(via) > maxRedirects {
			return refuse("Redirect blocked: more than %d redirects", maxRedirects)
		}
		return nil
	}}
}

// A refusal says why something is not asked for.
type refusal string

func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

// RoundTrip makes one request: the first, or one that a redirect led to.
func (g *guard) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	var no refusal
	if err = g.check(r.URL); err == nil {
		resp, err = g.next.RoundTrip(r)
		if address := closed(""); errors.As(err, &address) {
			err = refuse("Blocked: %s resolves to private/internal address %s", r.URL.Hostname(), address)
		}
	} else if r.Body != nil {
		r.Body.Close()
	}
	if r.Response != nil && errors.As(err, &no) {
		err = refuse("Redirect blocked: %s", strings.TrimPrefix(string(no), "Blocked: "))
	}
	return resp, err
}

// check says what is wrong with u, before anything is looked up.
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
	case odd(host):
		return refuse("Blocked: %s is an address in a form that hides what it is", host)
	case err != nil || len(g.allow) == 0 && !slices.Contains(ports, uint16(port)):
		return refuse("Blocked: port %s is not allowed", u.Port())
	}
	return nil
}

// odd says whether host is an IPv4 address in a form, such as decimal, octal
// or hex, that resolvers read in different ways.
func odd(host string) bool {
	_, err := netip.ParseAddr(host)
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	return err != nil && (strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x"))
}

// A closed address is a private one.
type closed string

func (c closed) Error() string { return string(c) }

// control refuses to connect where the web is not.
func (g *guard) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	switch a := ap.Addr().WithZone("").Unmap(); {
	case err != nil:
		return err
	case !g.allows(a):
		return closed(a.String())
	case !within(g.allow, a) && !slices.Contains(ports, ap.Port()):
		return refuse("Blocked: port %d is not allowed", ap.Port())
	}
	return nil
}

func within(ps []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(ps, func(p netip.Prefix) bool { return p.Contains(a) })
}

// allows says whether a may be connected to.
func (g *guard) allows(a netip.Addr) bool {
	a = a.WithZone("").Unmap() // no prefix holds an address with a zone
	return !within(never, a) && (within(g.allow, a) || within(public, a) && !within(private, a))
}
