package web

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
)

// names are the names the page is served under (R-S2).
type names struct {
	home   string   // the origin that links begin with
	hosts  []string // that mean this machine, as the Host header says them, in lower case
	public string   // the host of PublicURL; may be empty
	origin string   // of PublicURL; may be empty
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
	if port == "80" { // which nobody writes
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

// Origin is the origin of a PublicURL, as browsers write it. The error says what
// a PublicURL must be.
func Origin(public string) (string, error) {
	u, err := url.Parse(public)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", errors.New("must be an address without a path, such as https://chat.example.com")
	}
	usual := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]
	return u.Scheme + "://" + strings.TrimSuffix(strings.ToLower(u.Host), usual), nil
}

// ours says whether origin is a page of ours: exactly that of PublicURL, or
// exactly the address at which this request came to this machine (R-S1).
func (n names) ours(origin, host string) bool {
	return origin != "" && origin == n.origin || slices.Contains(n.hosts, host) && origin == "http://"+host
}

// The headers of every answer (R-S5). What is mounted may change those of its own.
var headers = map[string]string{
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"media-src 'self' blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
	"Referrer-Policy":              "no-referrer",
	"Cache-Control":                "no-store",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
}

const patience = 30 * time.Second // to read a stranger's request and answer it

// guard lets a request through to next that a page of ours, a program or the
// address bar could have made.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hurry(w, time.Now().Add(patience))
		for k, v := range headers {
			w.Header().Set(k, v)
		}
		if why := s.names.foreign(r); why != "" {
			p := problem{status: http.StatusForbidden, text: why}
			if why == noOwnHeader && forModels(r) {
				p = needsKey
			}
			s.refuse(w, r, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// ownHeader is what our pages send with every write, and other pages cannot
// without asking first.
const ownHeader = "X-Parley"

const noOwnHeader = "the header " + ownHeader + " is missing"

// foreign says why r cannot be ours, or nothing.
func (n names) foreign(r *http.Request) string {
	host := strings.ToLower(r.Host)
	if !slices.Contains(n.hosts, host) && (host == "" || host != n.public) {
		return "this house is not known under that name: set http.publicUrl to the address people use"
	}
	const why = "this came from a page of somebody else"
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !n.ours(origins[0], host) {
		return why
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if (site == "cross-site" || site == "same-site") && (writes(r) || r.Header.Get("Sec-Fetch-Mode") != "navigate") {
		return why
	}
	if writes(r) && r.Header.Get(ownHeader) == "" && bearer(r) == "" {
		return noOwnHeader
	}
	return ""
}

// writes says whether r may change something. What a connection is upgraded to may.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != ""
}

// hurry sets the time by which a request must be read and answered; zero is never.
func hurry(w http.ResponseWriter, by time.Time) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(by) // not every writer can, and a server's can
	_ = rc.SetWriteDeadline(by)
}
