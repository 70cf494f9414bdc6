// Package web is the HTTP face of the house: it lets people in and nobody else,
// shows the owner what goes on, and says whether the house is well. What people
// do once they are in, the chat page and the models' API, is mounted.
//
// A request passes the guard (R-S1, R-S2, R-S5), which looks at no credential;
// then the door, which asks who it is (R-S3); then its route, which says who may.
package web

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

// A Config is what a Server is made of. Of the functions any may be nil: what
// it would serve is not there.
type Config struct {
	Listen    string // the address as it is bound, such as "127.0.0.1:18790"
	PublicURL string // where people find the page, such as "https://chat.example.com"; empty: at Listen
	Token     string // of the administrator; empty: there is none. See Posture
	Version   string
	Store     store.Store
	House     House
	Log       *slog.Logger

	// Chat serves all that has no route here to people who are signed in: who is
	// the owner or somebody invited. It limits its bodies itself.
	Chat func(w http.ResponseWriter, r *http.Request, who chat.Sender)
	// API serves /v1/ to holders of a key, which is made for a person and a
	// prefix of sessions. It limits its bodies itself.
	API     func(w http.ResponseWriter, r *http.Request, who chat.Sender, prefix string)
	Metrics http.Handler
	Ready   func(context.Context) []string // why the house does not work; empty when it does
	Audit   func(kind, who, what string)   // is told what should be known later (R-S27)
}

// A Server serves the house over HTTP.
type Server struct {
	Config
	names   names
	people  people
	guesses tries // of the token and of one-time codes
	keys    tries // of API keys
	open    streams
	mux     *http.ServeMux
	began   time.Time
}

// New returns a Server. The error says what is wrong with PublicURL or Listen.
func New(c Config) (*Server, error) {
	n, err := newNames(c.Listen, c.PublicURL)
	if err != nil {
		return nil, err
	}
	s := &Server{
		Config: c, names: n, people: newPeople(c.Store, rand.Text()), mux: http.NewServeMux(), began: time.Now(),
		guesses: newTries(), keys: newTries(), open: streams{ends: map[*http.Request]stream{}},
	}
	for _, r := range s.routes() {
		s.mux.Handle(r.pattern, s.serve(r))
	}
	return s, nil
}

// Handler serves whoever comes by the network.
func (s *Server) Handler() http.Handler { return s.guard(http.HandlerFunc(s.door)) }

// Local serves the owner, without a credential. It is for a socket that only the
// OS user who runs the house can reach (T0).
func (s *Server) Local() http.Handler {
	return s.safely(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mux.ServeHTTP(w, with(r, visitor{Sender: sender(ownerName)}))
	}))
}

// HTTP returns the server to serve h with. It waits for nobody's headers for
// long, and for streams as long as they last.
func (s *Server) HTTP(h http.Handler) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10,
		ErrorLog: slog.NewLogLogger(s.Log.Handler(), slog.LevelWarn),
	}
}

// Link returns a link that signs person in, once. One for the owner holds until
// it is used or the house restarts; one for somebody invited holds for a day. It
// returns store.ErrNotFound for others.
func (s *Server) Link(ctx context.Context, person string) (string, error) {
	life := inviteLife
	if person == ownerName {
		life = 0
	}
	return s.link(ctx, person, life)
}

// Role returns what the person of that name may do now, Stranger when they were
// removed or never known.
func (s *Server) Role(ctx context.Context, person string) (chat.Role, error) {
	return s.people.role(ctx, person)
}

// link makes the code a fragment: no server, log or preview ever sees it.
func (s *Server) link(ctx context.Context, person string, life time.Duration) (string, error) {
	code, err := s.people.invite(ctx, person, life)
	if err != nil {
		return "", fmt.Errorf("link for %q: %w", person, err)
	}
	return s.names.home + "/signin#" + code, nil
}

func (s *Server) audit(kind, who, what string) {
	if s.Audit != nil {
		s.Audit(kind, who, what)
	}
}

// A right says who may use a route.
type right int

const (
	anyone right = iota
	person       // somebody signed in
	owner
	keyed // somebody with an API key
)

// A route is one thing that can be asked for.
type route struct {
	pattern string
	may     right
	long    bool // it may take its time
	do      func(http.ResponseWriter, *http.Request, visitor) error
}

// routes lists everything there is.
func (s *Server) routes() []route {
	all := []route{
		{"GET /healthz", anyone, false, s.health},
		{"GET /readyz", anyone, false, s.ready},
		{"GET /signin", anyone, false, s.signInPage},
		{"POST /signin", anyone, false, s.signIn},
		{"POST /signout", person, false, s.signOut},
		{"GET /assets/signin.js", anyone, false, asset},
		{"GET /assets/owner.css", anyone, false, asset},
		{"GET /assets/owner.js", owner, false, asset},
	}
	if s.Metrics != nil {
		all = append(all, route{"GET /metrics", owner, true, func(w http.ResponseWriter, r *http.Request, _ visitor) error {
			s.Metrics.ServeHTTP(w, r)
			return nil
		}})
	}
	if s.API != nil {
		all = append(all, route{"/v1/", keyed, true, func(w http.ResponseWriter, r *http.Request, v visitor) error {
			s.API(w, r, v.Sender, v.prefix)
			return nil
		}})
	}
	if s.Chat != nil {
		all = append(all, route{"/", person, true, func(w http.ResponseWriter, r *http.Request, v visitor) error {
			s.Chat(w, r, v.Sender)
			return nil
		}})
	}
	return append(append(all, s.api()...), s.pages()...)
}

const (
	patience = 30 * time.Second // to read a request and write its answer, unless it is a long one
	maxBody  = 64 << 10         // bytes, of what is not mounted
)

// serve makes a handler of rt, which knows by then who asks. To those who may
// not, it is as if there were no such thing.
func (s *Server) serve(rt route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := visiting(r)
		switch {
		case rt.may == keyed && !v.key:
			refuse(w, r, http.StatusUnauthorized, "this wants an API key, which the owner makes")
			return
		case rt.may == person && (v.Role == chat.Stranger || v.key), rt.may == owner && (v.Role != chat.Owner || v.key):
			refuse(w, r, http.StatusNotFound, "there is no such page")
			return
		}
		if rt.long {
			hurry(w, time.Time{})
			ctx, leave := s.open.enter(r, v)
			defer leave()
			r = r.WithContext(ctx)
		} else {
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		}
		if err := rt.do(w, r, v); err != nil {
			s.fail(w, r, err)
		}
	})
}

// A problem is an error that whoever asked can do something about.
type problem struct {
	status int
	text   string
	after  time.Duration // how long to wait before another try; 0 when that does not help
}

func (p problem) Error() string { return p.text }

func bad(text string) error { return problem{status: http.StatusBadRequest, text: text} }

// fail answers with err in words for whoever asked, and logs what is not their doing.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var p problem
	switch {
	case errors.As(err, &p):
	case errors.Is(err, store.ErrNotFound):
		p = problem{status: http.StatusNotFound, text: "there is no such thing, or not any more"}
	case errors.Is(err, store.ErrFull):
		p = problem{status: http.StatusInsufficientStorage, text: "the disk is full, so nothing was changed; make room and try again"}
	case r.Context().Err() != nil:
		return // they left
	default:
		s.Log.Error("request failed", "path", r.URL.Path, "err", err)
		p = problem{status: http.StatusInternalServerError, text: "that did not work; the log says why"}
	}
	if p.after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.after.Seconds()))))
	}
	refuse(w, r, p.status, p.text)
}

// refuse answers with status and text: a page for people, JSON for programs, in
// the shape that clients of the models' API read.
func refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		_ = show(w, status, "refused", frame{Title: http.StatusText(status), Data: text})
		return
	}
	writeJSON(w, status, map[string]any{"error": map[string]any{"message": text, "type": "invalid_request_error", "code": nil}})
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // an error is theirs: they left
}

// health says that the process answers.
func (s *Server) health(w http.ResponseWriter, _ *http.Request, _ visitor) error {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	return nil
}

// ready says whether the house works, and to people of the house why not.
func (s *Server) ready(w http.ResponseWriter, r *http.Request, v visitor) error {
	why := s.reasons(r.Context())
	answer, status := map[string]any{"status": "ready"}, http.StatusOK
	if len(why) > 0 {
		answer["status"], status = "not ready", http.StatusServiceUnavailable
		if v.Role != chat.Stranger {
			answer["reasons"] = why
		}
	}
	writeJSON(w, status, answer)
	return nil
}

func (s *Server) reasons(ctx context.Context) []string {
	if s.Ready == nil {
		return nil
	}
	return s.Ready(ctx)
}

// body reads the JSON of r into v.
func body(r *http.Request, v any) error {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return problem{status: http.StatusUnsupportedMediaType, text: "this wants application/json"}
	}
	d := json.NewDecoder(r.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			return problem{status: http.StatusRequestEntityTooLarge, text: "that is too much"}
		}
		return bad("that is not the JSON expected here: " + strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}
