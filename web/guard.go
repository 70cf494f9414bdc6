package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/response"
	"parley/store"
)

// names are the host names under which the server is reached (R-S2).
type names struct {
	home   string   // the origin that links begin with
	hosts  []string // values of the Host header that mean this machine, in lower case
	public string   // the host of PublicURL; may be empty
	origin string   // the origin of PublicURL; may be empty
}

func newNames(listen, public string) (n names, err error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return names{}, fmt.Errorf("http.listen: %w", err)
	}
	here := []string{"127.0.0.1", "localhost", "::1"}
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		here = slices.Insert(here, 0, host)
	}
	for _, h := range here {
		n.hosts = append(n.hosts, strings.ToLower(net.JoinHostPort(h, port)))
	}
	n.home = "http://" + n.hosts[0]
	if port == "80" { // the Host header leaves it out
		for _, h := range n.hosts {
			n.hosts = append(n.hosts, strings.TrimSuffix(h, ":80"))
		}
	}
	if public == "" {
		return n, nil
	}
	if n.origin, err = Origin(public); err != nil {
		return names{}, fmt.Errorf("http.publicUrl %w", err)
	}
	n.home = n.origin
	_, n.public, _ = strings.Cut(n.origin, "://")
	return n, nil
}

// at returns the names under which the gateway is reached that has received the request of ctx: this one, or one that
// stands by and has passed it on.
func (n names) at(ctx context.Context) names {
	addr, ok := ctx.Value(http.LocalAddrContextKey).(store.Address)
	if !ok {
		return n
	}
	there, err := newNames(addr.Name, addr.Public)
	if err != nil { // it has no page
		return n
	}
	return there
}

// Origin returns the origin of a PublicURL as browsers write it. The error says
// what a PublicURL must be.
func Origin(public string) (string, error) {
	u, err := url.Parse(public)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be an address without a path, such as https://chat.example.com")
	}
	usual := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), usual), nil
}

// isOwn reports whether origin is one of our pages: exactly that of PublicURL, or
// exactly the address at which this request reached this machine (R-S1).
func (n names) isOwn(origin, host string) bool {
	return origin != "" && origin == n.origin || slices.Contains(n.hosts, host) && origin == "http://"+host
}

// headers are set on every answer (R-S5). Mounted handlers may change their own.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"media-src 'self' blob:; frame-src 'self'; connect-src 'self'; manifest-src 'self'; form-action 'self'; " +
		"base-uri 'none'; " +
		"frame-ancestors 'none'",
	"Permissions-Policy":           "microphone=(self), camera=(), geolocation=(), payment=(), usb=()",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

const requestTimeout = 30 * time.Second // to read a request and answer it, until its sender is let in

// guard passes on to next the requests that one of our pages, a program or the
// address bar can have made, and refuses those that another site made.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setDeadline(w, time.Now().Add(requestTimeout))
		for k, v := range headers {
			w.Header().Set(k, v)
		}
		if why := s.names.at(r.Context()).rejection(r); why != "" {
			p := response.Problem{Status: http.StatusForbidden, Text: why}
			if why == missingHeader && isForPrograms(r) {
				p = needsKey
			}
			writeProblem(w, r, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHeader is sent by our pages with every write. Pages of other sites cannot
// send it without asking the server first.
const ownHeader = "X-Parley"

const missingHeader = "the header " + ownHeader + " is missing"

// rejection returns why r is refused, or "".
func (n names) rejection(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if !slices.Contains(n.hosts, host) && (host == "" || host != n.public) {
		return "unknown host name: set http.publicUrl to the address people use"
	}
	const otherSite = "this request came from a page of another site"
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !n.isOwn(origins[0], host) {
		return otherSite
	}
	site := r.Header.Get("Sec-Fetch-Site")
	isForeign := site == "cross-site" || site == "same-site"
	if isForeign && (isWrite(r) || r.Header.Get("Sec-Fetch-Mode") != "navigate") {
		return otherSite
	}
	if isWrite(r) && r.Header.Get(ownHeader) == "" && bearer(r) == "" {
		return missingHeader
	}
	return ""
}

// isWrite reports whether r may change something. An upgraded connection may.
func isWrite(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != ""
}

// setDeadline sets the time by which a request must be read and answered; the zero
// time means none.
func setDeadline(w http.ResponseWriter, by time.Time) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(by) // not every writer can, and a server's can
	_ = rc.SetWriteDeadline(by)
}
