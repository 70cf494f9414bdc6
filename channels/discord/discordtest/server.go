// Package discordtest is a strict Discord that lives in memory, with people who
// write to the bot and see what it says: its REST API, its gateway and the
// server of its files, on the loopback.
//
// It refuses what Discord refuses, with Discord's codes, forgets sessions as
// Discord does, and fails when it is told to.
package discordtest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Config says which bot the Server knows, and how strict it is.
type Config struct {
	Token     string        // "MTAx.test.token-of-the-test-bot" when empty
	Blind     bool          // Message Content Intent is switched off
	Limits    bool          // answer 429 to bots that send more than Discord allows
	Heartbeat time.Duration // 41.25 s when 0
	Patience  time.Duration // how long an interaction may go unanswered: 3 s when 0
	Starts    int           // sessions that may be begun: 1000 when 0
	Buffer    int           // events of a session that a RESUME may bring again: 1000 when 0
}

// A Server is a Discord with one bot. Its methods may be called concurrently.
type Server struct {
	URL        string // of the API, to be the bot's apiUrl
	GatewayURL string

	cfg    Config
	bot    User
	http   *httptest.Server
	closed context.Context
	close  context.CancelFunc
	live   sync.WaitGroup // connections to the gateway

	mu           sync.Mutex
	changed      chan struct{} // closed and made anew when anything changes
	lastID       int64
	rooms        map[string]*room
	sessions     map[string]*session
	starts       int // sessions begun
	resumes      int // and resumed
	beats        int // heartbeats of the bot
	interactions map[string]*Interaction
	menu         json.RawMessage
	nonces       map[string]string // of the last minutes: message
	files        map[string][]byte // by path at the server of files
	faults       map[string][]*Fault
	gates        []Gate
	counts       map[string]int
	watchers     []func(Event)
	limits       map[string][]time.Time
}

// NewServer starts a Server on the loopback. Close ends it.
func NewServer(cfg Config) *Server {
	cfg.Token = cmp.Or(cfg.Token, "MTAx.test.token-of-the-test-bot")
	cfg.Heartbeat = cmp.Or(cfg.Heartbeat, 41250*time.Millisecond)
	cfg.Patience = cmp.Or(cfg.Patience, 3*time.Second)
	cfg.Starts = cmp.Or(cfg.Starts, 1000)
	cfg.Buffer = cmp.Or(cfg.Buffer, 1000)
	s := &Server{
		cfg:          cfg,
		bot:          User{ID: "101", Username: "parley", Bot: true},
		changed:      make(chan struct{}),
		rooms:        map[string]*room{},
		sessions:     map[string]*session{},
		interactions: map[string]*Interaction{},
		menu:         json.RawMessage("[]"),
		nonces:       map[string]string{},
		files:        map[string][]byte{},
		faults:       map[string][]*Fault{},
		counts:       map[string]int{},
		limits:       map[string][]time.Time{},
	}
	s.closed, s.close = context.WithCancel(context.Background())
	s.http = httptest.NewServer(s.handler())
	s.URL = s.http.URL + "/api/v9"
	s.GatewayURL = "ws" + strings.TrimPrefix(s.http.URL, "http") + "/gateway"
	return s
}

// Close ends the Server, all requests under way and all connections.
func (s *Server) Close() {
	s.close()
	s.Drop(0)
	s.http.CloseClientConnections()
	s.http.Close()
	s.live.Wait()
}

// Token returns the bot's.
func (s *Server) Token() string { return s.cfg.Token }

// Bot returns the bot as others see it.
func (s *Server) Bot() User { return s.bot }

// id returns a new snowflake. s.mu is held.
func (s *Server) id() string {
	now := (time.Now().UnixMilli() - 1420070400000) << 22
	s.lastID = max(s.lastID+1, now)
	return strconv.FormatInt(s.lastID, 10)
}

// notify wakes everybody who waits for a change. s.mu is held.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns when ok says so, which is asked again after every change, or
// when ctx ends. ok must not call methods of s, nor keep what it sees.
func (s *Server) Wait(ctx context.Context, ok func(View) bool) error {
	return s.wait(ctx, &s.changed, func() bool { return ok(View{s}) })
}

// WaitChat is Wait for the messages of one channel, and costs nothing when others change.
func (s *Server) WaitChat(ctx context.Context, channel string, ok func([]Message) bool) error {
	s.mu.Lock()
	r := s.room(channel)
	s.mu.Unlock()
	return s.wait(ctx, &r.changed, func() bool { return ok(r.messages) })
}

func (s *Server) wait(ctx context.Context, changed *chan struct{}, ok func() bool) error {
	for {
		s.mu.Lock()
		done, news := ok(), *changed
		s.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A View is the Server at one moment.
type View struct{ s *Server }

// Messages returns what the channel shows, oldest first. It is not to be kept.
func (v View) Messages(channel string) []Message { return v.s.room(channel).messages }

// Count returns how many requests have been answered or failed, such as
// "POST /channels/{id}/messages".
func (v View) Count(route string) int { return v.s.counts[route] }

// Online reports whether the bot is connected and ready.
func (v View) Online() bool {
	for _, ses := range v.s.sessions {
		if ses.conn != nil && ses.ready {
			return true
		}
	}
	return false
}

// Sessions returns how many sessions were begun, and how often one was resumed.
func (v View) Sessions() (begun, resumed int) { return v.s.starts, v.s.resumes }

// Left reports whether the bot has no session because it ended it.
func (v View) Left() bool { return len(v.s.sessions) == 0 }

// Beats returns how many heartbeats have arrived.
func (v View) Beats() int { return v.s.beats }

// Interaction returns the one with that id.
func (v View) Interaction(id string) Interaction { return *v.s.interactions[id] }

// Look calls f with the Server as it is.
func (s *Server) Look(f func(View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(View{s})
}

// Messages returns what the channel shows, oldest first.
func (s *Server) Messages(channel string) (ms []Message) {
	s.Look(func(v View) { ms = slices.Clone(v.Messages(channel)) })
	return ms
}

// Count returns how many requests have been answered or failed.
func (s *Server) Count(route string) (n int) {
	s.Look(func(v View) { n = v.Count(route) })
	return n
}

// Commands returns the bot's menu as JSON.
func (s *Server) Commands() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.menu)
}
