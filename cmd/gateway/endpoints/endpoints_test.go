package endpoints

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/admin"
	"parley/channels/console"
	"parley/store"
	"parley/store/mem"
	"parley/web"
)

// A shared store is one whose gateways reach each other within this process.
type shared struct {
	store.Store
	mu        sync.Mutex
	listeners map[string]chan net.Conn
	down      bool           // nobody answers
	missed    map[string]int // how often somebody dialled while nobody answered
}

func newShared() *shared {
	return &shared{Store: mem.New(), listeners: map[string]chan net.Conn{}, missed: map[string]int{}}
}

func (s *shared) calls(name string) chan net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listeners[name] == nil {
		s.listeners[name] = make(chan net.Conn, 10)
	}
	return s.listeners[name]
}

func (s *shared) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Listen implements [store.Connector].
func (s *shared) Listen(name string) (net.Listener, error) {
	h := newHandoff()
	calls := s.calls(name)
	go func() {
		for {
			select {
			case c := <-calls:
				h.give(c)
			case <-h.done:
				return
			}
		}
	}()
	return h, nil
}

// Reach implements [store.Remote].
func (s *shared) Reach(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("there is no connection")
	}
	return nil
}

// dial is a [store.Dial].
func (s *shared) dial(_ context.Context, name string, c store.Caller) (net.Conn, error) {
	s.mu.Lock()
	down := s.down
	if down {
		s.missed[name]++
	}
	s.mu.Unlock()
	if down {
		return nil, errors.New("nobody answers")
	}
	near, far := net.Pipe()
	s.calls(name) <- called{far, c}
	return near, nil
}

type called struct {
	net.Conn
	caller store.Caller
}

func (c called) RemoteAddr() net.Addr { return store.Address{Name: c.caller.From} }
func (c called) LocalAddr() net.Addr {
	return store.Address{Name: c.caller.At, Public: c.caller.Public}
}

// A log holds what was logged.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// find waits until the log has what follows key, up to a space.
func (l *log) find(t *testing.T, key string) string {
	t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		l.mu.Lock()
		_, after, found := strings.Cut(l.text.String(), key)
		l.mu.Unlock()
		if found {
			value, _, _ := strings.Cut(strings.TrimSpace(after), " ")
			return value
		}
	}
	t.Fatalf("the log never has %q", key)
	return ""
}

// standBy runs a Forwarder, and returns the address of its page and the folder of its sockets. end ends it.
func standBy(t *testing.T, s *shared, c Config) (page string, end func()) {
	t.Helper()
	l := &log{}
	ctx, cancel := context.WithCancel(t.Context())
	c.Version = "1.2.3"
	f := Forwarder{
		Config: c, Log: slog.New(slog.NewTextHandler(l, nil)), patience: 300 * time.Millisecond,
	}
	var running sync.WaitGroup
	running.Go(func() { f.Run(ctx, s.dial, s) })
	end = func() {
		cancel()
		running.Wait()
	}
	t.Cleanup(end)
	return l.find(t, "page="), end
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "ends") // the names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// answering runs Servers whose page and admin socket say what they are asked, and by whom.
func answering(t *testing.T, s *shared) *Servers {
	t.Helper()
	servers, err := NewServers(Config{DataDir: folder(t), Version: "1.2.4"}, nil, s, false)
	if err != nil {
		t.Fatal(err)
	}
	says := func(what string) *http.Server {
		return &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			at := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
			words := []string{what, r.URL.Path, r.RemoteAddr, at.String()}
			if passed, ok := at.(store.Address); ok && passed.Public != "" {
				words = append(words, passed.Public)
			}
			_, _ = io.WriteString(w, strings.Join(words, " "))
		})}
	}
	for _, name := range []string{Page, Admin, webhook("telegram")} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if err := servers.Add(l, says(name), name); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, servers)
	return servers
}

// serve has the servers serve until the test ends.
func serve(t *testing.T, servers *Servers) {
	var serving sync.WaitGroup
	serving.Go(func() { servers.Serve(func(err error) { t.Error(err) }) })
	t.Cleanup(func() {
		servers.Shutdown(t.Context())
		if err := servers.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
}

// ask returns the status and text of an answer to GET /path over a new connection.
func ask(t *testing.T, network, address, path string) (int, string) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		},
	}}
	req, err := http.NewRequestWithContext(t.Context(), "GET", "http://localhost/"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return resp.StatusCode, string(text)
}

// Whoever reaches a gateway that stands by reaches the one that answers, which knows who that is, and at which address.
func TestForward(t *testing.T) {
	s := newShared()
	dir := folder(t)
	answering(t, s)
	hook, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hook.Close()
	webhooks := map[string]string{"telegram": hook.Addr().String(), "telegram2": hook.Addr().String()}
	page, end := standBy(t, s, Config{DataDir: dir, Page: "127.0.0.1:0", Public: "http://b.example", Webhooks: webhooks})
	if status, text := ask(t, "tcp", page, "a"); status != http.StatusOK || !strings.HasPrefix(text, "page /a 127.0.0.1:") || !strings.HasSuffix(text, " "+page+" http://b.example") {
		t.Errorf("the page: %d, %q", status, text)
	}
	if status, text := ask(t, "unix", admin.Socket(dir), "b"); status != http.StatusOK || !strings.HasPrefix(text, "admin /b ") || !strings.HasSuffix(text, " "+page+" http://b.example") {
		t.Errorf("the admin socket: %d, %q", status, text)
	}
	if status, text := ask(t, "tcp", hook.Addr().String(), "c"); status != http.StatusOK || !strings.HasPrefix(text, "webhook telegram /c ") {
		t.Errorf("the webhook: %d, %q", status, text)
	}
	terminal, err := (&net.Dialer{}).DialContext(t.Context(), "unix", console.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	far := <-s.calls(Terminal)
	go func() { _, _ = far.Write([]byte("hello")) }()
	got := make([]byte, 5)
	if _, err := io.ReadFull(terminal, got); err != nil || string(got) != "hello" {
		t.Errorf("the terminal has %q, %v", got, err)
	}
	end() // another one has ended, and this one answers now
	if _, err := terminal.Read(got); err == nil {
		t.Error("a terminal stays connected")
	}
	if _, err := far.Read(got); err == nil {
		t.Error("the other end of a terminal stays connected")
	}
	if _, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", page); err == nil {
		t.Error("the page is still listened for")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left: %q, %v", left, err)
	}
}

// Who waits at a gateway that stands by is answered by it once it takes over.
func TestForwardWaiting(t *testing.T) {
	s := newShared()
	s.setDown(true)
	l := &log{}
	ctx, takeOver := context.WithCancel(t.Context())
	defer takeOver()
	c := Config{DataDir: folder(t), Page: "127.0.0.1:0"}
	left := make(chan Waiting, 1)
	go func() {
		f := Forwarder{Config: c, Log: slog.New(slog.NewTextHandler(l, nil))}
		left <- f.Run(ctx, s.dial, s)
	}()
	page := l.find(t, "page=")
	var asking sync.WaitGroup
	defer asking.Wait()
	for network, address := range map[string]string{"tcp": page, "unix": admin.Socket(c.DataDir)} {
		asking.Go(func() {
			if status, text := ask(t, network, address, "a"); status != http.StatusOK || text != "here" {
				t.Errorf("%s: %d, %q", network, status, text)
			}
		})
	}
	s.await(t, Page)
	s.await(t, Admin)
	takeOver()
	servers, err := NewServers(c, <-left, s, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{Page, Admin} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		says := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }
		if err := servers.Add(l, &http.Server{Handler: http.HandlerFunc(says)}, name); err != nil {
			t.Fatal(err)
		}
	}
	serve(t, servers)
}

// await waits until somebody has dialled under name in vain.
func (s *shared) await(t *testing.T, name string) {
	t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		s.mu.Lock()
		missed := s.missed[name]
		s.mu.Unlock()
		if missed > 0 {
			return
		}
	}
	t.Fatalf("nobody dials %s", name)
}

// If no gateway answers, whoever asks is told so, in words, and those who ask later are passed on.
func TestForwardRefused(t *testing.T) {
	s := newShared()
	dir := folder(t)
	answering(t, s)
	s.setDown(true)
	page, _ := standBy(t, s, Config{DataDir: dir, Page: "127.0.0.1:0"})
	for network, address := range map[string]string{"tcp": page, "unix": admin.Socket(dir)} {
		if status, text := ask(t, network, address, "api/status"); status != http.StatusServiceUnavailable || !strings.Contains(text, "no gateway answers at present") {
			t.Errorf("%s: %d, %q", network, status, text)
		}
	}
	terminal, err := (&net.Dialer{}).DialContext(t.Context(), "unix", console.Socket(dir))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := terminal.Read(make([]byte, 1)); err == nil {
		t.Error("a terminal is told something that is not for it")
	}
	s.setDown(false)
	if status, text := ask(t, "tcp", page, "a"); status != http.StatusOK {
		t.Errorf("%d, %q", status, text)
	}
}

// An address that another program uses does not keep a gateway from standing by, nor from passing on the rest.
func TestForwardWithoutPage(t *testing.T) {
	s := newShared()
	dir := folder(t)
	servers := answering(t, s)
	other, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	l := &log{}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	f := Forwarder{Config: Config{DataDir: dir, Page: other.Addr().String()}, Log: slog.New(slog.NewTextHandler(l, nil))}
	running.Go(func() { f.Run(ctx, s.dial, s) })
	defer running.Wait()
	defer cancel()
	l.find(t, "another program uses")
	if status, text := ask(t, "unix", admin.Socket(dir), "b"); status != http.StatusOK || !strings.HasPrefix(text, "admin /b ") {
		t.Errorf("the admin socket: %d, %q", status, text)
	}
	if all := await(t, servers, 1); all[0].Page != "" {
		t.Errorf("it has the page %q", all[0].Page)
	}
}

// await waits until n gateways stand by.
func await(t *testing.T, servers *Servers, n int) (all []web.Instance) {
	t.Helper()
	for late := time.Now().Add(time.Minute); time.Now().Before(late); time.Sleep(10 * time.Millisecond) {
		if all = servers.Instances()[1:]; len(all) == n {
			return all
		}
	}
	t.Fatalf("they stand by: %v", all)
	return nil
}

// The gateway that answers knows itself and which others stand by, from when they begin to until they end.
func TestStandbys(t *testing.T) {
	s := newShared()
	servers := answering(t, s)
	l, page, err := servers.ListenPage(t.Context(), Config{Page: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	all := servers.Instances()
	if self := all[0]; len(all) != 1 || self.State != "answers" || self.Page != page || self.Version != "1.2.4" || !strings.HasPrefix(self.Name, "process ") || time.Since(self.Since) > time.Minute {
		t.Errorf("%+v", all)
	}
	first, endFirst := standBy(t, s, Config{DataDir: folder(t), Page: "127.0.0.1:0"})
	if all := await(t, servers, 1); all[0].Page != first || all[0].Version != "1.2.3" || all[0].State != "stands by" || !strings.HasPrefix(all[0].Name, "process ") || time.Since(all[0].Since) > time.Minute {
		t.Errorf("%+v", all)
	}
	second, _ := standBy(t, s, Config{DataDir: folder(t), Page: "127.0.0.1:0"})
	if all := await(t, servers, 2); all[0].Page != first || all[1].Page != second {
		t.Errorf("%+v", all)
	}
	endFirst()
	if all := await(t, servers, 1); all[0].Page != second {
		t.Errorf("%+v", all)
	}
	// One that says nothing of itself, or something else, is not among them.
	for _, says := range []string{"hello", `{"name":"` + strings.Repeat("x", 2*maxStandby) + `"}`} {
		conn, err := s.dial(t.Context(), standby, store.Caller{})
		if err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = conn.Write([]byte(says)) }()
		if _, err := conn.Read(make([]byte, 1)); err == nil {
			t.Error("it is answered")
		}
	}
	await(t, servers, 1)
}

// With a store of one machine nobody stands by, and nothing is passed on, nor is it to a command.
func TestServersAlone(t *testing.T) {
	command, err := NewServers(Config{DataDir: folder(t)}, nil, newShared(), true)
	if err != nil {
		t.Fatal(err)
	}
	if all := command.Instances(); all != nil {
		t.Errorf("of a command there are %+v", all)
	}
	if l, err := command.Forwarded(Terminal); l != nil || err != nil {
		t.Errorf("of a command Forwarded = %v, %v", l, err)
	}
	servers, err := NewServers(Config{DataDir: folder(t)}, nil, mem.New(), false)
	if err != nil {
		t.Fatal(err)
	}
	if all := servers.Instances(); all != nil {
		t.Errorf("there are %+v", all)
	}
	if l, err := servers.Forwarded(Page); l != nil || err != nil {
		t.Errorf("Forwarded = %v, %v", l, err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := servers.Add(l, &http.Server{}, Page); err != nil {
		t.Fatal(err)
	}
	if err := servers.Close(); err != nil { // though it was never served
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// What a gateway that is taken over was about to say does not look complete.
func TestCutOff(t *testing.T) {
	s := newShared()
	page, end := standBy(t, s, Config{DataDir: folder(t), Page: "127.0.0.1:0"})
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", page)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	far := <-s.calls(Page)
	if _, err := far.Write([]byte("half of the ans")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 15)
	if _, err := io.ReadFull(conn, got); err != nil {
		t.Fatal(err)
	}
	end()
	if _, err := conn.Read(got); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("it ends with %v", err)
	}
}
