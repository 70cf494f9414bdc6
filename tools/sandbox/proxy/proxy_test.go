package proxy

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"parley/timetest"
	"parley/tools/network"
	"parley/tools/network/networktest"
)

// TestMain lets the test binary be the relay in a sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == RelayCommand {
		os.Exit(Relay(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// names is a name server that knows these names and one address of each, or several that are given in turn.
func names(t testing.TB, addresses map[string]string) *net.Resolver {
	var mu sync.Mutex
	asked := map[string]int{}
	return networktest.NameServer(t, func(q dnsmessage.Question) []dnsmessage.ResourceBody {
		mu.Lock()
		defer mu.Unlock()
		name := strings.TrimSuffix(q.Name.String(), ".")
		all := strings.Fields(addresses[name])
		if len(all) == 0 || q.Type != dnsmessage.TypeA {
			return nil
		}
		address := all[asked[name]%len(all)]
		asked[name]++
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: netip.MustParseAddr(address).As4()}}
	})
}

// loopback lets programs reach servers of a test on 127.0.0.1, but not what is on 127.0.0.2.
func loopback() *network.Guard {
	return network.NewGuard([]netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, networktest.Offline())
}

// A bench is a proxy for a program that is not in a namespace of its own: for these tests, Relay's part is played
// by the test.
type bench struct {
	*Proxy
	address string
}

// open starts a proxy for hosts.
func open(t testing.TB, c Config, hosts ...string) bench {
	t.Helper()
	p, err := Start(hosts, "tools.exec.network", c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	file, err := l.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	if err := sendListener(int(p.File().Fd()), int(file.Fd())); err != nil {
		t.Fatal(err)
	}
	file.Close()
	l.Close()
	p.Started()
	return bench{p, l.Addr().String()}
}

// client returns an HTTP client that uses the proxy, as the program would.
func (b bench) client(t testing.TB) *http.Client {
	proxy := &url.URL{Scheme: "http", Host: b.address}
	transport := &http.Transport{
		Proxy:           http.ProxyURL(proxy),
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // the certificate is that of a test
	}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// raw sends text to the proxy and returns the status and the body of the answer.
func (b bench) raw(t testing.TB, text string) (status, body string) {
	t.Helper()
	conn := b.dial(t)
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%.60q: %v", text, err)
	}
	defer response.Body.Close()
	all, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Status, string(all)
}

func (b bench) dial(t testing.TB) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", b.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func get(t testing.TB, client *http.Client, address string) (status int, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text), nil
}

func portOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

func hello(t testing.TB) (plain, secure *httptest.Server) {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintf(w, "hello %s %s", r.Host, r.Header.Get("Proxy-Authorization"))
	})
	plain = httptest.NewServer(answer)
	secure = httptest.NewTLSServer(answer)
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	return plain, secure
}

// What is allowed is reached, by HTTP and HTTPS, and nothing is told to the server about the proxy.
func TestReached(t *testing.T) {
	plain, secure := hello(t)
	port := portOf(t, plain.URL)
	securePort := portOf(t, secure.URL)
	var log bytes.Buffer
	config := Config{
		Guard: loopback(), Resolver: names(t, map[string]string{"site.test": "127.0.0.1", "www.site.test": "127.0.0.1"}),
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	p := open(t, config, "site.test:"+port, "*.site.test:"+port, "site.test:"+securePort)
	client := p.client(t)
	for _, address := range []string{
		"http://site.test:" + port, "http://SITE.test.:" + port + "/x", "http://www.site.test:" + port,
		"https://site.test:" + securePort,
	} {
		u, _ := url.Parse(address)
		status, body, err := get(t, client, address)
		if err != nil || status != 200 || body != "hello "+u.Host+" " {
			t.Errorf("%s: %d %q %v", address, status, body, err)
		}
	}
	if refused := p.Refused(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
	if reached := p.Reached(); len(reached) != 3 {
		t.Errorf("reached: %q, want three hosts", reached)
	}
	p.Close()
	if got := strings.Count(log.String(), "host=site.test:"+port+" address=127.0.0.1:"+port); got != 1 {
		t.Errorf("logged %d times, want once:\n%s", got, log.String())
	}
}

// A program is told which host it may not reach, and by which rule; so is who started it.
func TestRefused(t *testing.T) {
	plain, _ := hello(t)
	port := portOf(t, plain.URL)
	var log bytes.Buffer
	config := Config{
		Guard: loopback(),
		Resolver: names(t, map[string]string{
			"site.test": "127.0.0.1", "other.test": "127.0.0.1", "inner.test": "10.0.0.1", "meta.test": "169.254.169.254",
			"second.test": "127.0.0.2",
		}),
		Log: slog.New(slog.NewTextHandler(&log, nil)),
	}
	p := open(t, config, "site.test", "site.test:"+port, "inner.test", "meta.test", "second.test")
	const unlisted = " is not among the hosts that programs may reach: the config key tools.exec.network would have to list "
	const literal = " is an IP address: programs reach hosts by their names only"
	const private = ", which programs may not reach"
	for _, c := range []struct{ target, want string }{
		{"other.test:443", "other.test" + unlisted + `"other.test"; it lists site.test, site.test:` + port + ", inner.test"},
		{"other.test:" + port, "other.test" + unlisted + `"other.test:` + port + `"; it lists site.test`},
		{"site.test:22", `port 22 of site.test is not allowed: the config key tools.exec.network would have to list "site.test:22"`},
		{"127.0.0.1:" + port, "127.0.0.1:" + port + literal},
		{"[::1]:443", "[::1]:443" + literal},
		{"[::ffff:127.0.0.1]:443", "[::ffff:127.0.0.1]:443" + literal},
		{"2130706433:80", "2130706433:80" + literal},
		{"0x7f.1:80", "0x7f.1:80" + literal},
		{"inner.test:80", "inner.test has the private or internal address 10.0.0.1" + private},
		{"meta.test:80", "meta.test has the private or internal address 169.254.169.254" + private},
		{"second.test:443", "second.test has the private or internal address 127.0.0.2" + private},
	} {
		status, body := p.raw(t, "CONNECT "+c.target+" HTTP/1.1\r\nHost: "+c.target+"\r\n\r\n")
		if !strings.HasPrefix(status, "403 refused by the sandbox: "+c.want) ||
			!strings.HasPrefix(body, "refused by the sandbox: "+c.want) {
			t.Errorf("CONNECT %s: %s\n%s", c.target, status, body)
		}
		status, body = p.raw(t, "GET http://"+c.target+"/ HTTP/1.1\r\nHost: site.test:"+port+"\r\nConnection: close\r\n\r\n")
		if !strings.HasPrefix(status, "403 ") || !strings.HasPrefix(body, "refused by the sandbox: "+c.want) {
			t.Errorf("GET %s: %s\n%s", c.target, status, body)
		}
		if got := strings.Count(fmt.Sprint(p.Refused()), c.target); got != 1 {
			t.Errorf("%s is %d times in %q, want once", c.target, got, p.Refused())
		}
		p.mu.Lock()
		if got := strings.Count(log.String(), "host="+c.target); got != 1 && !strings.HasPrefix(c.target, "[") {
			t.Errorf("%s was logged %d times, want once", c.target, got)
		}
		p.mu.Unlock()
	}
	// What is no name at all is neither looked up nor shown to anybody.
	before := len(p.Refused())
	for _, target := range []string{"a\x01b:443", "site.test", "site.test:", ":443", "bücher.test:443"} {
		status, body := p.raw(t, "CONNECT "+target+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if !strings.HasPrefix(status, "400 ") {
			t.Errorf("CONNECT %q: %s %s", target, status, body)
		}
	}
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: site.test\r\n", "GET https://site.test/ HTTP/1.1\r\nHost: site.test\r\n",
		"GET ftp://site.test/ HTTP/1.1\r\nHost: site.test\r\n", "GET file:///etc/passwd HTTP/1.1\r\nHost: x\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: site.test\r\n",
	} {
		status, body := p.raw(t, request+"Connection: close\r\n\r\n")
		if !strings.HasPrefix(status, "400 ") && !strings.HasPrefix(request, "OPTIONS") || strings.Contains(body, "hello") {
			t.Errorf("%q: %s %s", request, status, body)
		}
	}
	if after := p.Refused(); len(after) != before {
		t.Errorf("refused: %q", after[before:])
	}
}

// A name that is not found, and a server that is not there, are no refusals.
func TestUnreachable(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	target := fmt.Sprintf("site.test:%d", l.Addr().(*net.TCPAddr).Port)
	l.Close()
	p := open(t, Config{Guard: loopback(), Resolver: names(t, map[string]string{"site.test": "127.0.0.1"})}, target, "nowhere.test")
	for target, want := range map[string]string{
		"nowhere.test:443": "the sandbox's proxy could not find the host nowhere.test", target: "the sandbox's proxy could not reach site.test",
	} {
		if status, body := p.raw(t, "CONNECT "+target+" HTTP/1.1\r\n\r\n"); !strings.HasPrefix(status, "502 ") || !strings.Contains(body, want) {
			t.Errorf("%s: %s %s", target, status, body)
		}
	}
	if refused := p.Refused(); len(refused) > 0 {
		t.Errorf("refused: %q", refused)
	}
}

// A host that is allowed cannot redirect a program to one that is not.
func TestRedirectToAnotherHost(t *testing.T) {
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	port := portOf(t, server.URL)
	to := ""
	mux.HandleFunc("/leave", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "secret") })
	resolver := names(t, map[string]string{"site.test": "127.0.0.1", "other.test": "127.0.0.1"})
	p := open(t, Config{Guard: loopback(), Resolver: resolver}, "site.test:"+port)
	for _, to = range []string{"http://other.test:" + port, server.URL, "http://[::1]:" + port} {
		status, body, err := get(t, p.client(t), "http://site.test:"+port+"/leave")
		if err != nil || status != 403 || strings.Contains(body, "secret") {
			t.Errorf("to %s: %d %s %v", to, status, body, err)
		}
	}
}

// R-S19: a name server that gives an allowed address first and an internal one then leads nowhere: the address
// that was judged is the one that is connected to, and each connection is judged anew.
func TestRebinding(t *testing.T) {
	var inside atomic.Int32
	public := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "public") }))
	t.Cleanup(public.Close)
	port := portOf(t, public.URL)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	private := &httptest.Server{Listener: l, Config: &http.Server{ //nolint:gosec // a test
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { inside.Add(1) }),
	}}
	private.Start()
	t.Cleanup(private.Close)
	var asked atomic.Int32
	resolver := networktest.NameServer(t, func(q dnsmessage.Question) []dnsmessage.ResourceBody {
		if q.Type != dnsmessage.TypeA {
			return nil
		}
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{127, 0, 0, byte(1 + (asked.Add(1)-1)%2)}}}
	})
	p := open(t, Config{Guard: loopback(), Resolver: resolver}, "evil.test:"+port)
	for i := range 20 {
		client := p.client(t)
		client.Transport.(*http.Transport).DisableKeepAlives = true
		p.forward.Transport.(*http.Transport).CloseIdleConnections()
		status, body, err := get(t, client, "http://evil.test:"+port)
		if err != nil {
			t.Fatal(err)
		}
		if want := i % 2; (status == 200 && body == "public") != (want == 0) || (status == 403) != (want == 1) {
			t.Errorf("request %d: %d %s", i, status, body)
		}
	}
	if inside.Load() > 0 || asked.Load() != 20 {
		t.Errorf("the internal server was reached %d times; the name was asked for %d times, want 20", inside.Load(), asked.Load())
	}
}

// A server cannot take a connection over that the program meant for requests.
func TestNoUpgrade(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			t.Error("the server was asked to change the protocol")
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		conn.Close()
	}))
	t.Cleanup(server.Close)
	port := portOf(t, server.URL)
	p := open(t, Config{Guard: loopback(), Resolver: names(t, map[string]string{"site.test": "127.0.0.1"})}, "site.test:"+port)
	for _, header := range []string{"", "Connection: Upgrade\r\nUpgrade: x\r\n", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"} {
		if status, body := p.raw(t, "GET http://site.test:"+port+"/ HTTP/1.1\r\nHost: x\r\n"+header+"\r\n"); !strings.HasPrefix(status, "502 ") {
			t.Errorf("%q: %s %s", header, status, body)
		}
	}
}

// A header that never ends is not kept in memory.
func TestHeaderFlood(t *testing.T) {
	p := open(t, Config{Guard: loopback()}, "site.test")
	for _, head := range []string{"GET http://site.test/ HTTP/1.1\r\n", "CONNECT site.test:443 HTTP/1.1\r\n", "CONNECT " + strings.Repeat("a", 1<<20)} {
		conn := p.dial(t)
		_, _ = io.WriteString(conn, head)
		sent := 0
		line := []byte("X-Flood: " + strings.Repeat("x", 1000) + "\r\n")
		for sent < 64<<20 {
			n, err := conn.Write(line)
			sent += n
			if err != nil {
				break
			}
		}
		if sent >= 64<<20 {
			t.Errorf("%.20q: %d bytes of header were taken", head, sent)
		}
	}
}

// A program that sends its request byte by byte does not hold a connection for ever.
func TestSlowRequest(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		p, err := Start([]string{"site.test"}, "", Config{})
		if err != nil {
			t.Fatal(err)
		}
		p.Started() // nobody inherits it
		<-p.done
		l := timetest.NewListener()
		p.done = make(chan struct{})
		go func() {
			defer close(p.done)
			p.serve(l)
		}()
		start := time.Now()
		ours, err := l.Dial(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		var program sync.WaitGroup
		program.Go(func() {
			defer ours.Close()
			for _, b := range []byte("GET http://site.test/ HTTP/1.1\r\n" + strings.Repeat("X: y\r\n", 1000)) {
				if _, err := ours.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(time.Second)
			}
		})
		answer, _ := io.ReadAll(ours)
		if took := time.Since(start); took > 2*headerTimeout || strings.Contains(string(answer), "200") {
			t.Errorf("held for %v: %s", took, answer)
		}
		program.Wait()
		l.Close()
		p.Close()
	})
}

// A tunnel in which nothing moves ends; one in which something moves, in one direction only, does not.
func TestIdleTunnel(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		program, ours := net.Pipe()
		theirs, server := net.Pipe()
		var both sync.WaitGroup
		extend(ours, theirs)
		both.Go(func() { pass(theirs, ours) })
		both.Go(func() { pass(ours, theirs) })
		both.Go(func() { _, _ = io.Copy(io.Discard, program) })
		for range 10 {
			timetest.Sleep(idleTimeout - time.Second)
			if _, err := server.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		both.Wait()
		if took := time.Since(start); took != idleTimeout {
			t.Errorf("ended after %v, want %v", took, idleTimeout)
		}
		program.Close()
		server.Close()
	})
}

// What the program has sent is received although it closes its side early, and the rest of the answer comes back.
func TestHalfClosedTunnel(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		_, _ = conn.Write(bytes.ToUpper(all))
	}()
	target := fmt.Sprintf("site.test:%d", l.Addr().(*net.TCPAddr).Port)
	p := open(t, Config{Guard: loopback(), Resolver: names(t, map[string]string{"site.test": "127.0.0.1"})}, target)
	conn := p.dial(t)
	// The first bytes come with the request, before the tunnel is open.
	_, _ = io.WriteString(conn, "CONNECT "+target+" HTTP/1.1\r\n\r\nearly ")
	_, _ = io.WriteString(conn, "late")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 200 ") || !strings.HasSuffix(string(answer), "EARLY LATE") {
		t.Errorf("%q %v", answer, err)
	}
}

// A program has so many connections, and no more; the next one waits until another has ended.
func TestConnectionLimit(t *testing.T) {
	plain, _ := hello(t)
	target := "site.test:" + portOf(t, plain.URL)
	p := open(t, Config{Guard: loopback(), Resolver: names(t, map[string]string{"site.test": "127.0.0.1"})}, target)
	connect := "CONNECT " + target + " HTTP/1.1\r\n\r\n"
	var tunnels []net.Conn
	for range maxConnections {
		conn := p.dial(t)
		_, _ = io.WriteString(conn, connect)
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatal(line, err)
		}
		tunnels = append(tunnels, conn)
	}
	waits := p.dial(t)
	_, _ = io.WriteString(waits, connect)
	if len(p.slots) != maxConnections {
		t.Errorf("%d slots are taken, want %d", len(p.slots), maxConnections)
	}
	tunnels[0].Close()
	if line, err := bufio.NewReader(waits).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
		t.Error(line, err)
	}
}

// Close ends what is under way, and leaves no goroutine behind: else the test would not end.
func TestClose(t *testing.T) {
	// The first lookup of a process makes a channel, which would belong to the bubble.
	if _, err := hostsFile().LookupHost(t.Context(), "localhost"); err != nil {
		t.Fatal(err)
	}
	timetest.Test(t, func(t *testing.T) {
		var servers sync.WaitGroup
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		accepted := make(chan net.Conn, 10)
		servers.Go(func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				accepted <- conn // and say nothing
			}
		})
		target := fmt.Sprintf("localhost:%d", l.Addr().(*net.TCPAddr).Port)
		p := open(t, Config{Guard: loopback(), Resolver: hostsFile()}, target)
		tunnel := p.dial(t)
		_, _ = io.WriteString(tunnel, "CONNECT "+target+" HTTP/1.1\r\n\r\n")
		first := <-accepted
		if line, err := bufio.NewReader(tunnel).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Error(line, err)
		}
		request := p.dial(t)
		_, _ = io.WriteString(request, "GET http://"+target+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
		second := <-accepted
		idle := p.dial(t)
		p.Close()
		p.Close() // does nothing more
		for _, conn := range []net.Conn{tunnel, request, idle} {
			_, _ = io.ReadAll(conn)
			conn.Close()
		}
		first.Close()
		second.Close()
		l.Close()
		servers.Wait()
	})
}

// hostsFile is a resolver that finds names only in the file hosts.
func hostsFile() *net.Resolver {
	return &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no name server")
	}}
}

// A program that ends without having opened its port, or that was not started, holds nothing up.
func TestNeverStarted(t *testing.T) {
	p, err := Start([]string{"pypi.org"}, "", Config{})
	if err != nil {
		t.Fatal(err)
	}
	p.Started()
	<-p.done
	p.Close()
	p, err = Start([]string{"pypi.org"}, "", Config{})
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := Start([]string{"pypi.org", "10.0.0.1"}, "", Config{}); err == nil {
		t.Error("an address is taken for a host")
	}
}

// Programs find the proxy by whichever variable they know, and keep what they were given.
func TestEnvironment(t *testing.T) {
	got := withProxy([]string{"A=b", "no_proxy=inner.test", "HTTP_PROXY="})
	for _, want := range []string{
		"A=b", "no_proxy=inner.test", "HTTP_PROXY=", "http_proxy=http://127.0.0.1:3128", "https_proxy=http://127.0.0.1:3128",
		"HTTPS_PROXY=http://127.0.0.1:3128", "ALL_PROXY=http://127.0.0.1:3128", "NO_PROXY=localhost,127.0.0.1,::1",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if len(got) != 9 {
		t.Errorf("%q", got)
	}
}
