package telegramtest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A User is a person or a bot.
type User struct {
	ID        int64  `json:"id"`
	IsBot     bool   `json:"is_bot"`
	FirstName string `json:"first_name"`
	Username  string `json:"username,omitempty"`
}

// A Message is what a chat shows of one message.
type Message struct {
	ID       int
	Thread   int
	From     User
	Text     string   // as shown
	Entities []Entity // of Text
	Raw      string   // as the bot sent it, with its markup
	ReplyTo  int
	Edits    []string // the texts it had before, oldest first
	Preview  bool     // links may be unfurled

	Files     []File // one at most; Text is its caption then
	Album     string // the same of all that are shown together
	Buttons   [][]Button
	Reactions []string // that the bot set on it, "" for none, oldest first
}

// FromBot reports whether the bot under test sent m.
func (m Message) FromBot() bool { return m.From.IsBot }

// A room is a chat.
type room struct {
	id       int64
	messages []Message
	last     int // id of the newest message of a supergroup, whose messages have numbers of their own
	topics   map[int]bool
	refuses  string // "bot was blocked by the user"; empty if it does not
	movedTo  int64
	title    string
	typing   int
	changed  chan struct{}

	noReactions bool
}

// room returns the chat, and creates it if need be. s.mu is held.
func (s *Server) room(id int64) *room {
	r := s.chats[id]
	if r == nil {
		r = &room{
			id:      id,
			topics:  map[int]bool{},
			changed: make(chan struct{}),
			title:   "Group " + strconv.FormatInt(-id, 10),
		}
		s.chats[id] = r
	}
	return r
}

func (r *room) notify() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *room) find(id int) *Message {
	i, ok := slices.BinarySearchFunc(r.messages, id, func(m Message, id int) int { return m.ID - id })
	if !ok {
		return nil
	}
	return &r.messages[i]
}

// kind is Telegram's type of the chat.
func (r *room) kind() string {
	switch {
	case r.id > 0:
		return "private"
	case strings.HasPrefix(strconv.FormatInt(r.id, 10), "-100"):
		return "supergroup"
	}
	return "group"
}

func (r *room) json() map[string]any {
	c := map[string]any{"id": r.id, "type": r.kind()}
	if r.id > 0 {
		c["first_name"] = "Person " + strconv.FormatInt(r.id, 10)
		return c
	}
	c["title"] = r.title
	if len(r.topics) > 0 {
		c["is_forum"] = true
	}
	return c
}

// An Option says more about a message that a person writes.
type Option func(*draft)

// A draft is a message that a person is about to send.
type draft struct {
	from    User
	thread  int
	replyTo int
	more    map[string]any
	file    *File
	caption string
}

// As sets the id and name of the writer. By default the id is the chat's own in
// private chats, and 77 elsewhere.
func As(id int64, name string) Option {
	return func(m *draft) { m.from = User{ID: id, FirstName: name} }
}

// From makes the writer u, who may be a bot.
func From(u User) Option { return func(m *draft) { m.from = u } }

// InTopic sends it to a topic of a forum, which is created if need be.
func InTopic(thread int) Option { return func(m *draft) { m.thread = thread } }

// ReplyTo makes it a reply.
func ReplyTo(message int) Option { return func(m *draft) { m.replyTo = message } }

// Quoting makes it a reply to a part of a message.
func Quoting(message int, part string) Option {
	return func(m *draft) {
		ReplyTo(message)(m)
		With(map[string]any{"quote": map[string]any{"text": part, "position": 0}})(m)
	}
}

// With adds or replaces fields of Telegram's message. A nil value removes one.
func With(fields map[string]any) Option {
	return func(m *draft) {
		if m.more == nil {
			m.more = map[string]any{}
		}
		maps.Copy(m.more, fields)
	}
}

// Say lets a person write text and returns the id of the message. Chats above
// 0 are private, those that begin with -100 are supergroups, others groups. The
// chat is created if need be.
func (s *Server) Say(chat int64, text string, opts ...Option) int { return s.post(chat, text, opts) }

func (s *Server) post(chat int64, text string, opts []Option) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := newDraft(chat, opts)
	r := s.room(chat)
	if m.thread != 0 {
		r.topics[m.thread] = true
	}
	message := Message{Thread: m.thread, From: m.from, Text: text, ReplyTo: m.replyTo}
	if m.file != nil {
		s.keep(m.file)
		message.Text = m.caption
		message.Files = []File{*m.file}
	}
	message.Album, _ = m.more["media_group_id"].(string)
	message.ID = s.nextMessage(r)
	r.messages = append(r.messages, message)
	s.announce("message", r, message, m.more)
	r.notify()
	return message.ID
}

// nextMessage returns the number of the next message in r. As at Telegram, each
// supergroup numbers its own, and one counter of the bot numbers those of all
// its private chats and basic groups, whoever writes them. s.mu is held.
func (s *Server) nextMessage(r *room) int {
	last := &s.lastMessage
	if r.kind() == "supergroup" {
		last = &r.last
	}
	*last++
	return *last
}

// SkipMessages uses up n numbers of the counter of a chat, as messages do that
// the bot does not see.
func (s *Server) SkipMessages(chat int64, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.nextMessage(s.room(chat))
	}
}

func newDraft(chat int64, opts []Option) draft {
	m := draft{from: User{ID: chat, FirstName: "Person " + strconv.FormatInt(chat, 10)}}
	if chat < 0 {
		m.from = User{ID: 77, FirstName: "Person 77"}
	}
	for _, o := range opts {
		o(&m)
	}
	return m
}

// Edit lets the writer of a message change it.
func (s *Server) Edit(chat int64, message int, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(chat)
	m := r.find(message)
	if m == nil {
		panic(fmt.Sprintf("telegramtest: chat %d has no message %d", chat, message))
	}
	m.Edits = append(m.Edits, m.Text)
	m.Text = text
	s.announce("edited_message", r, *m, map[string]any{"edit_date": time.Now().Unix()})
	r.notify()
}

// Push sends the bot an update that consists of its id and fields, which are JSON
// such as `"poll":{}`, and returns its id. They may be nonsense.
func (s *Server) Push(fields string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.push(Update{Raw: fmt.Appendf(nil, `{"update_id":%d,%s}`, s.nextID, fields)})
}

// Renumber gives the next update that id, as Telegram does at random after a week
// without updates.
func (s *Server) Renumber(id int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextID = id
}

// Block makes a person block the bot, or a group remove it.
func (s *Server) Block(chat int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.room(chat)
	r.refuses = "bot was blocked by the user"
	if chat < 0 {
		r.refuses = "bot was kicked from the " + r.kind() + " chat"
	}
}

// Unblock undoes Block.
func (s *Server) Unblock(chat int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(chat).refuses = ""
}

// CloseTopic makes a topic disappear.
func (s *Server) CloseTopic(chat int64, thread int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.room(chat).topics, thread)
}

// Delete makes a message disappear.
func (s *Server) Delete(chat int64, message int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room(chat).delete(message)
	s.notify()
}

func (r *room) delete(id int) {
	r.messages = slices.DeleteFunc(r.messages, func(m Message) bool { return m.ID == id })
	r.notify()
}

// Migrate turns the group from into the supergroup to, whose messages are
// numbered from 1. The bot is told unless silently.
func (s *Server) Migrate(from, to int64, silently bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, after := s.room(from), s.room(to)
	before.movedTo, after.title = to, before.title
	if silently {
		return
	}
	admin := User{ID: 77, FirstName: "Person 77"}
	leaving := Message{ID: s.nextMessage(before), From: admin}
	s.announce("message", before, leaving, map[string]any{"migrate_to_chat_id": to})
	joining := Message{ID: s.nextMessage(after), From: admin}
	s.announce("message", after, joining, map[string]any{"migrate_from_chat_id": from})
}

// announce queues an update about m. s.mu is held.
func (s *Server) announce(kind string, r *room, m Message, more map[string]any) {
	msg := s.json(r, m)
	if reply := r.find(m.ReplyTo); reply != nil {
		msg["reply_to_message"] = s.json(r, *reply)
	}
	for k, v := range more {
		if msg[k] = v; v == nil {
			delete(msg, k)
		}
	}
	s.tellBot(kind, r.id, m.ID, msg)
}

// tellBot queues an update of that kind. s.mu is held.
func (s *Server) tellBot(kind string, chat int64, message int, fields map[string]any) {
	raw, err := json.Marshal(map[string]any{"update_id": s.nextID, kind: fields})
	if err != nil {
		panic(err)
	}
	if allowed := s.allowed; allowed == nil || slices.Contains(allowed, kind) {
		s.push(Update{Chat: chat, Message: message, Raw: raw})
	}
}

// json returns m as the API shows it.
func (s *Server) json(r *room, m Message) map[string]any {
	msg := map[string]any{
		"message_id": m.ID, "from": m.From, "chat": r.json(), "date": time.Now().Unix(),
	}
	for _, f := range m.Files {
		msg[f.Kind] = f.fields()
	}
	if m.Album != "" {
		msg["media_group_id"] = m.Album
	}
	if m.Text != "" && len(m.Files) > 0 {
		msg["caption"] = m.Text
	} else if m.Text != "" {
		msg["text"] = m.Text
	}
	if m.Thread != 0 {
		msg["message_thread_id"], msg["is_topic_message"] = m.Thread, true
	}
	return msg
}

// push queues u. s.mu is held.
func (s *Server) push(u Update) int64 {
	u.ID = s.nextID
	s.nextID++
	s.pending = append(s.pending, u)
	s.notify()
	return u.ID
}
