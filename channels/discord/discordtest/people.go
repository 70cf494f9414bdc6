package discordtest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// A User is a person or a bot.
type User struct {
	ID       string `json:"id"`
	Username string `json:"username"`
	Full     string `json:"global_name,omitempty"`
	Bot      bool   `json:"bot,omitempty"`
}

// A Message is what a channel shows of one message.
type Message struct {
	ID        string
	From      User
	Text      string
	Edits     []string // the texts it had before, oldest first
	ReplyTo   string
	Files     []File
	Buttons   []Button
	Reactions []string // of the bot
	Preview   bool     // links may be unfurled
	Pings     bool     // it may ping more people than whom it answers
	edited    time.Time
	more      map[string]any
}

// FromBot reports whether the bot under test sent m.
func (m Message) FromBot() bool { return m.From.Bot }

// A File is attached to a message.
type File struct {
	ID    string
	Name  string
	Type  string
	Data  []byte
	Voice bool // it is a voice message
}

// A Button is below a message.
type Button struct{ Label, ID string }

// A room is a channel or a thread.
type room struct {
	id       string
	kind     int // 0 in a server, 1 private, 11 a thread
	guild    string
	parent   string
	person   User
	messages []Message
	last     string // id of the last message, deleted or not
	gone     int    // code of the refusal, 0 while the bot may write
	changed  chan struct{}
}

// room returns the channel, and creates it if need be. s.mu is held.
func (s *Server) room(id string) *room {
	r := s.rooms[id]
	if r == nil {
		r = &room{id: id, guild: "900", changed: make(chan struct{})}
		s.rooms[id] = r
	}
	return r
}

func (r *room) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *room) add(m Message) {
	r.messages = append(r.messages, m)
	r.last = m.ID
}

func (r *room) find(id string) *Message {
	if i := slices.IndexFunc(r.messages, func(m Message) bool { return m.ID == id }); i >= 0 {
		return &r.messages[i]
	}
	return nil
}

// DM returns the private channel with a person, and creates it if need be.
func (s *Server) DM(userID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dm(userID).id
}

func (s *Server) dm(user string) *room {
	r := s.room("7" + strings.Repeat("0", 4) + user)
	r.kind, r.guild, r.person = 1, "", User{ID: user, Username: "person" + user}
	return r
}

// Channel returns a new channel of the server with that id. In each the bot has the role "555".
func (s *Server) Channel(guild string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(s.id())
	r.guild = guild
	return r.id
}

// Thread returns a new thread of the channel.
func (s *Server) Thread(channel string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(s.id())
	r.kind, r.parent, r.guild = 11, channel, s.room(channel).guild
	return r.id
}

// Refuse makes requests about the channel fail: 403 with code 50001 (the bot
// was removed), 50007 (the person accepts no messages), or 404 with 10003 (it is gone).
func (s *Server) Refuse(channel string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(channel).gone = code
}

// An Option says more about a message that a person writes.
type Option func(*Message)

// ReplyTo makes it a reply.
func ReplyTo(message string) Option { return func(m *Message) { m.ReplyTo = message } }

// Attach adds files to it.
func Attach(files ...File) Option { return func(m *Message) { m.Files = append(m.Files, files...) } }

// With adds or replaces fields of Discord's message. A nil value removes one.
func With(fields map[string]any) Option {
	return func(m *Message) {
		if m.more == nil {
			m.more = map[string]any{}
		}
		maps.Copy(m.more, fields)
	}
}

// Say lets a person write text and returns the id of the message.
func (s *Server) Say(channel, userID, name, text string, opts ...Option) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(channel)
	m := Message{ID: s.id(), From: User{ID: userID, Username: cmp.Or(name, "person"+userID)}, Text: text}
	for _, o := range opts {
		o(&m)
	}
	for i, f := range m.Files {
		m.Files[i] = s.keep(r, f)
	}
	r.add(m)
	s.dispatch(r, "MESSAGE_CREATE", s.json(r, m, true))
	r.notify()
	s.notify()
	return m.ID
}

// keep stores a file at the server of files. s.mu is held.
func (s *Server) keep(r *room, f File) File {
	f.ID = s.id()
	s.files[s.path(r, f)] = f.Data
	return f
}

func (s *Server) path(r *room, f File) string { return "/attachments/" + r.id + "/" + f.ID }

// Edit lets the writer of a message change it.
func (s *Server) Edit(channel, message, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(channel)
	m := r.find(message)
	if m == nil {
		panic(fmt.Sprintf("discordtest: channel %s has no message %s", channel, message))
	}
	m.Edits = append(m.Edits, m.Text)
	m.Text = text
	m.edited = time.Now()
	s.dispatch(r, "MESSAGE_UPDATE", s.json(r, *m, true))
	r.notify()
}

// Unfurl sends the event that follows when Discord has loaded the preview of a link:
// the message changes, but not its text.
func (s *Server) Unfurl(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(channel)
	s.dispatch(r, "MESSAGE_UPDATE", s.json(r, *r.find(message), true))
}

// Delete makes a message disappear.
func (s *Server) Delete(channel, message string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(channel).delete(message)
	s.notify()
}

func (r *room) delete(id string) {
	r.messages = slices.DeleteFunc(r.messages, func(m Message) bool { return m.ID == id })
	r.notify()
}

// An Interaction is the use of a command or the press of a button.
type Interaction struct {
	ID      string
	Token   string
	Acked   bool
	Late    bool // nobody answered in time: the person reads that the bot did not respond
	Says    string
	Quiet   bool // only to whom it answers
	Preview bool // links may be unfurled
	timer   *time.Timer
}

// Command lets a person use a command, and returns the id of the interaction.
func (s *Server) Command(channel, userID, name, text string) string {
	data := map[string]any{"id": "1", "name": name, "type": 1}
	if text != "" {
		data["options"] = []any{map[string]any{"name": "text", "type": 3, "value": text}}
	}
	return s.interact(channel, userID, 2, map[string]any{"data": data})
}

// Press lets a person press the button with that custom id below a message, whether
// or not it is there.
func (s *Server) Press(channel, userID, message, button string) string {
	return s.interact(channel, userID, 3, map[string]any{
		"data":    map[string]any{"custom_id": button, "component_type": 2},
		"message": map[string]any{"id": message, "channel_id": channel},
	})
}

func (s *Server) interact(channel, user string, kind int, more map[string]any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(channel)
	i := &Interaction{ID: s.id(), Token: "secret-of-the-interaction"}
	s.interactions[i.ID] = i
	i.timer = time.AfterFunc(s.cfg.Patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		i.Late = !i.Acked
		s.notify()
	})
	d := map[string]any{
		"id": i.ID, "application_id": "100", "type": kind, "token": i.Token, "version": 1, "channel_id": channel,
		"channel": map[string]any{"id": channel, "type": r.kind, "parent_id": r.parent},
	}
	u := User{ID: user, Username: "person" + user}
	if r.guild != "" {
		d["guild_id"], d["member"] = r.guild, map[string]any{"user": u, "nick": nil, "roles": []string{}}
	} else {
		d["user"] = u
	}
	maps.Copy(d, more)
	s.dispatch(r, "INTERACTION_CREATE", d)
	return i.ID
}

// Replay sends the last event once more.
func (s *Server) Replay() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.sessions {
		if n := len(ses.sent); n > 0 {
			s.send(ses, ses.sent[n-1].Type, ses.sent[n-1].Data)
		}
	}
}

// Push sends the bot an event, which may be nonsense.
func (s *Server) Push(kind string, data string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ses := range s.sessions {
		s.send(ses, kind, json.RawMessage(data))
	}
}

// json returns m as the API shows it. Events have more fields than history.
func (s *Server) json(r *room, m Message, event bool) map[string]any {
	d := map[string]any{
		"id": m.ID, "channel_id": r.id, "type": 0, "author": m.From, "content": m.Text,
		"timestamp": madeAt(m.ID), "edited_timestamp": nil,
		"mentions": s.mentions(m.Text), "mention_roles": roles(m.Text), "attachments": s.attachments(r, m),
		"embeds": []any{}, "pinned": false, "tts": false, "flags": 0, "components": []any{},
	}
	if slices.ContainsFunc(m.Files, func(f File) bool { return f.Voice }) {
		d["flags"] = 1 << 13
	}
	if !m.edited.IsZero() {
		d["edited_timestamp"] = m.edited.UTC().Format(time.RFC3339Nano)
	}
	if event && r.guild != "" {
		d["guild_id"], d["member"] = r.guild, map[string]any{"nick": nil}
	}
	if m.ReplyTo != "" {
		d["type"], d["message_reference"] = 19, map[string]any{"type": 0, "message_id": m.ReplyTo, "channel_id": r.id}
		if to := r.find(m.ReplyTo); to != nil {
			d["referenced_message"] = s.json(r, *to, false)
		}
	}
	for k, v := range m.more {
		if d[k] = v; v == nil {
			delete(d, k)
		}
	}
	if s.cfg.Blind && !m.From.Bot && r.kind != 1 {
		d["content"], d["attachments"] = "", []any{}
	}
	return d
}

func (s *Server) attachments(r *room, m Message) []any {
	list := []any{}
	for _, f := range m.Files {
		a := map[string]any{
			"id": f.ID, "filename": f.Name, "content_type": f.Type, "size": len(f.Data),
			"url": fmt.Sprintf("%s%s/%s?ex=%d", s.http.URL, s.path(r, f), "file", time.Now().Unix()),
		}
		if f.Voice {
			a["duration_secs"], a["waveform"] = 2.5, "AAAA"
		}
		list = append(list, a)
	}
	return list
}

// mentions returns the people whom text mentions.
func (s *Server) mentions(text string) []User {
	us := []User{}
	for _, part := range strings.Split(text, "<@")[1:] {
		id, _, ok := strings.Cut(strings.TrimPrefix(part, "!"), ">")
		switch {
		case !ok || strings.HasPrefix(id, "&"):
		case id == s.bot.ID:
			us = append(us, s.bot)
		default:
			us = append(us, User{ID: id, Username: "person" + id})
		}
	}
	return us
}

func roles(text string) []string {
	ids := []string{}
	for _, part := range strings.Split(text, "<@&")[1:] {
		if id, _, ok := strings.Cut(part, ">"); ok {
			ids = append(ids, id)
		}
	}
	return ids
}
