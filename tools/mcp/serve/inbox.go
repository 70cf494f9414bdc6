package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/lazyregexp"
	"parley/store"
)

const (
	maxWaiting   = 500                 // messages that wait for one coding session
	keepAcked    = 48 * time.Hour      // in which a message that is delivered again is known
	keepUnacked  = 30 * 24 * time.Hour // of messages that no session acknowledges
	usualSession = "code"              // name of a coding session without one
)

// A message was written by a person to a coding session. It waits until the session acknowledges it.
type message struct {
	ID      string       `json:"id"`
	Session string       `json:"session"` // to which it was written
	Chat    chat.Address `json:"chat"`    // in which it was written
	From    chat.Sender  `json:"from"`
	Text    string       `json:"text"`
	Time    time.Time    `json:"time"`
	Acked   time.Time    `json:"acked,omitzero"`
}

// An inbox keeps messages, and wakes those who wait for them.
type inbox struct {
	messages store.Table[message] // by person, session and ID

	mu        sync.Mutex
	changed   chan struct{}  // closed when there is a new message
	listening map[string]int // by prefix: calls that wait
}

func newInbox(s store.Store, log *slog.Logger) *inbox {
	forget := store.Forget[message](log, "message to a coding session")
	return &inbox{
		messages:  store.NewTable(s.Bucket(store.BucketCoding), forget),
		changed:   make(chan struct{}),
		listening: map[string]int{},
	}
}

// inboxPrefix begins the keys of the messages to one session of who.
func inboxPrefix(who chat.Person, session string) string {
	return chat.Slug(string(who)) + "/" + cmp.Or(session, usualSession) + "/"
}

// sessionForm is that of the names of coding sessions.
var sessionForm = lazyregexp.New(`^[A-Za-z0-9._-]{1,32}$`)

var errSessionForm = errors.New("a session's name has 1 to 32 letters, digits, dots, dashes and underscores")

var errInboxFull = errors.New("too many messages wait for this coding session")

// put keeps a message of who. A message that is put again is dropped.
func (b *inbox) put(ctx context.Context, who chat.Person, m message) error {
	prefix := inboxPrefix(who, m.Session)
	waiting := 0
	for e, err := range b.messages.Each(ctx, prefix) {
		if err != nil {
			return err
		}
		switch old := e.Value; {
		case old.ID == m.ID:
			return nil
		case !old.Acked.IsZero() && time.Since(old.Acked) > keepAcked, time.Since(old.Time) > keepUnacked:
			if err := b.messages.Delete(ctx, e.Key); err != nil {
				return err
			}
		case old.Acked.IsZero():
			waiting++
		}
	}
	if waiting >= maxWaiting {
		return errInboxFull
	}
	if _, err := b.messages.Put(ctx, prefix+m.ID, m, 0); err != nil && !errors.Is(err, store.ErrConflict) {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.changed)
	b.changed = make(chan struct{})
	return nil
}

// list returns the messages that wait, the oldest first, without those that are known.
func (b *inbox) list(ctx context.Context, prefix string, known []string) (all []message, err error) {
	for e, err := range b.messages.Each(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		if e.Value.Acked.IsZero() && !slices.Contains(known, e.Value.ID) {
			all = append(all, e.Value)
		}
	}
	slices.SortStableFunc(all, func(a, b message) int { return a.Time.Compare(b.Time) })
	return all, nil
}

// wait is list that waits for a message until ctx ends, and then returns none.
func (b *inbox) wait(ctx context.Context, prefix string, known []string) ([]message, error) {
	b.listen(prefix, 1)
	defer b.listen(prefix, -1)
	for {
		b.mu.Lock()
		changed := b.changed
		b.mu.Unlock()
		all, err := b.list(context.WithoutCancel(ctx), prefix, known)
		if err != nil || len(all) > 0 {
			return all, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, nil
		}
	}
}

// listen adds n to the calls that wait for messages.
func (b *inbox) listen(prefix string, n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.listening[prefix] += n
	if b.listening[prefix] == 0 {
		delete(b.listening, prefix)
	}
}

// isListening reports whether a session waits for messages.
func (b *inbox) isListening(prefix string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.listening[prefix] > 0
}

// find returns the message of that ID to any session of who, and its key.
func (b *inbox) find(ctx context.Context, who chat.Person, id string) (m message, key string, err error) {
	for e, err := range b.messages.Each(ctx, chat.Slug(string(who))+"/") {
		if err != nil {
			return message{}, "", err
		}
		if e.Value.ID == id {
			return e.Value, e.Key, nil
		}
	}
	return message{}, "", store.ErrNotFound
}

// acknowledge ends the waiting of the message with that key.
func (b *inbox) acknowledge(ctx context.Context, key string) error {
	_, _, err := b.messages.Update(ctx, key, func(m *message) error {
		if !m.Acked.IsZero() {
			return store.ErrUnchanged
		}
		m.Acked = time.Now()
		return nil
	})
	return err
}

// Command answers the slash command /code, with which people write to their coding sessions: "/code [@NAME] TEXT".
func (s *Server) Command(ctx context.Context, m chat.Message) (string, error) {
	say := s.cfg.Texts
	if m.Group || m.From.Role != chat.Owner && m.At.Channel != "web" {
		return say.Nobody, nil
	}
	_, text, _ := strings.Cut(strings.TrimSpace(m.Text), " ")
	text = strings.TrimSpace(text)
	session := usualSession
	if name, rest, _ := strings.Cut(text, " "); strings.HasPrefix(name, "@") && sessionForm.MatchString(name[1:]) {
		session = name[1:]
		text = strings.TrimSpace(rest)
	}
	who := chat.Whose(m.At, m.From, false)
	prefix := inboxPrefix(who, session)
	if text == "" {
		waiting, err := s.inbox.list(ctx, prefix, nil)
		return say.Usage.With(len(waiting), session), err
	}
	err := s.inbox.put(ctx, who, message{
		ID: digest(m.Key())[:16], Session: session, Chat: m.At, From: m.From, Text: text, Time: time.Now(),
	})
	switch {
	case errors.Is(err, errInboxFull):
		return say.Full, nil
	case err != nil:
		return "", err
	case s.inbox.isListening(prefix):
		return say.Passed.With(session), nil
	}
	return say.Kept.With(session), nil
}
