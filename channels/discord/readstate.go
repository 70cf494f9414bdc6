package discord

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/store"
)

const maxUnaddressed = 50 // messages that are not for the bot and are read again after a crash

// A chatPosition says how far a chat was read, and where it is.
type chatPosition struct {
	Last  string `json:"last"` // id of the last message that was delivered or not for the bot
	Guild string `json:"guild,omitempty"`
	// All events of the chat up to Seq of that session were handled.
	Session string `json:"session,omitempty"`
	Seq     int64  `json:"seq,omitempty"`

	unaddressed int // messages that were not for the bot since the position was stored
}

// A readState knows how far each chat was read, and in which chats something may
// have been missed: in every new session, in each chat.
type readState struct {
	table   store.Table[chatPosition]
	tracker *tracker
	mode    string // which messages of servers are for the bot
	log     *slog.Logger

	mu        sync.Mutex
	positions map[string]*chatPosition // by chat
	session   string
	began     time.Time         // when the session began, or this process resumed it
	checked   map[string]string // by chat: the session in which it was read back, or needed no reading
	denied    map[string]bool   // by chat: Discord does not show its history
	joined    map[string]string // by server: an id from when the bot joined
	readBack  map[string]bool   // by message: it was read back, and its event may still arrive
}

func newReadState(table store.Table[chatPosition], tracker *tracker, mode string, log *slog.Logger) *readState {
	return &readState{
		table:     table,
		tracker:   tracker,
		mode:      mode,
		log:       log,
		positions: map[string]*chatPosition{},
		began:     time.Now(),
		checked:   map[string]string{},
		denied:    map[string]bool{},
		joined:    map[string]string{},
		readBack:  map[string]bool{},
	}
}

// load reads what is stored. known says whether the position in Discord's events is.
func (s *readState) load(ctx context.Context, known bool) error {
	s.session, _, _ = s.tracker.resumable()
	for entry, err := range s.table.Each(ctx, "") {
		id := entry.Key
		if id == positionKey {
			continue
		}
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return fmt.Errorf("read how far chats were read: %w", err)
		}
		if err == nil && snowflake.MatchString(entry.Value.Last) {
			s.positions[id] = &entry.Value
			continue
		}
		s.log.Error("damaged position of a chat, only new messages are read there", "chat", id) // P21
		if known {
			if err := s.tracker.resetOrigin(ctx); err != nil {
				return err
			}
		}
		if err := s.table.Delete(ctx, id); err != nil {
			return fmt.Errorf("forget how far a chat was read: %w", err)
		}
	}
	return nil
}

// beginSession forgets what holds for one session only.
func (s *readState) beginSession(session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.session = session
	s.began = time.Now()
	s.checked = map[string]string{}
	s.readBack = map[string]bool{}
}

// A chatRef names a chat and its server, if it has one.
type chatRef struct{ id, guild string }

// chatsByRecency returns all chats that were read, the most recent first.
func (s *readState) chatsByRecency() (chats []chatRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, p := range s.positions {
		chats = append(chats, chatRef{id: id, guild: p.Guild})
	}
	slices.SortFunc(chats, func(a, b chatRef) int {
		return compareIDs(s.positions[b.id].Last, s.positions[a.id].Last)
	})
	return chats
}

// missedIn returns the channels and threads of a server where messages were
// missed. The others need no reading in this session.
func (s *readState) missedIn(g guild) (missed []chatRef) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !g.Joined.IsZero() {
		s.joined[g.ID] = idBefore(g.Joined)
	}
	for _, c := range slices.Concat(g.Channels, g.Threads) {
		after := s.missedAfter(c.ID, g.ID)
		switch {
		case after == "" || s.denied[c.ID] || slices.Contains(silentTypes, c.Type):
		case snowflake.MatchString(c.Last) && compareIDs(c.Last, after) > 0:
			missed = append(missed, chatRef{id: c.ID, guild: g.ID})
		default:
			s.checked[c.ID] = s.session
		}
	}
	return missed
}

// missedAfter returns the id of the message after which something may have been
// missed in the chat, "" if nothing was. s.mu is held.
func (s *readState) missedAfter(id, guild string) string {
	if s.session == "" || s.checked[id] == s.session {
		return ""
	}
	if p := s.positions[id]; p != nil {
		return p.Last
	}
	private, server := s.tracker.bounds()
	switch {
	case guild == "":
		return private
	case s.mode == "none":
		return ""
	}
	return laterID(server, s.joined[guild])
}

// missed returns the session, and the id of the message after which something may
// have been missed in the chat, "" if nothing was.
func (s *readState) missed(id, guild string) (session, after string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.session, s.missedAfter(id, guild)
}

// setChecked notes that the chat was read back in that session.
func (s *readState) setChecked(id, session string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == session {
		s.checked[id] = session
	}
}

// resetChecked notes that more may be missed in the chat from now on.
func (s *readState) resetChecked(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.checked, id)
}

// wasHandled reports whether the message of e was handled before: before a
// restart, or when it was read back.
func (s *readState) wasHandled(w message, e *event, edited bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.readBack[w.ID] && !edited {
		delete(s.readBack, w.ID)
		return true
	}
	p := s.positions[w.Channel]
	return p != nil && p.Session == e.session && e.sequence <= p.Seq
}

// noteReadBack notes that the message was read back.
func (s *readState) noteReadBack(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if timeOf(id).After(s.began.Add(-floorMargin)) {
		s.readBack[id] = true
	}
}

// noteDenied notes that Discord does not show the history of the chat.
func (s *readState) noteDenied(id string, reason error) {
	s.mu.Lock()
	s.denied[id] = true
	known := s.positions[id] != nil
	s.mu.Unlock()
	if known {
		s.log.Warn("discord does not show missed messages", "chat", id, "err", reason)
	}
}

// storeIfUnknown stores that a chat is read from p on, unless a position is known. That is
// on disk when it returns: a chat that nobody knows is not read after a crash.
func (s *readState) storeIfUnknown(ctx context.Context, id string, p chatPosition) error {
	s.mu.Lock()
	known := s.positions[id] != nil
	s.mu.Unlock()
	if known {
		return nil
	}
	if err := s.table.Set(ctx, id, p); err != nil {
		return fmt.Errorf("store how far a chat was read: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.positions[id] == nil {
		s.positions[id] = &p
	}
	return nil
}

// note notes that w was read. It stores that at once if w was for the bot, and
// otherwise now and then. e is nil for a message that was read back.
func (s *readState) note(ctx context.Context, w message, e *event, addressed bool) {
	position, due := s.advance(w, e, addressed)
	if !due {
		return
	}
	// If this fails, the messages are only delivered once more (P2).
	if err := s.table.Set(store.Deferred(context.WithoutCancel(ctx)), w.Channel, position); err != nil {
		s.log.Warn("position of a chat not stored", "chat", w.Channel, "err", err)
	}
}

// advance moves the position of a chat to w, and reports whether it is due to be stored.
func (s *readState) advance(w message, e *event, addressed bool) (now chatPosition, due bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.positions[w.Channel]
	if p == nil {
		return chatPosition{}, false
	}
	p.Last = laterID(p.Last, w.ID)
	p.Guild = w.Guild
	if e != nil && e.sequence > 0 {
		p.Session = e.session
		p.Seq = e.sequence
	}
	p.unaddressed++
	if !addressed && p.unaddressed < maxUnaddressed {
		return chatPosition{}, false
	}
	p.unaddressed = 0
	return *p, true
}

// forget drops the position of a chat that no longer exists.
func (s *readState) forget(ctx context.Context, id string) {
	s.mu.Lock()
	delete(s.positions, id)
	s.mu.Unlock()
	if err := s.table.Delete(ctx, id); err != nil {
		s.log.Warn("could not clear the chat's position", "chat", id, "err", err)
	}
}
