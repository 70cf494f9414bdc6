package signin_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
	"parley/tools/mcp/signin"
)

func readAll(resp *http.Response) string {
	raw, _ := io.ReadAll(resp.Body)
	return string(raw)
}

// A rig is a gateway as far as sign-ins need one.
type rig struct {
	t       *testing.T
	store   store.Store
	keyFile string
	secret  string
	home    *httptest.Server
	signIn  *signin.SignIn
	servers *mcp.Servers
	config  map[string]*mcp.Server
	stop    func()

	mu        sync.Mutex
	log       bytes.Buffer
	hidden    []string
	withdrawn []string // IDs of questions
	questions chan chat.Reply
	answers   chan string // "cancel" is the button
	sent      []chat.Reply
}

type lockedWriter struct{ r *rig }

func (w lockedWriter) Write(p []byte) (int, error) {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.r.log.Write(p)
}

// secrets are what is to be redacted.
type secrets struct{ r *rig }

func (s secrets) Add(all ...string) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.hidden = append(s.r.hidden, all...)
}

func (s secrets) Remove(...string) {}

func newRig(t *testing.T, p *mcptest.Provider) *rig {
	r := &rig{
		t:         t,
		store:     mem.New(),
		keyFile:   filepath.Join(t.TempDir(), "signin.key"),
		config:    map[string]*mcp.Server{"mail": server(p.URL + "/mcp")},
		questions: make(chan chat.Reply, 10),
		answers:   make(chan string, 10),
	}
	r.home = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.signIn.Pages().ServeHTTP(w, req)
	}))
	t.Cleanup(r.home.Close)
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func server(address string) *mcp.Server {
	return &mcp.Server{
		URL: address, EnabledTools: []string{"*"}, ToolTimeout: time.Minute, Enabled: true, For: []string{"everyone"},
	}
}

// start has the gateway run, on the same store as before.
func (r *rig) start() {
	log := slog.New(slog.NewTextHandler(lockedWriter{r}, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r.signIn = signin.New(signin.Config{
		Log:     log,
		Store:   r.store,
		KeyFile: r.keyFile,
		Secret:  func() string { return r.secret },
		Home:    func() string { return r.home.URL },
		Ask: func(ctx context.Context, q chat.Reply) (int, string, error) {
			r.questions <- q
			select {
			case a := <-r.answers:
				if a == "cancel" {
					return 0, a, nil
				}
				return -1, a, nil
			case <-ctx.Done():
				return 0, "", ctx.Err()
			}
		},
		Withdraw: func(_ context.Context, id string) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.withdrawn = append(r.withdrawn, id)
			return nil
		},
		Send: func(_ context.Context, m chat.Reply) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.sent = append(r.sent, m)
			return nil
		},
		Secrets: secrets{r},
	})
	r.servers = mcp.New(mcp.Config{Log: log, SignIn: r.signIn})
	r.signIn.Tell(r.servers)
	r.signIn.Start()
	r.servers.Use(r.config)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.servers.Run(ctx)
	}()
	r.stop = sync.OnceFunc(func() {
		stop()
		r.signIn.Close()
		<-done
	})
}

func (r *rig) restart() {
	r.stop()
	r.start()
}

func scopeOf(person string, group bool) tools.Scope {
	at := chat.Address{Channel: "telegram", Chat: person}
	if group {
		at.Chat = "-100"
	}
	return tools.Scope{
		Session: at.Session(), At: at, From: chat.Sender{ID: person, Role: chat.User}, Group: group, Turn: "turn",
	}
}

// tool returns a tool that person is offered, nil if there is none of that name.
func (r *rig) tool(s tools.Scope, name string) *tools.Tool {
	r.t.Helper()
	all, err := r.servers.Tools(r.t.Context(), s)
	if err != nil {
		r.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(t tools.Tool) bool { return t.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// await waits until person is offered a tool.
func (r *rig) await(s tools.Scope, name string) *tools.Tool {
	r.t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
		if t := r.tool(s, name); t != nil {
			return t
		}
	}
	r.t.Fatalf("%s is not offered; log:\n%s", name, r.logged())
	return nil
}

// awaitConnected waits until a server is connected.
func (r *rig) awaitConnected() {
	r.t.Helper()
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(5 * time.Millisecond) {
		isConnected := func(s mcp.State) bool { return s.Phase == mcp.Connected }
		if slices.ContainsFunc(r.servers.States(), isConnected) {
			return
		}
	}
	r.t.Fatalf("nothing is connected; log:\n%s", r.logged())
}

func (r *rig) logged() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

// run calls a tool for person.
func (r *rig) run(s tools.Scope, t *tools.Tool) tools.Result {
	r.t.Helper()
	result, err := t.Run(r.t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: t.Name}, Scope: s, Input: map[string]any{}})
	if err != nil {
		return tools.Result{Text: err.Error(), Failed: true}
	}
	return result
}

// start runs a tool beside the test.
func (r *rig) startCall(s tools.Scope, t *tools.Tool) chan tools.Result {
	done := make(chan tools.Result, 1)
	go func() { done <- r.run(s, t) }()
	return done
}

var linkOf = regexp.MustCompile(`http://\S+/oauth/start/\S+`)

// link returns the link of the next question.
func (r *rig) link() string {
	r.t.Helper()
	select {
	case q := <-r.questions:
		return linkOf.FindString(q.Text)
	case <-time.After(time.Minute):
		r.t.Fatalf("nobody is asked; log:\n%s", r.logged())
		return ""
	}
}

// signIn has person sign in, in the browser as user.
func (r *rig) signInAs(p *mcptest.Provider, person, user string) {
	r.t.Helper()
	s := scopeOf(person, false)
	done := r.startCall(s, r.await(s, "mcp_mail_sign_in"))
	p.User = user
	r.answers <- mcptest.NewBrowser(r.t, nil).SignIn(r.link())
	if result := <-done; result.Failed {
		r.t.Fatalf("%s\n%s", result.Text, r.logged())
	}
}

// TestSignIn: point 6. Who has signed in uses the server with their own account, after a restart too; a
// group does not; and nothing that is secret is anywhere but encrypted in the store.
func TestSignIn(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	r.signInAs(p, "1", "ann")
	r.signInAs(p, "2", "bob")
	for range 2 {
		for person, user := range map[string]string{"1": "ann", "2": "bob"} {
			s := scopeOf(person, false)
			if got := r.run(s, r.await(s, "mcp_mail_whoami")); !strings.Contains(got.Text, "you are "+user) {
				t.Errorf("person %s: %s", person, got.Text)
			}
			if r.tool(s, "mcp_mail_sign_in") != nil {
				t.Error("who is signed in is offered to sign in")
			}
		}
		r.restart()
	}
	group := scopeOf("1", true)
	if r.tool(group, "mcp_mail_whoami") != nil {
		t.Error("a group uses somebody's account")
	}
	if got := r.run(group, r.await(group, "mcp_mail_sign_in")); !strings.Contains(got.Text, "private chat") || !got.Failed {
		t.Errorf("in a group: %+v", got)
	}
	r.stop()
	text := r.logged()
	for key, err := range r.store.Bucket(store.BucketMCPSignIns).Keys(t.Context(), "") {
		raw, _, err2 := r.store.Bucket(store.BucketMCPSignIns).Get(t.Context(), key)
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		text += string(raw)
	}
	for _, secret := range p.Issued {
		if strings.Contains(text, secret) {
			t.Errorf("the log or the store has %s", secret)
		}
		if !strings.HasPrefix(secret, "code-") && !slices.Contains(r.hidden, secret) {
			t.Errorf("%s is not redacted", secret)
		}
	}
	if info, err := os.Stat(r.keyFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// A call during which the sign-in turns out to have ended goes on once the person has signed in again.
// Package mcp has a test that its time limit waits.
func TestCallGoesOn(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	r.signInAs(p, "1", "ann")
	s := scopeOf("1", false)
	tool := r.await(s, "mcp_mail_whoami")
	p.EndAll(true)
	done := r.startCall(s, tool)
	link := r.link()
	r.answers <- mcptest.NewBrowser(t, nil).SignIn(link)
	if got := <-done; got.Failed || !strings.Contains(got.Text, "you are ann") {
		t.Errorf("%s\n%s", got.Text, r.logged())
	}
}

// Tokens are renewed before they expire, and when the server refuses them; turns that need it at once
// renew them once. A refresh token is used once.
func TestRenewal(t *testing.T) {
	p := mcptest.NewProvider(t)
	p.Lifetime = 30 * time.Second // less than the margin: each use renews
	r := newRig(t, p)
	r.signInAs(p, "1", "ann")
	s := scopeOf("1", false)
	tool := r.await(s, "mcp_mail_whoami")
	p.Mu.Lock()
	p.Lifetime = time.Hour
	p.Mu.Unlock()
	if got := r.run(s, tool); got.Failed {
		t.Fatal(got.Text)
	}
	p.EndAll(false) // the server forgets access tokens: refused, then renewed
	p.Mu.Lock()
	before := p.Renewals
	p.Mu.Unlock()
	var all []chan tools.Result
	for range 8 {
		all = append(all, r.startCall(s, tool))
	}
	for _, done := range all {
		if got := <-done; got.Failed {
			t.Error(got.Text)
		}
	}
	if n := p.Renewals - before; n != 1 {
		t.Errorf("%d renewals at once", n)
	}
	r.restart()
	if got := r.run(s, r.await(s, "mcp_mail_whoami")); got.Failed {
		t.Errorf("after a restart: %s", got.Text)
	}
}

// A sign-in that the other side has ended is asked for again, after a restart too: the tools do not
// vanish without a word.
func TestEndedSignInIsAskedFor(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	r.signInAs(p, "1", "ann")
	p.EndAll(true)
	r.restart()
	r.signInAs(p, "1", "ann")
	s := scopeOf("1", false)
	if got := r.run(s, r.await(s, "mcp_mail_whoami")); got.Failed {
		t.Error(got.Text)
	}
}

// Without the key, or with another secret in the config, nobody's sign-in can be read: they are asked.
func TestOtherKey(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	r.signInAs(p, "1", "ann")
	r.secret = "something else"
	r.restart()
	r.signInAs(p, "1", "ann")
	if err := os.Remove(r.keyFile); err != nil {
		t.Fatal(err)
	}
	r.restart()
	r.signInAs(p, "1", "ann")
}

// A link that was passed on connects nobody to the account of somebody else: what the last page shows
// has to be sent in the chat of the person whom the link is for; the browser that began must end; and
// neither link, state nor code is good twice.
func TestLinkOfSomebodyElse(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	s := scopeOf("1", false)
	done := r.startCall(s, r.await(s, "mcp_mail_sign_in"))
	link := r.link()
	victim := mcptest.NewBrowser(t, nil)
	code := victim.SignIn(link)

	_, page, _ := victim.Open(link)
	if !strings.Contains(page, "telegram:1") {
		t.Errorf("the page does not say whom the link is for:\n%s", page)
	}
	if status, _, _ := mcptest.NewBrowser(t, nil).Open(strings.Replace(link, "/start/", "/go/", 1)); status != http.StatusForbidden {
		t.Errorf("another browser goes on: %d", status)
	}
	for range 3 { // the attacker guesses
		guess := "000000"
		if strings.ReplaceAll(code, " ", "") == guess {
			guess = "000001"
		}
		r.answers <- guess
	}
	if got := <-done; !got.Failed {
		t.Errorf("signed in: %s", got.Text)
	}
	if r.tool(s, "mcp_mail_whoami") != nil {
		t.Error("the attacker uses the account of the victim")
	}
	if len(p.Revoked) != 1 {
		t.Errorf("%d tokens revoked that nobody confirmed", len(p.Revoked))
	}
	if status, _, _ := victim.Open(link); status != http.StatusBadRequest {
		t.Errorf("the link is good for more: %d", status)
	}
}

// What comes back to the callback counts once, with the state and in the browser of its attempt, and
// leads nowhere else.
func TestCallback(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	s := scopeOf("1", false)
	done := r.startCall(s, r.await(s, "mcp_mail_sign_in"))
	link := r.link()
	b := mcptest.NewBrowser(t, nil)
	var back string
	b.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if req.URL.Path == "/oauth/callback" {
			back = req.URL.String()
			return http.ErrUseLastResponse
		}
		return nil
	}
	b.SignIn(link)
	for name, address := range map[string]string{
		"no state":      r.home.URL + "/oauth/callback?code=x",
		"other state":   r.home.URL + "/oauth/callback?code=x&state=y",
		"open redirect": r.home.URL + "/oauth/go/x?to=https://example.com",
	} {
		if status, _, at := b.Open(address); status != http.StatusBadRequest || !strings.HasPrefix(at, r.home.URL) {
			t.Errorf("%s: %d at %s", name, status, at)
		}
	}
	if status, _, _ := mcptest.NewBrowser(t, nil).Open(back); status != http.StatusBadRequest {
		t.Errorf("another browser ends what this one began: %d", status)
	}
	b.CheckRedirect = nil
	_, page, _ := b.Open(back)
	code := mcptest.Digits.FindString(page)
	if status, _, _ := b.Open(back); status != http.StatusBadRequest {
		t.Errorf("the callback counts twice: %d", status)
	}
	r.answers <- code
	if got := <-done; got.Failed {
		t.Error(got.Text)
	}
}

// R-S22: nobody is sent to a host that looks like another one.
func TestHostThatLooksLikeAnother(t *testing.T) {
	for _, address := range []string{"https://\u0430ccounts.example.com/authorize", "https://accounts.example.com@127.0.0.1/authorize"} {
		p := mcptest.NewProvider(t)
		p.Authorize = address
		r := newRig(t, p)
		s := scopeOf("1", false)
		select {
		case got := <-r.startCall(s, r.await(s, "mcp_mail_sign_in")):
			if !got.Failed || !strings.Contains(got.Text, "would look like another one") {
				t.Errorf("%s: %s", address, got.Text)
			}
		case <-r.questions:
			t.Errorf("%s: the person was sent there", address)
			r.answers <- "cancel"
		}
	}
}

// Who does not want to sign in, here or there, is not asked again in the same call.
func TestRefusal(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	s := scopeOf("1", false)
	done := r.startCall(s, r.await(s, "mcp_mail_sign_in"))
	r.link()
	r.answers <- "cancel"
	if got := <-done; got.Code != tools.CodeRefused {
		t.Errorf("%+v", got)
	}
	p.Deny = true
	done = r.startCall(s, r.await(s, "mcp_mail_sign_in"))
	mcptest.NewBrowser(t, nil).SignIn(r.link())
	if got := <-done; got.Code != tools.CodeRefused {
		t.Errorf("%+v", got)
	}
}

// Clients are registered in this order: by the config, by the client-id metadata document, dynamically.
func TestRegistration(t *testing.T) {
	for _, name := range []string{"config", "document"} {
		t.Run(name, func(t *testing.T) {
			p := mcptest.NewProvider(t)
			p.NoRegistration = true
			r := newRig(t, p)
			r.stop()
			r.home.Close()
			r.home = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
				r.signIn.Pages().ServeHTTP(w, req)
			}))
			t.Cleanup(r.home.Close)
			p.Fetch = r.home.Client()
			p.Documents = name == "document"
			if name == "config" {
				r.config["mail"].Auth = &mcp.Auth{ClientID: "parley-of-ann"}
				p.Clients["parley-of-ann"] = r.home.URL + "/oauth/callback"
			}
			r.start()
			s := scopeOf("1", false)
			done := r.startCall(s, r.await(s, "mcp_mail_sign_in"))
			link := strings.Replace((<-r.questions).Text, "http://", "", 1)
			link = regexp.MustCompile(`https://\S+/oauth/start/\S+`).FindString(link)
			r.answers <- mcptest.NewBrowser(t, r.home.Client()).SignIn(link)
			if got := <-done; got.Failed {
				t.Errorf("%s\n%s", got.Text, r.logged())
			}
		})
	}
}

// An owner can sign in by commands; where browsers do not reach Parley, with the address at which the
// browser ended. Signing out revokes and forgets.
func TestLoginAndLogout(t *testing.T) {
	p := mcptest.NewProvider(t)
	r := newRig(t, p)
	owner := scopeOf("1", false)
	owner.From.Role = chat.Owner
	service, ok := r.servers.Service("mail")
	if !ok {
		t.Fatal("there is no such service")
	}
	for _, paste := range []bool{false, true} {
		begun, err := r.signIn.Login(t.Context(), service, chat.TheOwner)
		if err != nil {
			t.Fatal(err)
		}
		b := mcptest.NewBrowser(t, nil)
		var answer string
		if paste {
			b.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
				if req.URL.Path == "/oauth/callback" {
					answer = req.URL.String()
					return http.ErrUseLastResponse
				}
				return nil
			}
			b.SignIn(begun.Link)
		} else {
			answer = b.SignIn(begun.Link)
			if err := r.signIn.Finish(t.Context(), begun.ID, "12"); !errors.Is(err, signin.ErrWrongCode) {
				t.Error(err)
			}
		}
		if err := r.signIn.Finish(t.Context(), begun.ID, answer); err != nil {
			t.Fatal(err)
		}
		tool := r.await(owner, "mcp_mail_whoami")
		r.awaitConnected()
		if got := r.run(owner, tool); got.Failed {
			t.Error(got.Text)
		}
		was, err := r.signIn.Logout(t.Context(), service, chat.TheOwner)
		if !was || err != nil || len(p.Refresh) > 0 {
			t.Errorf("signed out: %v, %v; %d refresh tokens are valid", was, err, len(p.Refresh))
		}
		if r.tool(owner, "mcp_mail_sign_in") == nil {
			t.Error("nobody is offered to sign in again")
		}
	}
}

// Tokens go to the address that they were made for, whatever the config calls by its name later.
func TestOtherAddress(t *testing.T) {
	p, other := mcptest.NewProvider(t), mcptest.NewProvider(t)
	r := newRig(t, p)
	r.signInAs(p, "1", "ann")
	r.config = map[string]*mcp.Server{"mail": server(other.URL + "/mcp")}
	r.restart()
	r.await(scopeOf("1", false), "mcp_mail_sign_in")
	r.stop()
	for _, header := range other.Seen {
		if header != "" {
			t.Errorf("another server got %s", header)
		}
	}
}

// R-S22: what a server says about where to sign in leads Parley to no private network, neither by
// its metadata nor by redirects, and no token or code leaves for it.
func TestMetadataOfPrivateNetworks(t *testing.T) {
	for name, keys := range map[string][]string{
		"authorization server": {"authorization_servers"},
		"registration":         {"registration_endpoint"},
		"tokens":               {"token_endpoint"},
		"redirect":             nil,
	} {
		t.Run(name, func(t *testing.T) {
			var reached atomic.Int32
			inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				reached.Add(1)
				w.WriteHeader(http.StatusNotFound)
			}))
			t.Cleanup(inside.Close)
			p := mcptest.NewProvider(t)
			p.Change = func(metadata map[string]any) {
				for _, key := range keys {
					switch metadata[key].(type) {
					case []string:
						metadata[key] = []string{inside.URL}
					case string:
						metadata[key] = inside.URL + "/x"
					}
				}
			}
			if keys == nil {
				handler := p.Config.Handler
				p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if strings.HasPrefix(r.URL.Path, "/.well-known/") {
						http.Redirect(w, r, inside.URL+r.URL.Path, http.StatusFound)
						return
					}
					handler.ServeHTTP(w, r)
				})
			}
			r := newRig(t, p)
			s := scopeOf("1", false)
			done := r.startCall(s, r.await(s, "mcp_mail_sign_in"))
			if name == "tokens" { // known only after the browser has brought the code
				mcptest.NewBrowser(t, nil).SignIn(r.link())
			}
			select {
			case got := <-done:
				if !got.Failed || !strings.Contains(got.Text+r.logged(), "private network") {
					t.Errorf("%s\n%s", got.Text, r.logged())
				}
			case q := <-r.questions:
				t.Errorf("a person is asked: %s", q.Text)
			}
			if n := reached.Load(); n > 0 {
				t.Errorf("reached %d times", n)
			}
		})
	}
}

// An authorization server in a private network that is not where the MCP server is can be signed in at if the config
// names it, and not otherwise.
func TestNamedAuthorizationServer(t *testing.T) {
	for _, named := range []bool{false, true} {
		p := mcptest.NewProvider(t)
		elsewhere := httptest.NewServer(p.Config.Handler)
		t.Cleanup(elsewhere.Close)
		p.Issuer = elsewhere.URL
		r := newRig(t, p)
		r.stop()
		entry := server(p.URL + "/mcp")
		if named {
			entry.Auth = &mcp.Auth{Server: elsewhere.URL}
		}
		r.config = map[string]*mcp.Server{"mail": entry}
		r.start()
		if !named {
			s := scopeOf("1", false)
			got := r.run(s, r.await(s, "mcp_mail_sign_in"))
			if !got.Failed || !strings.Contains(got.Text+r.logged(), "auth.server") {
				t.Errorf("%s\n%s", got.Text, r.logged())
			}
			continue
		}
		r.signInAs(p, "1", "ann")
	}
}
