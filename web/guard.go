package web

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// names are the names the page is served under (R-S2).
type names struct {
	home    string   // the origin that links begin with
	origin  string   // of PublicURL; may be empty
	hosts   []string // as the Host header says them, in lower case
	locally []string // those of hosts that mean this machine
	secure  bool     // people come by https
}

func newNames(listen, public string) (names, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return names{}, fmt.Errorf("http.listen: %w", err)
	}
	var n names
	for _, h := range []string{"127.0.0.1", "localhost", "[::1]"} {
		n.locally = append(n.locally, h+":"+port)
		if port == "80" {
			n.locally = append(n.locally, h)
		}
	}
	n.hosts = slices.Clone(n.locally)
	n.home = "http://" + n.locally[0]
	if ip, err := netip.ParseAddr(host); host != "" && (err != nil || !ip.IsUnspecified()) {
		bound := strings.ToLower(net.JoinHostPort(host, port))
		n.hosts, n.home = append(n.hosts, bound), "http://"+bound
		n.locally = append(n.locally, bound)
	}
	if public == "" {
		return n, nil
	}
	u, err := url.Parse(public)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Hostname() == "" || u.User != nil ||
		strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return names{}, errors.New(`http.publicUrl: write a scheme and a name, as in "https://chat.example.com"`)
	}
	at := strings.ToLower(u.Host)
	if d := map[string]string{"https": ":443", "http": ":80"}[u.Scheme]; u.Port() != "" {
		at = strings.TrimSuffix(at, d)
	}
	n.origin, n.secure = u.Scheme+"://"+at, u.Scheme == "https"
	n.home, n.hosts = n.origin, append(n.hosts, at)
	return n, nil
}

// ours says whether origin is a page of ours: exactly that of PublicURL, or
// exactly the address at which this request came to this machine (R-S1).
func (n names) ours(origin, host string) bool {
	return origin != "" && origin == n.origin ||
		slices.Contains(n.locally, strings.ToLower(host)) && origin == "http://"+strings.ToLower(host)
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

// ownHeader is what our pages send with every write, and other pages cannot
// without asking first.
const ownHeader = "X-Parley"

// guard lets a request through to next that a page of ours, a program or the
// address bar could have made.
func (s *Server) guard(next http.Handler) http.Handler {
	return s.safely(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hurry(w, time.Now().Add(patience))
		for k, v := range headers {
			w.Header().Set(k, v)
		}
		if !slices.Contains(s.names.hosts, strings.ToLower(r.Host)) {
			refuse(w, r, http.StatusForbidden, "this house is not known under that name: set http.publicUrl to the address people use")
			return
		}
		if why := s.foreign(r); why != "" {
			refuse(w, r, http.StatusForbidden, why)
			return
		}
		next.ServeHTTP(w, r)
	}))
}

// foreign says why r cannot be ours, or nothing.
func (s *Server) foreign(r *http.Request) string {
	const why = "this came from a page of somebody else"
	origins := r.Header.Values("Origin")
	if len(origins) > 1 || len(origins) == 1 && !s.names.ours(origins[0], r.Host) {
		return why
	}
	site := r.Header.Get("Sec-Fetch-Site")
	if (site == "cross-site" || site == "same-site") && (writes(r) || r.Header.Get("Sec-Fetch-Mode") != "navigate") {
		return why
	}
	if writes(r) && len(origins) == 0 && r.Header.Get(ownHeader) == "" && bearer(r) == "" {
		return "this says neither which page it is from nor " + ownHeader
	}
	return ""
}

// writes says whether r may change something. What a connection is upgraded to may.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Upgrade") != ""
}

// safely makes a panic the failure of one request.
func (s *Server) safely(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen := &watched{ResponseWriter: w}
		defer func() {
			p := recover()
			if p == nil {
				return
			}
			if p != http.ErrAbortHandler {
				s.Log.Error("request panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
			}
			if p == http.ErrAbortHandler || seen.begun {
				panic(http.ErrAbortHandler) // what was sent so far must not look whole
			}
			refuse(w, r, http.StatusInternalServerError, "something broke here; it is in the log")
		}()
		next.ServeHTTP(seen, r)
	})
}

// watched knows whether the answer has begun.
type watched struct {
	http.ResponseWriter
	begun bool
}

func (w *watched) WriteHeader(status int) {
	w.begun = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *watched) Write(p []byte) (int, error) {
	w.begun = true
	return w.ResponseWriter.Write(p)
}

// Unwrap serves http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *watched) Flush() {
	w.begun = true
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

// hurry sets the time by which a request must be read and answered; zero is never.
func hurry(w http.ResponseWriter, by time.Time) {
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(by) // not every writer can, and a server's can
	_ = rc.SetWriteDeadline(by)
}

const minBits = 128 // of the administrator's token, where others can reach it

// Posture returns why it would be careless to listen there with that token: R-S4.
func Posture(listen, token string) error {
	host, _, err := net.SplitHostPort(listen)
	if err != nil {
		return fmt.Errorf("http.listen: %w", err)
	}
	if ip, err := netip.ParseAddr(host); host == "localhost" || err == nil && ip.Unmap().IsLoopback() || bits(token) >= minBits {
		return nil
	}
	return fmt.Errorf("http.listen is %s, which others can reach: set http.adminToken to %d random bits or more, "+
		"such as what \"openssl rand -hex 16\" prints, or listen on 127.0.0.1", listen, minBits)
}

// bits is how many bits a token has if it was made at random.
func bits(token string) float64 {
	letters, size := map[rune]bool{}, 1.0
	for _, r := range token {
		letters[r] = true
	}
	if len(letters) < 8 {
		return 0 // nobody rolled that
	}
	for kind, n := range map[string]float64{"0123456789": 10, "abcdef": 6, "ABCDEF": 6, "ghijklmnopqrstuvwxyz": 20, "GHIJKLMNOPQRSTUVWXYZ": 20, "-_+/": 2} {
		if strings.ContainsAny(token, kind) {
			size += n
		}
	}
	return float64(len(token)) * math.Log2(max(size-1, 1))
}
