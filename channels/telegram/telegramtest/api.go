package telegramtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
)

// An apiError is an answer of the API that refuses a request.
type apiError struct {
	Code   int
	Text   string
	Params map[string]any
}

func bad(format string, args ...any) *apiError {
	return &apiError{Code: http.StatusBadRequest, Text: "Bad Request: " + fmt.Sprintf(format, args...)}
}

func conflict(reason string) *apiError {
	return &apiError{Code: http.StatusConflict, Text: "Conflict: " + reason}
}

// params are the arguments of a request, objects as JSON.
type params map[string]string

func (p params) int(name string) int64 {
	n, _ := strconv.ParseInt(p[name], 10, 64)
	return n
}

func (p params) object(name string) map[string]any {
	var o map[string]any
	_ = json.Unmarshal([]byte(p[name]), &o)
	return o
}

// methods are all methods but getUpdates, which waits. s.mu is held.
var methods = map[string]func(*Server, params) (any, *apiError){
	"getMe":           (*Server).getMe,
	"sendMessage":     (*Server).sendMessage,
	"editMessageText": (*Server).editMessageText,
	"deleteMessage":   (*Server).deleteMessage,

	"editMessageReplyMarkup": (*Server).editMessageReplyMarkup,

	"sendChatAction": (*Server).sendChatAction,
	"getFile":        (*Server).getFile,
	"sendPhoto":      sendFile("photo"),
	"sendDocument":   sendFile("document"),
	"sendAudio":      sendFile("audio"),
	"sendVideo":      sendFile("video"),
	"sendVoice":      sendFile("voice"),
	"sendMediaGroup": (*Server).sendMediaGroup,

	"answerCallbackQuery": (*Server).answerCallbackQuery,
	"setMessageReaction":  (*Server).setMessageReaction,

	"setMyCommands": (*Server).setMyCommands,
	"getMyCommands": func(s *Server, _ params) (any, *apiError) { return s.commands, nil },
	"setWebhook":    (*Server).setWebhook,
	"deleteWebhook": (*Server).deleteWebhook,
}

// ServeHTTP is the Bot API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, file := strings.CutPrefix(r.URL.Path, "/file")
	token, method, _ := strings.Cut(strings.TrimPrefix(path, "/bot"), "/")
	if token != s.cfg.Token {
		answer(w, nil, &apiError{Code: http.StatusUnauthorized, Text: "Unauthorized"})
		return
	}
	if file {
		s.download(w, r, method)
		return
	}
	do := methods[method]
	if do == nil && method != "getUpdates" {
		answer(w, nil, &apiError{Code: http.StatusNotFound, Text: "Not Found"})
		return
	}
	p, ups, err := read(r)
	if err != nil {
		answer(w, nil, bad("can't parse request: %v", err))
		return
	}
	event := Event{Method: method, Chat: p.int("chat_id"), Params: p}
	s.emit(event)
	fault := s.fault(method, event.Chat)
	defer s.count(method)
	if fault.before(s, w, r) {
		return
	}
	var result any
	var failure *apiError
	if method == "getUpdates" {
		result, failure = s.getUpdates(r, p)
	} else {
		s.mu.Lock()
		for name, up := range ups { // the argument names it
			p[name] = fmt.Sprint("upload", s.nextID, " ", name)
			s.uploads[p[name]] = up
		}
		result, failure = do(s, p)
		clear(s.uploads)
		s.mu.Unlock()
	}
	event.Done, event.OK = true, failure == nil
	s.emit(event)
	if fault.DropAfter {
		panic(http.ErrAbortHandler)
	}
	if fault.Answer != "" && failure == nil {
		body := strings.ReplaceAll(fault.Answer, "{id}", fmt.Sprint(numberOf(result)))
		_, _ = io.WriteString(w, body) // the client may be gone
		return
	}
	answer(w, result, failure)
}

func (s *Server) count(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[method]++
	s.notify()
}

// read returns the arguments of r, in any of the ways the API takes them, and
// the files in it by the name of their field.
func read(r *http.Request) (p params, ups map[string]uploaded, err error) {
	p = params{}
	for k, v := range r.URL.Query() {
		p[k] = v[0]
	}
	kind, opts, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "multipart/form-data":
		ups, err = readForm(p, multipart.NewReader(r.Body, opts["boundary"]))
		return p, ups, err
	case "application/json":
		var body map[string]json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return nil, nil, err
		}
		for k, raw := range body {
			var text string
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
			p[k] = text
		}
	default:
		if err := r.ParseForm(); err != nil {
			return nil, nil, err
		}
		for k, v := range r.PostForm {
			p[k] = v[0]
		}
	}
	return p, nil, nil
}

func readForm(p params, form *multipart.Reader) (map[string]uploaded, error) {
	ups := map[string]uploaded{}
	for {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) || err != nil && len(p) == 0 { // a form without fields has no end mark
			return ups, nil
		}
		if err != nil {
			return nil, err
		}
		val, err := io.ReadAll(part)
		name := part.FormName()
		_, twice := p[name]
		_, again := ups[name]
		switch {
		case err != nil:
			return nil, err
		case name == "" || twice || again:
			return nil, fmt.Errorf("field %q has no name or comes twice", name)
		case part.FileName() != "":
			ups[name] = uploaded{part.FileName(), val}
		default:
			p[name] = string(val)
		}
	}
}

// verbatim is a result that is sent as it is, whether or not it is JSON.
type verbatim []byte

func answer(w http.ResponseWriter, result any, failure *apiError) {
	w.Header().Set("Content-Type", "application/json")
	body := map[string]any{"ok": true, "result": result}
	if failure != nil {
		w.WriteHeader(failure.Code)
		body = map[string]any{"ok": false, "error_code": failure.Code, "description": failure.Text}
		if failure.Params != nil {
			body["parameters"] = failure.Params
		}
	}
	if raw, ok := result.(verbatim); ok && failure == nil {
		_, _ = fmt.Fprintf(w, `{"ok":true,"result":%s}`, raw)
		return
	}
	_ = json.NewEncoder(w).Encode(body) // the client is gone
}

// numberOf returns the number of the message that result is, or of the first
// one of an album.
func numberOf(result any) any {
	if album, ok := result.([]any); ok {
		result = album[0]
	}
	m, _ := result.(map[string]any)
	return m["message_id"]
}

func botID(token string) int64 {
	id, _, _ := strings.Cut(token, ":")
	n, _ := strconv.ParseInt(id, 10, 64)
	return n
}

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
