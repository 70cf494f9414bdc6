// Package signin signs people in to MCP servers, by OAuth, and keeps their sign-ins.
//
// A sign-in belongs to one person and one server. What is kept of it is encrypted with a key that is
// not in the store, is renewed before it expires, and outlives restarts. A server that answers 401
// has the person asked in their private chat: they get a link, sign in with their browser, and send
// the code that the last page shows. That code proves that whoever signed in is whoever asked: a link
// that was passed on connects nobody to the account of somebody else.
package signin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/tools/mcp"
)

// A Config is what sign-ins are made with. Functions may be called at any time after New, but not
// before the gateway runs.
type Config struct {
	Log   *slog.Logger
	Store store.Store
	Texts *texts.SignIn

	// KeyFile has the key that sign-ins are encrypted with. It is made when it is first needed. It
	// must not be in the store, nor in backups.
	KeyFile string
	// Secret returns what the config adds to that key; "" is nothing.
	Secret func() string

	// Home returns the origin at which browsers reach Parley, such as "https://chat.example.com".
	Home func() string

	// Ask asks a person a question with choices, and waits for the answer: the index of a choice, or
	// -1 and a text of their own. Withdraw takes it back.
	Ask      func(ctx context.Context, r chat.Reply) (index int, text string, err error)
	Withdraw func(ctx context.Context, id string) error
	Send     chat.Send

	// Secrets keeps secrets out of logs, errors and whatever else people and models read.
	Secrets interface {
		Add(secrets ...string)
		Remove(secrets ...string)
	}
	// Audit receives events for the audit log (R-S27).
	Audit func(kind, who, what string)
}

// A SignIn implements [mcp.SignIn].
type SignIn struct {
	config Config
	ctx    context.Context // of sign-ins that wait for their person; ended by Close
	cancel context.CancelCauseFunc
	work   sync.WaitGroup

	withdrawOld func() // once

	mu       sync.Mutex
	told     Watcher // set by Tell
	accounts map[key]*account
	required map[string]challenge // servers that have asked for a sign-in, by name
	flows    map[string]*flow     // by id
}

var _ mcp.SignIn = (*SignIn)(nil)

// A key identifies a sign-in.
type key struct {
	server string
	who    chat.Person
}

// New returns a SignIn.
func New(c Config) *SignIn {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Texts == nil {
		c.Texts = &texts.English().Tools.SignIn
	}
	s := &SignIn{
		config:   c,
		accounts: map[key]*account{},
		required: map[string]challenge{},
		flows:    map[string]*flow{},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	s.withdrawOld = sync.OnceFunc(s.withdrawOldQuestions)
	return s
}

// A Watcher is told who has signed in to a server, before anybody else is told, and who has signed out.
type Watcher interface {
	SignedIn(ctx context.Context, server string, who chat.Person)
	SignedOut(server string, who chat.Person)
}

// Tell has w be told.
func (s *SignIn) Tell(w Watcher) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = w
}

// watcher returns who is to be told.
func (s *SignIn) watcher() Watcher {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told == nil {
		return nobody{}
	}
	return s.told
}

type nobody struct{}

func (nobody) SignedIn(context.Context, string, chat.Person) {}
func (nobody) SignedOut(string, chat.Person)                 {}

// Start takes back the questions that were open when the gateway ended.
func (s *SignIn) Start() { s.withdrawOld() }

// Close ends the sign-ins that wait for their person, and waits until nothing is written any more.
func (s *SignIn) Close() {
	s.cancel(errors.New("the gateway is shutting down"))
	s.work.Wait()
}

// Personal implements [mcp.SignIn]. A server is personal if its entry says so by "auth", or if it has
// answered that it wants to know its users. One with a header of the config that does so is not.
func (s *SignIn) Personal(service mcp.Service) bool {
	if !canSignIn(service.Entry) {
		return false
	}
	if service.Entry.Auth != nil {
		return true
	}
	_, required := s.challengeOf(service.Name, service.Entry.URL)
	return required
}

// canSignIn reports whether requests to a server can be authorized by OAuth.
func canSignIn(server mcp.Server) bool {
	for name := range server.Headers {
		if strings.EqualFold(name, "Authorization") {
			return false
		}
	}
	return server.IsStreamable()
}

// Handler implements [mcp.SignIn].
func (s *SignIn) Handler(service mcp.Service, who chat.Person) auth.OAuthHandler {
	if !canSignIn(service.Entry) {
		return nil
	}
	return &handler{signIn: s, key: key{service.Name, who}, target: newTarget(service)}
}

// A target is a server that one signs in to. Its client may be used with authorization servers.
type target mcp.Service

func newTarget(s mcp.Service) target {
	s.Client = safeClient(s.Client)
	return target(s)
}

// A handler authorizes the requests of one person to one server.
type handler struct {
	signIn *SignIn
	key    key
	target target
}

// errUnknownPerson ends a connection without a person: the next are made for one each.
var errUnknownPerson = fmt.Errorf("the server wants to know its users: %w", mcp.ErrSignInNeeded)

// Authorize implements [auth.OAuthHandler]. It is called when a server refuses a request. The sign-in
// is renewed if that is possible; otherwise, the person of the call is asked.
func (h *handler) Authorize(ctx context.Context, r *http.Request, resp *http.Response) error {
	c := challengeFrom(h.target.Entry.URL, resp)
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusForbidden && !c.wantsScope() {
		return nil // no sign-in helps: the same request is answered the same
	}
	if err := h.signIn.require(ctx, h.key.server, c); err != nil {
		return err
	}
	if h.key.who == "" {
		return errUnknownPerson
	}
	a := h.signIn.account(h.key)
	if resp.StatusCode == http.StatusUnauthorized {
		used, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if renewed, err := a.replace(ctx, h.target, used); renewed || err != nil {
			return err
		}
	}
	call, ok := mcp.CallOf(ctx)
	switch {
	case !ok:
		return mcp.ErrSignInNeeded
	case call.Group || call.Whose() != h.key.who:
		return errors.New(h.signIn.config.Texts.InPrivate.With(h.key.server))
	}
	f, err := h.signIn.begin(h.key, h.target, c)
	if err != nil {
		return err
	}
	f.askAt(call.Scope)
	return f.wait(ctx)
}

// account returns the sign-in of k.
func (s *SignIn) account(k key) *account {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[k]
	if a == nil {
		a = &account{signIn: s, key: k, held: make(chan struct{}, 1)}
		s.accounts[k] = a
	}
	return a
}

// describe names who for owners who read the audit log.
func (k key) describe() string { return fmt.Sprintf("%s as %s", k.server, k.who) }
