// Package notify tells people who have no page open what was said to them, by Web Push to the browsers in which they
// asked for it. What is to be told waits in a queue on disk, once for each browser, until the browser's push service
// has taken it, the person has seen it on a page, or it is an hour old. A browser that is signed out
// is told nothing.
package notify

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"parley/channels/webpush"
	"parley/chat"
	"parley/response"
	"parley/store"
)

const (
	maxBrowsers = 10                  // of one person; the one that was used longest ago makes room
	unusedAfter = 60 * 24 * time.Hour // a browser that has not shown the page for so long is told nothing more
	renewAfter  = 24 * time.Hour      // when the next visit is noted

	grace      = 4 * time.Second  // for an open page to show what was said
	staleAfter = time.Hour        // what could not be sent for so long is dropped
	keptFor    = 12 * time.Hour   // by the push service, for a device that is off
	minPause   = 5 * time.Second  // before another try
	maxPause   = 10 * time.Minute // likewise

	maxTitle = 60  // characters
	maxText  = 180 // characters
)

// A Config is what a Service needs.
type Config struct {
	Store  store.Store
	Client *http.Client  // decides which push services may be reached
	Home   func() string // the address of the page, by which operators of push services reach us
	// SignIn returns the name of the sign-in by which a request came; "" if it came without one. nil: all do.
	SignIn func(ctx context.Context) string
	// Lasts reports whether a sign-in of a person still lets them see the page. nil: all do.
	Lasts func(ctx context.Context, person, signIn string) (bool, error)
	Log   *slog.Logger
}

// A Service keeps the browsers to be told, and tells them.
type Service struct {
	cfg      Config
	browsers store.Table[browser] // by person and digest of the endpoint
	queue    store.Queue

	mu     sync.Mutex
	sender *webpush.Sender // nil: the key was not needed yet
}

// A browser is one in which a person has asked for notifications.
type browser struct {
	webpush.Subscription
	Person  string    `json:"person"`
	SignIn  string    `json:"sign_in,omitempty"` // by which it may see the page: it is told nothing once that has ended
	Private bool      `json:"private,omitempty"` // it is only told that there is something new
	Used    time.Time `json:"used"`              // when it showed the page last, to within a day
}

// keyName is the name of our key in the bucket. It is among the subscriptions, which are worth nothing without it.
const keyName = "key"

func browserKey(person, endpoint string) string {
	sum := sha256.Sum256([]byte(endpoint))
	return "browser/" + person + "\x00" + hex.EncodeToString(sum[:16])
}

// New returns a Service.
func New(cfg Config) *Service {
	bucket := cfg.Store.Bucket(store.BucketPush)
	return &Service{
		cfg:      cfg,
		browsers: store.NewTable(bucket, store.Forget[browser](cfg.Log, "subscription to notifications")),
		queue:    cfg.Store.Queue(store.QueuePush),
	}
}

// key returns what messages are sent with. The key is made when it is first needed.
func (s *Service) key(ctx context.Context) (*webpush.Sender, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sender != nil {
		return s.sender, nil
	}
	bucket := s.cfg.Store.Bucket(store.BucketPush)
	raw, _, err := bucket.Get(ctx, keyName)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) { // browsers subscribe anew
		raw, err = newKey(ctx, bucket)
	}
	if err != nil {
		return nil, fmt.Errorf("the key of notifications: %w", err)
	}
	key, err := webpush.ParseKey(raw)
	if err != nil {
		return nil, fmt.Errorf("the key of notifications: %w", err)
	}
	s.sender = &webpush.Sender{Key: key, Contact: contact(s.cfg.Home()), Client: s.cfg.Client}
	return s.sender, nil
}

func newKey(ctx context.Context, bucket store.Bucket) ([]byte, error) {
	key, err := webpush.NewKey()
	if err != nil {
		return nil, err
	}
	raw, err := key.Bytes()
	if err != nil {
		return nil, err
	}
	_, err = bucket.Put(ctx, keyName, raw, store.Any)
	return raw, err
}

// contact returns an address as RFC 8292 wants it. Some services refuse one of this machine.
func contact(home string) string {
	if len(home) > 8 && home[:8] == "https://" {
		return home
	}
	return "mailto:owner@parley.invalid"
}

// Key returns our public key, to which browsers subscribe.
func (s *Service) Key(ctx context.Context) (string, error) {
	sender, err := s.key(ctx)
	if err != nil {
		return "", err
	}
	return sender.Key.Public(), nil
}

// Subscribe has a browser of person be told, for as long as the sign-in lasts by which the request of ctx came. A
// browser belongs to the person who used it last. It is called at each visit, so that those that are used no more can
// be told apart.
func (s *Service) Subscribe(ctx context.Context, person string, sub webpush.Subscription, private bool) error {
	if err := sub.Check(); err != nil {
		return err
	}
	b := browser{Subscription: sub, Person: person, Private: private, Used: time.Now()}
	if s.cfg.SignIn != nil {
		b.SignIn = s.cfg.SignIn(ctx)
	}
	if lasts, err := s.lasts(ctx, b); err != nil || !lasts {
		return cmp.Or(err, error(errNotSignedIn))
	}
	var mine []store.Entry[browser]
	for e, err := range s.browsers.Each(ctx, "browser/") {
		if err != nil {
			return err
		}
		lasts, err := s.lasts(ctx, e.Value)
		switch {
		case err != nil:
			return err
		case !lasts, e.Value.Endpoint == sub.Endpoint && e.Value.Person != person:
			if err := s.browsers.Delete(ctx, e.Key); err != nil {
				return err
			}
		case e.Value.Endpoint == sub.Endpoint && e.Value.Private == private && e.Value.Keys == sub.Keys &&
			e.Value.SignIn == b.SignIn && time.Since(e.Value.Used) < renewAfter:
			return nil
		case e.Value.Person == person && e.Value.Endpoint != sub.Endpoint:
			mine = append(mine, e)
		}
	}
	slices.SortFunc(mine, func(a, b store.Entry[browser]) int { return b.Value.Used.Compare(a.Value.Used) })
	for _, e := range mine[min(len(mine), maxBrowsers-1):] {
		if err := s.browsers.Delete(ctx, e.Key); err != nil {
			return err
		}
	}
	return s.browsers.Set(ctx, browserKey(person, sub.Endpoint), b)
}

var errNotSignedIn = response.Problem{
	Status: http.StatusForbidden, Text: "Notifications are for a browser that is signed in.",
}

// lasts reports whether the sign-in of b still lets its person see the page.
func (s *Service) lasts(ctx context.Context, b browser) (bool, error) {
	if s.cfg.Lasts == nil {
		return true, nil
	}
	return s.cfg.Lasts(ctx, b.Person, b.SignIn)
}

// Unsubscribe ends that a browser of person is told.
func (s *Service) Unsubscribe(ctx context.Context, person, endpoint string) error {
	return s.browsers.Delete(ctx, browserKey(person, endpoint))
}

// A Notice is what a person is told.
type Notice struct {
	ID    string       `json:"id"` // of the reply: it is told once
	At    chat.Address `json:"at"`
	Seq   uint64       `json:"seq"`   // its number in the conversation
	Title string       `json:"title"` // of the conversation
	Text  string       `json:"text"`
	Asks  bool         `json:"asks,omitempty"` // it is a question
}

// A pending is a Notice to one browser, in the queue.
type pending struct {
	Browser string `json:"browser"` // its key
	Notice
	Time time.Time `json:"time"`
}

// Tell tells n to all browsers of its person, if they ask for it and no page shows it meanwhile. Repeating it has no
// further effect.
func (s *Service) Tell(ctx context.Context, n Notice) error {
	n.Title = chat.Shorten(chat.OneLine(n.Title), maxTitle)
	n.Text = chat.Shorten(chat.OneLine(n.Text), maxText)
	for e, err := range s.browsers.Each(ctx, "browser/"+n.At.Chat+"\x00") {
		if err != nil {
			return err
		}
		if time.Since(e.Value.Used) > unusedAfter {
			if err := s.browsers.Delete(ctx, e.Key); err != nil {
				return err
			}
			continue
		}
		body, err := json.Marshal(pending{Browser: e.Key, Notice: n, Time: time.Now()})
		if err != nil {
			return err
		}
		if err := s.queue.Push(ctx, n.At.Thread+"/"+n.ID+"/"+e.Key, body); err != nil {
			return err
		}
	}
	return nil
}

// Run tells what is in the queue, but for what has been seen, until ctx ends.
func (s *Service) Run(ctx context.Context, seen seenFunc) error {
	browserOf := func(item store.Item) string {
		var p pending
		_ = json.Unmarshal(item.Body, &p) // damaged items are dropped one after the other
		return p.Browser
	}
	return store.Work(ctx, s.queue, browserOf, func(ctx context.Context, _ string, take func() []store.Item) {
		for items := take(); len(items) > 0; items = take() {
			for _, item := range items {
				s.handle(ctx, item, seen)
			}
		}
	})
}

// A seenFunc reports whether a page has shown an entry of a conversation, or that conversation is gone.
type seenFunc = func(context.Context, chat.Address, uint64) (bool, error)

// handle ends one item, or puts it off.
func (s *Service) handle(ctx context.Context, item store.Item, seen seenFunc) {
	var p pending
	var pause time.Duration
	err := json.Unmarshal(item.Body, &p)
	damaged := err != nil
	if !damaged {
		select { // here, so that what is told to a browser stays in its order
		case <-time.After(grace - time.Since(p.Time)):
		case <-ctx.Done():
		}
		pause = s.try(ctx, p, seen)
	}
	if pause > 0 || ctx.Err() != nil && !damaged {
		item.Later(pause)
		return
	}
	if err := item.Done(ctx); err != nil && ctx.Err() == nil {
		s.cfg.Log.Warn("notification may be sent again", "err", err)
	}
}

// try sends p if it is time. It returns when to try again; 0: never.
func (s *Service) try(ctx context.Context, p pending, seen seenFunc) time.Duration {
	age := time.Since(p.Time)
	if age < grace {
		return grace - age
	}
	pause, err := s.send(ctx, p, seen)
	switch {
	case err == nil:
		return 0
	case pause > 0 && age+pause < staleAfter:
		s.cfg.Log.Debug("notification not sent yet", "person", p.At.Chat, "err", err)
		return pause
	}
	s.cfg.Log.Warn("notification not sent", "person", p.At.Chat, "err", err)
	return 0
}

// send sends p, unless nobody is to be told any more. With an error, pause is when to try again; 0: never.
func (s *Service) send(ctx context.Context, p pending, seen seenFunc) (pause time.Duration, err error) {
	pause = min(max(time.Since(p.Time), minPause), maxPause) // twice as long each time
	if time.Since(p.Time) > staleAfter {
		return 0, nil
	}
	b, _, err := s.browsers.Get(ctx, p.Browser)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return pause, err
	}
	lasts, err := s.lasts(ctx, b)
	if err != nil {
		return pause, err
	}
	if !lasts {
		return 0, s.browsers.Delete(ctx, p.Browser)
	}
	if known, err := seen(ctx, p.At, p.Seq); err != nil || known {
		return pause, err
	}
	sender, err := s.key(ctx)
	if err != nil {
		return pause, err
	}
	body, err := json.Marshal(messageOf(p.Notice, b.Private))
	if err != nil {
		return 0, err
	}
	topic := sha256.Sum256([]byte(p.At.Thread + "\x00" + p.ID))
	err = sender.Send(ctx, b.Subscription, webpush.Message{
		Body:   body,
		TTL:    keptFor,
		Topic:  base64.RawURLEncoding.EncodeToString(topic[:24]),
		Urgent: true,
	})
	if webpush.IsGone(err) {
		return 0, s.browsers.Delete(ctx, p.Browser)
	}
	after, retry := webpush.RetryAfter(err)
	if !retry {
		return 0, err
	}
	return max(after, pause), err
}

// A message is what the service worker is told: worker.js reads it.
type message struct {
	Title string `json:"title"`
	Text  string `json:"text"`
	Tag   string `json:"tag"` // the same for what is told twice
	URL   string `json:"url"`
}

// messageOf returns what is told of n.
func messageOf(n Notice, private bool) message {
	m := message{
		Title: cmp.Or(n.Title, "Parley"),
		Text:  cmp.Or(n.Text, "New answer"),
		Tag:   n.ID,
		URL:   "/c/" + n.At.Thread,
	}
	if private {
		m.Title = "Parley"
		m.Text = map[bool]string{true: "Your answer is needed", false: "New answer"}[n.Asks]
	} else if n.Asks {
		m.Text = "❓ " + m.Text
	}
	return m
}
