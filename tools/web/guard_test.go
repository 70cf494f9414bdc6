package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/network/networktest"
)

const hint = "\n\n[Analyze the error above and try a different approach.]"

// A site is a server on loopback and the tools that may read it.
type site struct {
	t   *testing.T
	mux *http.ServeMux
	srv *httptest.Server
	cfg Config
	kit *tools.Kit
}

func newSite(t *testing.T, change ...func(*Config)) *site {
	t.Helper()
	mux := http.NewServeMux()
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	cfg := Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
	for _, f := range change {
		f(&cfg)
	}
	return &site{t, mux, srv, cfg, newKit(t, cfg)}
}

func newKit(t *testing.T, cfg Config) *tools.Kit {
	t.Helper()
	list, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(list)})
	if err != nil {
		t.Fatal(err)
	}
	return kit
}

// page serves body at path.
func (s *site) page(path, contentType, body string) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		_, _ = io.WriteString(w, body)
	})
}

func (s *site) redirect(path, to string) {
	s.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusFound)
	})
}

// call calls a tool through the whole pipeline. args may hold %s for the site's address.
func (s *site) call(tool, args string) tools.Result {
	s.t.Helper()
	return callKit(s.t, s.kit, tool, strings.ReplaceAll(args, "%s", s.srv.URL))
}

func callKit(t *testing.T, kit *tools.Kit, tool, args string) tools.Result {
	t.Helper()
	fresh, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(kit.Tools())}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	return fresh.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: tool, Args: args}, Scope: tools.Scope{Turn: "turn"}})
}

// of is what is said of an error of the page at url.
func of(problem, url string) string { return problem + " (" + url + ")" }

func quote(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// D-082, D-083, R-S19: what is refused before it is asked for, through every tool.
func TestRefused(t *testing.T) {
	kit := newKit(t, Config{})
	for _, c := range []struct{ url, want string }{
		{"ftp://example.com/", "Only http/https allowed, got 'ftp'"},
		{"file:///etc/passwd", "Only http/https allowed, got 'file'"},
		{"gopher://127.0.0.1:70/", "Only http/https allowed, got 'gopher'"},
		{"example.com", "Only http/https allowed, got 'none'"},
		{"http:///x", "Blocked: the URL names no host"},
		{"http://[::1", "this is not a URL"},
		{"http://127.0.0.1/", "Blocked: 127.0.0.1 resolves to private/internal address 127.0.0.1"},
		{"http://localhost/", "Blocked: localhost resolves to private/internal address 127.0.0.1"},
		{"http://169.254.169.254/latest/meta-data/", "Blocked: 169.254.169.254 resolves to private/internal address 169.254.169.254"},
		{"http://[::ffff:169.254.169.254]/", "Blocked: ::ffff:169.254.169.254 resolves to private/internal address 169.254.169.254"},
		{"http://[::1]:8080/", "Blocked: ::1 resolves to private/internal address ::1"},
		{"https://10.0.0.1/", "Blocked: 10.0.0.1 resolves to private/internal address 10.0.0.1"},
		{"http://2130706433/", "Blocked: 2130706433 is an address in a form that hides what it is"},
		{"http://0x7f000001/", "Blocked: 0x7f000001 is an address in a form that hides what it is"},
		{"http://0177.0.0.1/", "Blocked: 0177.0.0.1 is an address in a form that hides what it is"},
		{"http://127.1/", "Blocked: 127.1 is an address in a form that hides what it is"},
		{"http://127.0.0.0x1/", "Blocked: 127.0.0.0x1 is an address in a form that hides what it is"},
		{"http://127.0.0.1./", "Blocked: 127.0.0.1. is an address in a form that hides what it is"},
		{"http://user:secret@example.com/", "Blocked: a URL must not hold a user name or password"},
		{"http://example.com:22/", "Blocked: port 22 is not allowed"},
		{"http://example.com:99999/", "Blocked: port 99999 is not allowed"},
	} {
		for tool, want := range map[string]string{
			"web_fetch":      "Error: " + quote(map[string]string{"error": c.want, "url": chat.HideLogins(c.url)}) + hint,
			"fetch_page":     `{"success":false,"data":null,"error":` + quote(of(c.want, chat.HideLogins(c.url))) + `}`,
			"scrape_website": "Error: " + of(c.want, chat.HideLogins(c.url)) + hint,
		} {
			r := callKit(t, kit, tool, `{"url":`+quote(c.url)+`}`)
			if c.url == "http://localhost/" { // it has two addresses
				r.Text = strings.Replace(r.Text, "address ::1", "address 127.0.0.1", 1)
			}
			if r.Text != want || !r.Failed {
				t.Errorf("%s %s: %s, want %s", tool, c.url, r.Text, want)
			}
		}
		r := callKit(t, kit, "crawl_batch", `{"urls":[`+quote(c.url)+`]}`)
		r.Text = strings.Replace(r.Text, "localhost resolves to private/internal address ::1", "localhost resolves to private/internal address 127.0.0.1", 1)
		want := `{"success":true,"data":{"results":[` + quote(map[string]string{"error": c.want, "url": chat.HideLogins(c.url)}) + `],"total":1},"error":null}`
		if r.Text != want {
			t.Errorf("crawl_batch %s: %s, want %s", c.url, r.Text, want)
		}
	}
}

// D-083: at home, servers are at any port; elsewhere at those of the web.
func TestPorts(t *testing.T) {
	s := newSite(t)
	s.page("/", "text/plain", "at home")
	if r := s.call("fetch_page", `{"url":"%s/"}`); r.Failed {
		t.Errorf("an unusual port at home: %s", r.Text)
	}
	r := callKit(t, s.kit, "fetch_page", `{"url":"http://8.8.8.8:22/"}`)
	if want := `{"success":false,"data":null,"error":"Blocked: port 22 is not allowed (http://8.8.8.8:22/)"}`; r.Text != want {
		t.Errorf("elsewhere: %s, want %s", r.Text, want)
	}
}

// D-083: every hop of a redirect is checked.
func TestRedirects(t *testing.T) {
	s := newSite(t)
	s.page("/end", "text/plain", "the end")
	for i := range 6 {
		s.redirect(fmt.Sprintf("/hop%d", i+1), []string{"/end", fmt.Sprintf("/hop%d", i)}[min(i, 1)])
	}
	s.redirect("/loop", "/loop")
	for path, to := range map[string]string{
		"/private": "http://10.0.0.1/", "/file": "file:///etc/passwd", "/meta": "http://169.254.169.254/latest/",
		"/decimal": "http://2130706433/", "/port": "http://8.8.8.8:1/", "/user": "http://a:b@127.0.0.1/", "/private2": "/private",
	} {
		s.redirect(path, to)
	}
	for _, c := range []struct{ path, want string }{
		{"/private", "Redirect blocked: 10.0.0.1 resolves to private/internal address 10.0.0.1"},
		{"/private2", "Redirect blocked: 10.0.0.1 resolves to private/internal address 10.0.0.1"},
		{"/meta", "Redirect blocked: 169.254.169.254 resolves to private/internal address 169.254.169.254"},
		{"/file", "Redirect blocked: Only http/https allowed, got 'file'"},
		{"/decimal", "Redirect blocked: 2130706433 is an address in a form that hides what it is"},
		{"/user", "Redirect blocked: a URL must not hold a user name or password"},
		{"/port", "Redirect blocked: port 1 is not allowed"},
		{"/loop", "Redirect blocked: more than 5 redirects"},
		{"/hop6", "Redirect blocked: more than 5 redirects"},
	} {
		r := s.call("fetch_page", `{"url":"%s`+c.path+`"}`)
		if want := `{"success":false,"data":null,"error":` + quote(of(c.want, s.srv.URL+c.path)) + `}`; r.Text != want {
			t.Errorf("%s: %s, want %s", c.path, r.Text, want)
		}
	}
	var a answer
	r := s.call("web_fetch", `{"url":"%s/hop5"}`)
	if err := json.Unmarshal([]byte(r.Text), &a); err != nil || a.FinalURL != s.srv.URL+"/end" || a.Text != banner+"the end" {
		t.Errorf("five redirects: %s", r.Text)
	}
}

// R-S19: where a redirect leads is not told where it came from, which may hold a secret.
func TestNoReferer(t *testing.T) {
	s := newSite(t)
	s.redirect("/from", "/to")
	s.mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "from %q", r.Referer()) })
	if a := s.fetch(`{"url":"%s/from?token=secret"}`); a.Text != banner+`from ""` {
		t.Error(a.Text)
	}
}

// F17, R-S19: a name that is public at first and private at the second look.
func TestRebinding(t *testing.T) {
	var looks atomic.Int32
	s := newSite(t, func(c *Config) {
		c.resolver = rebinding(t, func() netip.Addr {
			if looks.Add(1) == 1 {
				return netip.MustParseAddr("127.0.0.1") // which the test's config allows
			}
			return netip.MustParseAddr("10.0.0.7")
		})
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "hello")
	})
	_, port, _ := net.SplitHostPort(s.srv.Listener.Addr().String())
	url := "http://rebind.example.com:" + port + "/"
	if r := s.call("scrape", `{"url":"`+url+`"}`); r.Text != `{"text":`+quote(banner+"hello")+`,"url":"`+url+`"}` {
		t.Fatalf("first: %s", r.Text)
	}
	want := "Error: " + of("Blocked: rebind.example.com resolves to private/internal address 10.0.0.7", url) + hint
	if r := s.call("scrape", `{"url":"`+url+`"}`); r.Text != want {
		t.Errorf("second: %s, want %s", r.Text, want)
	}
}

// rebinding is a resolver that has another IPv4 address for each question: what next returns.
func rebinding(t *testing.T, next func() netip.Addr) *net.Resolver {
	return networktest.NameServer(t, func(q dnsmessage.Question) []dnsmessage.ResourceBody {
		if q.Type != dnsmessage.TypeA {
			return nil
		}
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: next().As4()}}
	})
}

// D-083: the client as others use it: no proxy, bodies closed, a deadline of the caller's.
func TestClient(t *testing.T) {
	c := Client(Config{})
	if c.Transport.(*guard).next.(*http.Transport).Proxy != nil || newSearch(t).client.Transport.(*http.Transport).Proxy != nil {
		t.Error("there is a proxy")
	}
	body := &closing{Reader: strings.NewReader("x")}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://10.1.2.3/", body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(req); err == nil || err.Error() != `Post "http://10.1.2.3/": Blocked: 10.1.2.3 resolves to private/internal address 10.1.2.3` { //nolint:bodyclose // there is none
		t.Errorf("err = %v", err)
	}
	body = &closing{Reader: strings.NewReader("x")}
	req.URL.Scheme, req.Body = "ftp", body
	if _, err := c.Transport.RoundTrip(req); err == nil || !body.closed { //nolint:bodyclose // there is none
		t.Errorf("err = %v, body closed %v", err, body.closed)
	}
}

func newSearch(t *testing.T) *searcher {
	s, err := newSearcher(Config{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error { c.closed = true; return nil }

// R-S19: time, size and headers have limits.
func TestLimits(t *testing.T) {
	s := newSite(t, func(c *Config) { c.maxBody = 1 << 20 })
	patient := s.kit
	s.cfg.patience = 200 * time.Millisecond
	hasty := newKit(t, s.cfg)
	s.mux.HandleFunc("/silent", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	s.mux.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			_, _ = io.WriteString(w, "drip ")
			w.(http.Flusher).Flush()
			select {
			case <-time.After(20 * time.Millisecond):
			case <-r.Context().Done():
			}
		}
	})
	packed := bomb(8 << 20)
	s.mux.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(packed)
	})
	s.mux.HandleFunc("/big", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, strings.Repeat("x", 1<<20+1))
	})
	s.mux.HandleFunc("/header", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	s.mux.HandleFunc("/brotli", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") })
	s.mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "short")
	})
	s.page("/exact", "text/plain", strings.Repeat("y", 1<<20))
	for _, c := range []struct{ path, want string }{
		{"/silent", "no answer within 200ms"},
		{"/slow", "no answer within 200ms"},
		{"/bomb", "the page is larger than 1 MB"},
		{"/big", "the page is larger than 1 MB"},
		{"/header", "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted"},
		{"/brotli", "the page is compressed in a way that was not asked for"},
		{"/cut", "unexpected EOF"},
	} {
		s.kit = patient
		if strings.HasPrefix(c.want, "no answer") {
			s.kit = hasty
		}
		if r := s.call("scrape", `{"url":"%s`+c.path+`"}`); r.Text != "Error: "+of(c.want, s.srv.URL+c.path)+hint {
			t.Errorf("%s: %s, want %s", c.path, r.Text, c.want)
		}
	}
	s.kit = patient
	if r := s.call("scrape", `{"url":"%s/exact"}`); r.Failed {
		t.Errorf("a page of exactly 1 MB: %s", r.Text)
	}
}
