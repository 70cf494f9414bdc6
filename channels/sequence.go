package channels

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
)

// A sequence sends the messages to each chat of a Tracer one after the other, so that
// at most one of them is in doubt when the process dies: it may or may not have been
// sent. Before the next message is sent, the Tracer finds out.
//
// For that, the store has a number below that of the message in doubt, and not below
// that of any other message of ours in the chat:
//
//   - For the first message of a reply it is the number in the outbox, beside the
//     reply, or that of the last message in the chat, whichever is higher. This costs
//     no commit.
//   - For every other message, and if too many others were sent meanwhile, it is in
//     the record of the delivery, which is written before the message is sent.
type sequence struct {
	name      string // of the channel
	tracer    Tracer
	journal   store.Table[record]
	lastSent  store.Table[lastSent]
	receiptOf func(question string) Receipt

	loading sync.Mutex
	loaded  bool
	base    map[string]Position // by chat: the highest number in unfinished deliveries at the start

	mu      sync.Mutex
	chats   map[string]*chatState
	resumed map[string]bool // chats where the message in doubt at the start is known
}

// A chatState is what goes on in a chat. It exists while somebody sends there or waits
// to, and while a message is in doubt.
type chatState struct {
	users   int
	sending chan struct{} // holds a token while somebody may send
	doubts  []doubt
}

// A doubt is a message in doubt.
type doubt struct {
	id string // of the reply whose record has the doubt; empty if none has
	unsure
}

// unsure is what is known of a message that may have been sent.
type unsure struct {
	To    chat.Address   `json:"to"`
	After Position       `json:"after,omitempty"` // its number is higher; 0 if that is not known
	Index int            `json:"index,omitempty"` // its index among the messages of its reply
	Says  string         `json:"says,omitempty"`  // digest of its text; empty if that was to change
	Ask   *chat.Question `json:"ask,omitempty"`   // the question whose buttons it has
	Files []chat.File    `json:"files,omitempty"` // the files it shows
}

// lastSent is the last reply that was sent to a chat. It is written before the reply
// leaves the outbox.
type lastSent struct {
	Reply    string    `json:"reply"`    // its ID
	Position Position  `json:"position"` // how far the numbers had come
	Sent     []sent    `json:"sent"`
	Time     time.Time `json:"time"`
}

// farAhead is how many numbers may be used between the time when a reply enters the
// outbox and the time when it is sent, without a commit before it is sent.
const farAhead = 32

func newSequence(channel string, t Tracer, kept tables, receiptOf func(question string) Receipt) *sequence {
	return &sequence{
		name:      channel,
		tracer:    t,
		journal:   kept.deliveries,
		lastSent:  kept.lastSent,
		receiptOf: receiptOf,
		base:      map[string]Position{},
		chats:     map[string]*chatState{},
		resumed:   map[string]bool{},
	}
}

func (s *sequence) key(chat string) string { return s.name + "/" + chat }

// load reads what the store has from before the start, once.
func (s *sequence) load(ctx context.Context) error {
	s.loading.Lock()
	defer s.loading.Unlock()
	if s.loaded {
		return nil
	}
	var errs []error
	recall := func(to chat.Address, p Position) {
		if p > 0 {
			errs = append(errs, s.tracer.Recall(ctx, to, p))
		}
	}
	err := s.journal.Retain(ctx, func(id string, r record) bool {
		if r.To.Channel != s.name {
			return true
		}
		for _, m := range r.Sent {
			recall(r.To, m.Position)
			s.base[r.To.Chat] = max(s.base[r.To.Chat], m.Position)
		}
		if r.Unsure != nil {
			recall(r.To, r.Unsure.After)
			s.add(r.To.Chat, doubt{id, *r.Unsure})
			s.resumed[r.To.Chat] = true
		}
		return true
	})
	if err != nil {
		return fmt.Errorf("read deliveries: %w", err)
	}
	err = s.lastSent.Retain(ctx, func(key string, last lastSent) bool {
		if id, ok := strings.CutPrefix(key, s.key("")); ok {
			recall(chat.Address{Channel: s.name, Chat: id}, last.Position)
		}
		return time.Since(last.Time) < keepRecords
	})
	if err = errors.Join(append(errs, err)...); err != nil {
		return fmt.Errorf("read what was sent last: %w", err)
	}
	s.loaded = true
	return nil
}

// enter waits until nobody else sends to chat.
func (s *sequence) enter(ctx context.Context, chat string) error {
	if err := s.load(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	c := s.state(chat)
	c.users++
	s.mu.Unlock()
	select {
	case c.sending <- struct{}{}:
		return nil
	case <-ctx.Done():
		s.release(chat, c)
		return ctx.Err()
	}
}

// exit lets the next delivery send to chat. That one has to settle the doubts that are
// left.
func (s *sequence) exit(chat string, left ...doubt) {
	s.mu.Lock()
	c := s.state(chat)
	c.doubts = append(c.doubts, left...)
	s.mu.Unlock()
	<-c.sending
	s.release(chat, c)
}

// state returns what goes on in chat. s.mu is held.
func (s *sequence) state(chat string) *chatState {
	if s.chats[chat] == nil {
		s.chats[chat] = &chatState{sending: make(chan struct{}, 1)}
	}
	return s.chats[chat]
}

func (s *sequence) add(chat string, d doubt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.state(chat)
	c.doubts = append(c.doubts, d)
}

func (s *sequence) release(chat string, c *chatState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.users--; c.users == 0 && len(c.doubts) == 0 {
		delete(s.chats, chat)
	}
}

// isFirst reports whether a reply to chat that was in the outbox at the start is the
// first one there: only that one may have been sent before. None is if the journal has
// another message in doubt, because then nothing else was sent there.
func (s *sequence) isFirst(chat string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !s.resumed[chat]
	s.resumed[chat] = true
	return first
}

// settle finds out what became of the messages to chat that other deliveries left in
// doubt, and records it for them. The caller may send to chat. Its own reply has the ID
// own, and has its doubt in its record.
func (s *sequence) settle(ctx context.Context, chat, own string) error {
	s.mu.Lock()
	c := s.state(chat)
	doubts := slices.Clone(c.doubts)
	s.mu.Unlock()
	for _, d := range doubts {
		if d.id != own {
			if err := s.settleOther(ctx, d); err != nil {
				return err
			}
		}
		s.mu.Lock()
		c.doubts = c.doubts[1:]
		s.mu.Unlock()
	}
	return nil
}

func (s *sequence) settleOther(ctx context.Context, d doubt) error {
	found, err := s.trace(ctx, d)
	if err != nil || d.id == "" {
		return err
	}
	_, _, err = s.journal.Update(ctx, d.id, func(r *record) error {
		if r.Unsure == nil {
			return store.ErrUnchanged
		}
		r.resolve(found)
		return nil
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("journal what was found: %w", err)
	}
	return nil
}

// trace finds out whether the message in doubt was sent. It returns nil if it was not,
// or if nobody can say.
func (s *sequence) trace(ctx context.Context, d doubt) (*sent, error) {
	last, err := s.last(ctx, d.To.Chat)
	if err != nil {
		return nil, err
	}
	if last.Reply == d.id && last.Position > d.After && d.Index < len(last.Sent) {
		return &last.Sent[d.Index], nil
	}
	found := sent{Says: d.Says}
	if d.Ask != nil {
		found.Receipt = s.receiptOf(d.Ask.ID) // somebody may have pressed its button
	}
	if found.Receipt == "" && d.After > 0 {
		err = attempt(ctx, func(ctx context.Context) (err error) {
			inDoubt := chat.Reply{ID: d.id, To: d.To, Ask: d.Ask, Files: d.Files}
			found.Receipt, err = s.tracer.Trace(ctx, inDoubt, d.After)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("find out whether a message was sent: %w", err)
	}
	if found.Receipt == "" {
		return nil, nil
	}
	if found.Position, err = s.tracer.Position(ctx, chat.Reply{To: d.To}); err != nil {
		return nil, fmt.Errorf("find out whether a message was sent: %w", err)
	}
	return &found, nil
}

// last returns the last reply that was sent to chat, or the zero value.
func (s *sequence) last(ctx context.Context, chat string) (last lastSent, err error) {
	last, _, err = s.lastSent.Get(ctx, s.key(chat))
	if errors.Is(err, store.ErrNotFound) {
		return lastSent{}, nil
	}
	return last, err
}

// noteSent records that d was sent, before it leaves the outbox.
func (s *sequence) noteSent(ctx context.Context, d *delivery) error {
	p, err := s.tracer.Position(ctx, d.reply)
	if err != nil || len(d.record.Sent) == 0 {
		return err
	}
	sent := lastSent{Reply: d.id, Position: p, Sent: d.record.Sent, Time: time.Now()}
	return s.lastSent.Set(ctx, s.key(d.reply.To.Chat), sent)
}

// firstDoubt returns the doubt about d, which was in the outbox at the start and is the
// first one there for its chat: whether the first of parts was sent.
func (s *sequence) firstDoubt(ctx context.Context, d *delivery, parts []chat.Reply) (*unsure, error) {
	last, err := s.last(ctx, d.reply.To.Chat)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	u := unsureOf(parts[0], 0, d.after)
	if last.Reply != d.id {
		u.After = max(u.After, last.Position, s.base[d.reply.To.Chat])
	}
	return &u, nil
}

// unsureOf returns what is known of part, message i of its reply, if it may have been
// sent after that position.
func unsureOf(part chat.Reply, i int, after Position) unsure {
	return unsure{To: part.To, After: after, Index: i, Says: digest(part), Ask: part.Ask, Files: part.Files}
}
