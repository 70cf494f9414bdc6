// Package web is the HTTP server: sign-in, the owner's pages and the same as
// JSON, health and metrics. The chat page and the OpenAI-compatible endpoint are
// mounted.
//
// A request passes three checks. The guard judges host, origin and headers, and
// looks at no credential (R-S1, R-S2, R-S5). Then access identifies the visitor
// (R-S3). Then the route says who may use it.
package web

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/response"
	"parley/store"
)

// A Config is what a Server is made of.
type Config struct {
	Listen    string // the address as it is bound, such as "127.0.0.1:18790"
	PublicURL string // where people find the page, such as "https://chat.example.com"; empty: at Listen
	Token     string // of the administrator; empty: there is none
	Version   string
	Zone      *time.Location // of times that people are shown; nil: the machine's
	Store     store.Store
	Gateway   Gateway
	Log       *slog.Logger

	// Chat serves all other paths to signed-in people: who is the owner or was
	// invited. It limits its bodies itself. nil: there is none.
	Chat func(w http.ResponseWriter, r *http.Request, who chat.Sender)
	// App serves /app/ to everybody: what makes the chat page an app, such as its icons.
	App http.Handler
	// API serves /v1/ to holders of a key, which is issued to a person and a
	// prefix of sessions. It limits its bodies itself.
	API func(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string)
	// MCP serves /mcp to holders of a key, and to the owner on the local socket. It limits its bodies itself.
	MCP     func(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string)
	Metrics http.Handler
	// SignIn serves /oauth/ to everybody: people sign in to services that the agent uses for them. nil:
	// there is none.
	SignIn http.Handler
	Audit  func(kind, who, what string) // receives events for the audit log (R-S27)
	// Blocked reports whether an owner blocked the person of that name. nil: nobody is.
	Blocked func(ctx context.Context, name string) (bool, error)
}

// A Server serves sign-in, the owner's pages and what is mounted over HTTP.
type Server struct {
	cfg    Config
	names  names
	access *access
	admin  *admin
}

// New returns a Server. The error says what is wrong with PublicURL or Listen.
func New(c Config) (*Server, error) {
	n, err := newNames(c.Listen, c.PublicURL)
	if err != nil {
		return nil, err
	}
	if c.Zone == nil {
		c.Zone = time.Local
	}
	s := &Server{cfg: c, names: n}
	s.access = &access{
		adminSecret: c.Token,
		names:       n,
		people:      newPeople(c.Store, c.Blocked),
		guesses:     newGuessLimit(),
		audit:       c.Audit,
	}
	s.admin = &admin{cfg: &s.cfg, access: s.access, pages: pages{c.Zone}, began: time.Now()}
	return s, nil
}

// Handler serves requests from the network.
func (s *Server) Handler() http.Handler { return s.guard(s.mux(s.access.identify)) }

// Local serves the owner, without a credential. It is for a socket that only the
// OS user who runs the gateway can reach.
func (s *Server) Local() http.Handler {
	return s.mux(func(http.ResponseWriter, *http.Request) (visitor, error) {
		return visitor{Sender: sender(ownerName), local: true}, nil
	})
}

// HTTP returns the server to serve h with. Headers must arrive within ten
// seconds; streams may last as long as they like. A panic fails one request.
func (s *Server) HTTP(h http.Handler) *http.Server {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    32 << 10,
		ErrorLog:          slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelWarn),
	}
	server.RegisterOnShutdown(s.cfg.Gateway.Dashboard.Streams.Close)
	return server
}

// Link returns a link that signs person in once, within a day. The error is
// store.ErrNotFound unless person is the owner or was invited.
func (s *Server) Link(ctx context.Context, person string) (string, error) {
	return s.access.link(ctx, person)
}

// Invited returns when each person was invited who may sign in beside the owner, by name.
func (s *Server) Invited(ctx context.Context) (map[string]time.Time, error) {
	return s.access.people.since(ctx)
}

// May reports whether the person of that name may sign in at present.
func (s *Server) May(ctx context.Context, name string) (bool, error) {
	err := s.access.people.may(ctx, name)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// signInKey is the context key of the ID of the login by which a request was let in.
type signInKey struct{}

// SignIn returns the name of the sign-in by which the request of ctx was let in; "" if it was by anything else. It is
// not secret.
func (s *Server) SignIn(ctx context.Context) string {
	id, _ := ctx.Value(signInKey{}).(string)
	return id
}

// Lasts reports whether a sign-in, of that name, still lets person in: it has neither ended nor expired, and they
// may sign in.
func (s *Server) Lasts(ctx context.Context, person, signIn string) (bool, error) {
	v, _, err := s.access.people.valid(ctx, logins, signIn)
	if isMissing(err) {
		return false, nil
	}
	return err == nil && v.Person == person, err
}

// Disconnect ends the requests and streams of the person of that name, who may not sign in any more.
func (s *Server) Disconnect(name string) {
	s.access.open.Range(func(v, stop any) bool {
		if who := v.(*visitor); who.ID == name && who.Role != chat.Owner {
			stop.(context.CancelFunc)()
		}
		return true
	})
}

// Home returns the address that links begin with.
func (s *Server) Home() string { return s.names.home }

// A permission says who may use a route.
type permission int

const (
	anyone permission = iota
	person            // somebody who is signed in
	owner
	keyed         // somebody with an API key, or the owner on the local socket
	administrator // an owner; others are told that they may not (B-068)
)

// A handler answers a visitor who may use its route. writeError answers with the
// error it returns.
type handler func(http.ResponseWriter, *http.Request, visitor) error

// A route is a pattern of http.ServeMux with who may use it.
type route struct {
	pattern string
	may     permission
	handle  handler
}

// routes returns all routes.
func (s *Server) routes() []route {
	own := []route{
		{"GET /healthz", anyone, s.health},
		{"GET /readyz", anyone, s.ready},
		{"GET /signin", anyone, s.serveSignIn},
		{"POST /signin", anyone, s.access.signIn},
		{"POST /signout", person, s.access.signOut},
		{"GET /assets/signin.js", anyone, asset},
		{"GET " + response.Stylesheet, anyone, asset},
		{"GET " + response.Theme, anyone, asset},
		{"GET /favicon.ico", anyone, favicon},
		{"GET /assets/owner.js", owner, asset},
		{"GET /assets/waiting.js", owner, asset},
		{"GET /metrics", owner, s.metrics},
		{"/v1/", keyed, s.models},
		{mcpPath, keyed, s.mcp},
		{"/", person, s.chat},
	}
	if s.cfg.SignIn != nil {
		own = append(own, route{"GET /oauth/", anyone, s.serviceSignIn})
	}
	if s.cfg.App != nil {
		own = append(own, route{"GET " + appPath, anyone, s.app})
	}
	return slices.Concat(own, s.admin.views(), s.admin.actions(), s.admin.others())
}

// Patterns returns the patterns of all routes, as http.ServeMux has them.
func (s *Server) Patterns() (all []string) {
	for _, rt := range s.routes() {
		all = append(all, rt.pattern)
	}
	return all
}

// mux serves all routes to visitors whom identify knows. It is made for the first of them: a start of the
// gateway does not wait for it.
func (s *Server) mux(identify identifier) http.Handler {
	made := sync.OnceValue(func() http.Handler {
		mux := http.NewServeMux()
		for _, rt := range s.routes() {
			mux.HandleFunc(rt.pattern, func(w http.ResponseWriter, r *http.Request) {
				if err := s.serve(w, r, rt, identify); err != nil {
					s.writeError(w, r, err)
				}
			})
		}
		return mux
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { made().ServeHTTP(w, r) })
}

// An identifier returns who sent a request. The error may be a problem.
type identifier func(http.ResponseWriter, *http.Request) (visitor, error)

// serve answers a request for rt. A visitor who is let in has no deadline, but
// the request is cancelled when the pass by which they came ends.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, rt route, identify identifier) error {
	v, err := rt.admit(w, r, identify)
	if err != nil {
		return err
	}
	if rt.may == anyone {
		return rt.handle(w, r, v)
	}
	setDeadline(w, time.Time{})
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	s.access.open.Store(&v, stop)
	defer s.access.open.Delete(&v)
	if _, err := rt.admit(w, r, identify); err != nil {
		return err // the pass ended before open held the request
	}
	if v.pass.Kind == logins {
		ctx = context.WithValue(ctx, signInKey{}, v.pass.ID)
	}
	return rt.handle(w, r.WithContext(ctx), v)
}

// admit returns who sent r, or an error unless they may use the route.
func (rt route) admit(w http.ResponseWriter, r *http.Request, identify identifier) (visitor, error) {
	v, err := identify(w, r)
	if err != nil {
		return visitor{}, err
	}
	return v, rt.check(v)
}

// check returns a problem unless v may use the route. A signed-in visitor who may
// not is told that there is no such page, and a visitor who is not signed in is
// asked to sign in whether or not there is one.
func (rt route) check(v visitor) error {
	switch {
	case rt.may == anyone:
		return nil
	case rt.may == keyed && !v.key() && !v.local:
		return needsKey
	case v.Role == chat.Unknown:
		return response.Problem{Status: http.StatusUnauthorized, Text: "sign in first"}
	case rt.may == administrator && (v.key() || v.Role != chat.Owner):
		return response.Problem{Status: http.StatusForbidden, Text: "only owners may do that"}
	case rt.may != keyed && v.key(), rt.may == owner && v.Role != chat.Owner:
		return response.Problem{Status: http.StatusNotFound, Text: "there is no such page"}
	}
	return nil
}

// health reports that the process is alive.
func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ visitor) error {
	response.JSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// ready reports whether the gateway is ready, and to signed-in people why not.
func (s *Server) ready(w http.ResponseWriter, r *http.Request, v visitor) error {
	why := s.cfg.Gateway.Reasons(r.Context())
	answer := map[string]any{"status": "ready"}
	status := http.StatusOK
	if len(why) > 0 {
		answer["status"] = "not ready"
		status = http.StatusServiceUnavailable
		if v.Role != chat.Unknown {
			answer["reasons"] = why
		}
	}
	response.JSON(w, status, answer)
	return nil
}

func (s *Server) serveSignIn(w http.ResponseWriter, _ *http.Request, _ visitor) error {
	return response.Page(w, http.StatusOK, signInPage(s.cfg.Token != ""))
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request, _ visitor) error {
	s.cfg.Metrics.ServeHTTP(w, r)
	return nil
}

// serviceSignIn serves the pages by which people sign in to services.
func (s *Server) serviceSignIn(w http.ResponseWriter, r *http.Request, _ visitor) error {
	s.cfg.SignIn.ServeHTTP(w, r)
	return nil
}

// appPath is where the files are that make the chat page an app.
const appPath = "/app/"

func (s *Server) app(w http.ResponseWriter, r *http.Request, _ visitor) error {
	s.cfg.App.ServeHTTP(w, r)
	return nil
}

func (s *Server) models(w http.ResponseWriter, r *http.Request, v visitor) error {
	s.cfg.API(w, r, v.Sender, v.pass.Prefix)
	return nil
}

func (s *Server) mcp(w http.ResponseWriter, r *http.Request, v visitor) error {
	s.cfg.MCP(w, r, v.Sender, v.pass.Prefix)
	return nil
}

// chat serves the chat. Without one, the start page is the owner's.
func (s *Server) chat(w http.ResponseWriter, r *http.Request, v visitor) error {
	switch {
	case s.cfg.Chat != nil:
		s.cfg.Chat(w, r, v.Sender)
	case r.URL.Path == "/":
		http.Redirect(w, r, "/owner", http.StatusSeeOther)
	default:
		return store.ErrNotFound
	}
	return nil
}
