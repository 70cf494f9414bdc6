package telegramtest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
)

func (s *Server) getMe(params) (any, *apiError) {
	return map[string]any{
		"id": s.bot.ID, "is_bot": true, "first_name": s.bot.FirstName, "username": s.bot.Username,
		"can_join_groups": true, "can_read_all_group_messages": !s.cfg.Privacy,
	}, nil
}

// getUpdates confirms the updates before offset, and waits for others.
func (s *Server) getUpdates(r *http.Request, p params) (any, *apiError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hook.url != "" {
		return nil, conflict("can't use getUpdates method while webhook is active;" +
			" use deleteWebhook to delete the webhook first")
	}
	if s.polling != nil {
		close(s.polling)
	}
	me := make(chan struct{})
	s.polling = me
	defer func() {
		if s.polling == me {
			s.polling = nil
		}
	}()
	if kinds := p["allowed_updates"]; kinds != "" {
		s.allowed = nil
		_ = json.Unmarshal([]byte(kinds), &s.allowed)
	}
	s.confirm(p.int("offset"))
	limit := int(p.int("limit"))
	if limit < 1 || limit > 100 {
		limit = 100
	}
	timeout := time.NewTimer(time.Duration(p.int("timeout")) * time.Second)
	defer timeout.Stop()
	for over := false; len(s.pending) == 0 && !over; {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
		case <-me:
		case <-timeout.C:
			over = true
		case <-r.Context().Done():
			over = true
		case <-s.closed.Done():
			over = true
		}
		s.mu.Lock()
		if s.polling != me {
			return nil, conflict("terminated by other getUpdates request;" +
				" make sure that only one bot instance is running")
		}
	}
	var raws [][]byte
	for _, u := range s.pending[:min(limit, len(s.pending))] {
		raws = append(raws, u.Raw)
	}
	return verbatim("[" + string(bytes.Join(raws, []byte(","))) + "]"), nil
}

// confirm forgets the updates before offset, unless that is from before the ids
// of updates began anew. s.mu is held.
func (s *Server) confirm(offset int64) {
	if offset > s.nextID {
		return
	}
	i := slices.IndexFunc(s.pending, func(u Update) bool { return u.ID >= offset })
	if i < 0 {
		i = len(s.pending)
	}
	if i == 0 || offset <= 0 {
		return
	}
	s.done = append(s.done, s.pending[:i]...)
	s.pending = s.pending[i:]
	s.notify()
}

// open returns the chat that p is for, if the bot may write there.
func (s *Server) open(p params) (*room, *apiError) {
	id, ok := p["chat_id"]
	if !ok || id == "" {
		return nil, bad("chat_id is empty")
	}
	r := s.chats[p.int("chat_id")]
	switch {
	case r == nil:
		return nil, bad("chat not found")
	case r.refuses != "":
		return nil, &apiError{Code: http.StatusForbidden, Text: "Forbidden: " + r.refuses}
	case r.movedTo != 0:
		failure := bad("group chat was upgraded to a supergroup chat")
		failure.Params = map[string]any{"migrate_to_chat_id": r.movedTo}
		return nil, failure
	}
	if thread := int(p.int("message_thread_id")); thread != 0 && !r.topics[thread] { // 1, General, must not be named
		return nil, bad("message thread not found")
	}
	return r, nil
}

// marked returns what is shown of text.
func parseText(text, mode string) (shown string, entities []Entity, failure *apiError) {
	switch mode {
	case "":
		return text, nil, nil
	case "HTML":
		shown, entities, err := ParseHTML(text)
		if err != nil {
			return "", nil, bad("can't parse entities: %v", err)
		}
		return shown, entities, nil
	}
	return "", nil, bad("unsupported parse_mode")
}

// text returns what is shown of p's text, within Telegram's limits.
func text(p params) (string, []Entity, *apiError) {
	shown, entities, failure := parseText(p["text"], p["parse_mode"])
	if failure != nil {
		return "", nil, failure
	}
	if strings.TrimSpace(shown) == "" {
		return "", nil, bad("message text is empty")
	}
	if len(utf16.Encode([]rune(shown))) > 4096 {
		return "", nil, bad("message is too long")
	}
	return shown, entities, nil
}

func preview(p params) bool {
	off, _ := p.object("link_preview_options")["is_disabled"].(bool)
	return !off
}

func (s *Server) sendMessage(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	if failure := s.limit(r.id); failure != nil {
		return nil, failure
	}
	shown, entities, failure := text(p)
	if failure != nil {
		return nil, failure
	}
	m, failure := s.compose(r, p)
	if failure != nil {
		return nil, failure
	}
	m.Text, m.Entities, m.Raw, m.Preview = shown, entities, p["text"], preview(p)
	return s.json(r, s.show(r, m)), nil
}

// compose begins a message of the bot's.
func (s *Server) compose(r *room, p params) (m Message, failure *apiError) {
	m = Message{Thread: int(p.int("message_thread_id")), From: s.bot}
	if m.Buttons, failure = buttons(p); failure != nil {
		return m, failure
	}
	if to := p.object("reply_parameters"); to != nil {
		id, _ := to["message_id"].(float64)
		if r.find(int(id)) != nil {
			m.ReplyTo = int(id)
		} else if anyway, _ := to["allow_sending_without_reply"].(bool); !anyway {
			return m, bad("message to be replied not found")
		}
	}
	return m, nil
}

// show adds m to the chat.
func (s *Server) show(r *room, m Message) Message {
	m.ID = s.nextMessage(r)
	r.messages = append(r.messages, m)
	r.notify()
	s.notify()
	return m
}

const notModified = "message is not modified: specified new message content and reply markup" +
	" are exactly the same as a current content and reply markup of the message"

func (s *Server) editMessageText(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	if failure := s.limit(r.id); failure != nil {
		return nil, failure
	}
	m := r.find(int(p.int("message_id")))
	switch {
	case m == nil:
		return nil, bad("message to edit not found")
	case m.From.ID != s.bot.ID:
		return nil, bad("message can't be edited")
	case len(m.Files) > 0:
		return nil, bad("there is no text in the message to edit")
	}
	shown, entities, failure := text(p)
	if failure != nil {
		return nil, failure
	}
	below, failure := buttons(p)
	if failure != nil {
		return nil, failure
	}
	if shown == m.Text && slices.Equal(entities, m.Entities) && reflect.DeepEqual(below, m.Buttons) {
		return nil, bad("%s", notModified)
	}
	m.Edits = append(m.Edits, m.Text)
	m.Text, m.Entities, m.Raw, m.Preview, m.Buttons = shown, entities, p["text"], preview(p), below
	r.notify()
	s.notify()
	return s.json(r, *m), nil
}

// editMessageReplyMarkup changes the buttons of a message of the bot's: without
// markup it takes them away.
func (s *Server) editMessageReplyMarkup(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	if failure := s.limit(0); failure != nil {
		return nil, failure
	}
	m := r.find(int(p.int("message_id")))
	switch {
	case m == nil:
		return nil, bad("message to edit not found")
	case m.From.ID != s.bot.ID:
		return nil, bad("message can't be edited")
	}
	below, failure := buttons(p)
	if failure != nil {
		return nil, failure
	}
	if reflect.DeepEqual(below, m.Buttons) {
		return nil, bad("%s", notModified)
	}
	m.Buttons = below
	r.notify()
	s.notify()
	return s.json(r, *m), nil
}

func (s *Server) deleteMessage(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	id := int(p.int("message_id"))
	switch m := r.find(id); {
	case m == nil:
		return nil, bad("message to delete not found")
	case m.From.ID != s.bot.ID:
		return nil, bad("message can't be deleted")
	}
	r.delete(id)
	s.notify()
	return true, nil
}

func (s *Server) sendChatAction(p params) (any, *apiError) {
	r, failure := s.open(p)
	if failure != nil {
		return nil, failure
	}
	if p["action"] == "" {
		return nil, bad("wrong parameter action in request")
	}
	r.typing++
	return true, nil
}

func (s *Server) setMyCommands(p params) (any, *apiError) {
	var menu []struct {
		Command     string `json:"command"`
		Description string `json:"description"`
	}
	if err := json.Unmarshal([]byte(p["commands"]), &menu); err != nil {
		return nil, bad("can't parse commands JSON object")
	}
	for _, c := range menu {
		invalid := strings.Trim(c.Command, "abcdefghijklmnopqrstuvwxyz0123456789_")
		if c.Command == "" || len(c.Command) > 32 || invalid != "" {
			return nil, bad("BOT_COMMAND_INVALID")
		}
		if c.Description == "" || len(c.Description) > 256 {
			return nil, bad("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	s.commands = json.RawMessage(p["commands"])
	return true, nil
}
