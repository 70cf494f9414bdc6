// Package telegramtest is a strict Telegram Bot API that lives in memory, with
// people who write to the bot and see what it says.
//
// It refuses what Telegram refuses, with Telegram's words, confirms updates as
// Telegram does, and fails when it is told to. NewServer listens on the
// loopback, for programs in other processes; NewInMemory is for one process and
// works in a bubble of testing/synctest.
package telegramtest

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"
)

// A Config says which bot the Server knows, and how strict it is.
type Config struct {
	Token    string // "4242:AAtest-token-of-the-test-bot" when empty
	Username string // "parleybot" when empty
	Limits   bool   // answer 429 to bots that send more than Telegram allows
	Privacy  bool   // what getMe says about it: the bot does not see all messages of groups
}

// A Server is a Telegram with one bot. Its methods may be called concurrently.
type Server struct {
	URL string // to be the bot's apiUrl; "http://telegram.test" in memory

	cfg  Config
	bot  User
	http *httptest.Server // nil in memory

	closed     context.Context
	close      context.CancelFunc
	deliverers sync.WaitGroup // which send updates to a webhook

	mu      sync.Mutex
	changed chan struct{} // closed and made anew when anything changes
	nextID  int64         // of the next update

	lastMessage int // number of the newest message outside supergroups

	pending  []Update
	allowed  []string // kinds of updates; nil for the usual
	done     []Update
	polling  chan struct{} // closed to end the poll under way; nil if there is none
	hook     webhook
	chats    map[int64]*room
	files    []File
	uploads  map[string]uploaded  // of the requests under way, by token
	presses  map[string]time.Time // of buttons, by id; zero when answered
	commands json.RawMessage
	faults   map[string][]*Fault
	counts   map[string]int
	watchers []func(Event)
	limits   limits
}

// An Update is one that the bot receives.
type Update struct {
	ID      int64
	Chat    int64
	Message int // id; 0 for updates made by Push
	Raw     json.RawMessage
}

// NewServer starts a Server on the loopback. Close ends it.
func NewServer(cfg Config) *Server {
	s := NewInMemory(cfg)
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	return s
}

// NewInMemory returns a Server that only Client reaches. Close ends it.
func NewInMemory(cfg Config) *Server {
	if cfg.Token == "" {
		cfg.Token = "4242:AAtest-token-of-the-test-bot"
	}
	if cfg.Username == "" {
		cfg.Username = "parleybot"
	}
	s := &Server{
		URL:      "http://telegram.test",
		cfg:      cfg,
		changed:  make(chan struct{}),
		nextID:   1000,
		chats:    map[int64]*room{},
		uploads:  map[string]uploaded{},
		presses:  map[string]time.Time{},
		faults:   map[string][]*Fault{},
		counts:   map[string]int{},
		commands: json.RawMessage("[]"),
		limits:   limits{sent: map[int64][]time.Time{}},
	}
	s.bot = User{ID: botID(cfg.Token), IsBot: true, FirstName: "Parley", Username: cfg.Username}
	s.closed, s.close = context.WithCancel(context.Background())
	return s
}

// Close ends the Server and all requests under way.
func (s *Server) Close() {
	s.close()
	if s.http != nil {
		s.http.CloseClientConnections()
		s.http.Close()
	}
	s.deliverers.Wait()
}

// Token returns the bot's.
func (s *Server) Token() string { return s.cfg.Token }

// Bot returns the bot as others see it.
func (s *Server) Bot() User { return s.bot }

// Client returns a client that reaches s, and nobody else, without a network.
func (s *Server) Client() *http.Client { return &http.Client{Transport: memoryTransport{s}} }

// notify wakes everybody who waits for a change. s.mu is held.
func (s *Server) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Wait returns when ok says so, which is asked again after every change, or
// when ctx ends. ok must not call methods of s, nor keep what it sees.
func (s *Server) Wait(ctx context.Context, ok func(View) bool) error {
	for {
		s.mu.Lock()
		if ok(View{s}) {
			s.mu.Unlock()
			return nil
		}
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// WaitChat is Wait for one chat, which costs nothing when others change.
func (s *Server) WaitChat(ctx context.Context, chat int64, ok func([]Message) bool) error {
	for {
		s.mu.Lock()
		r := s.room(chat)
		if ok(r.messages) {
			s.mu.Unlock()
			return nil
		}
		changed := r.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A View is the Server at one moment.
type View struct{ s *Server }

// Chat returns what the chat shows, oldest first. It is not to be kept.
func (v View) Chat(id int64) []Message { return v.s.room(id).messages }

// Confirmed returns the updates that the bot has confirmed, in that order.
func (v View) Confirmed() []Update { return v.s.done }

// Pending counts the updates that are not confirmed.
func (v View) Pending() int { return len(v.s.pending) }

// Count returns how many requests for method have been answered or failed.
func (v View) Count(method string) int { return v.s.counts[method] }

// Typing counts how often the bot has shown in chat that it is typing.
func (v View) Typing(chat int64) int { return v.s.room(chat).typing }

// Webhook returns where updates are sent to, empty if they are polled.
func (v View) Webhook() string { return v.s.hook.url }

// Look calls f with the Server as it is.
func (s *Server) Look(f func(View)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(View{s})
}

// Chat returns what the chat shows, oldest first.
func (s *Server) Chat(id int64) (ms []Message) {
	s.Look(func(v View) { ms = slices.Clone(v.Chat(id)) })
	return ms
}

// Confirmed returns the updates that the bot has confirmed.
func (s *Server) Confirmed() (us []Update) {
	s.Look(func(v View) { us = append(us, v.Confirmed()...) })
	return us
}

// Count returns how many requests for method have been answered or failed.
func (s *Server) Count(method string) (n int) {
	s.Look(func(v View) { n = v.Count(method) })
	return n
}

// Commands returns the bot's menu as JSON.
func (s *Server) Commands() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.commands)
}
