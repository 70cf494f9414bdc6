package telegramtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strconv"
	"strings"
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
