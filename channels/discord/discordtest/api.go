package discordtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// An apiError is an answer of the API that refuses a request.
type apiError struct {
	Status int     `json:"-"`
	Code   int     `json:"code"`
	Text   string  `json:"message"`
	After  float64 `json:"retry_after,omitempty"`
}

func bad(format string, args ...any) *apiError {
	text := "Invalid Form Body: " + fmt.Sprintf(format, args...)
	return &apiError{Status: http.StatusBadRequest, Code: 50035, Text: text}
}

func missing(code int, what string) *apiError {
	return &apiError{Status: http.StatusNotFound, Code: code, Text: "Unknown " + what}
}

// A call is a request to the API.
type call struct {
	*http.Request
	room  *room // for routes about a channel
	files []File
	body
}

// A body has the fields of all requests that bots make.
type body struct {
	Content string `json:"content"`
	Flags   int    `json:"flags"`
	Nonce   string `json:"nonce"`
	Enforce bool   `json:"enforce_nonce"`
	Allowed *struct {
		Parse []string `json:"parse"`
	} `json:"allowed_mentions"`
	Rows *[]struct {
		Keys []struct {
			Label string `json:"label"`
			ID    string `json:"custom_id"`
		} `json:"components"`
	} `json:"components"`
	Reference *struct {
		Message string `json:"message_id"`
		Must    *bool  `json:"fail_if_not_exists"`
	} `json:"message_reference"`
	Recipient string `json:"recipient_id"`
	Type      int    `json:"type"` // of the answer to an interaction
	Data      struct {
		Content string `json:"content"`
		Flags   int    `json:"flags"`
	} `json:"data"`

	menu []map[string]any // the body, when it is a list
}

// routes are the API. s.mu is held; a nil answer is status 204.
var routes = map[string]func(*Server, *call) (any, *apiError){
	"GET /gateway":          (*Server).gatewayAddress,
	"GET /gateway/bot":      (*Server).gatewayBot,
	"GET /users/@me":        func(s *Server, _ *call) (any, *apiError) { return s.bot, nil },
	"GET /applications/@me": (*Server).application,

	"POST /users/@me/channels":            (*Server).openDM,
	"GET /channels/{id}":                  (*Server).getChannel,
	"GET /guilds/{id}/roles":              (*Server).getRoles,
	"GET /channels/{id}/messages":         (*Server).history,
	"POST /channels/{id}/messages":        (*Server).createMessage,
	"GET /channels/{id}/messages/{id}":    (*Server).getMessage,
	"PATCH /channels/{id}/messages/{id}":  (*Server).edit,
	"DELETE /channels/{id}/messages/{id}": (*Server).deleteMessage,
	"POST /channels/{id}/typing":          func(*Server, *call) (any, *apiError) { return nil, nil },

	"PUT /channels/{id}/messages/{id}/reactions/{emoji}/@me":    (*Server).setReaction,
	"DELETE /channels/{id}/messages/{id}/reactions/{emoji}/@me": (*Server).setReaction,
	"PUT /applications/{id}/commands":                           (*Server).setMenu,
	"POST /interactions/{id}/{token}/callback":                  (*Server).callback,
}

// handler is all of Discord.
func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	for name, do := range routes {
		pattern := strings.Replace(name, " ", " /api/v9", 1)
		pattern = strings.Replace(pattern, "/messages/{id}", "/messages/{message}", 1)
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.serve(w, r, name, do) })
	}
	mux.HandleFunc("/gateway/", s.gateway)
	mux.HandleFunc("/attachments/", s.serveFile)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, &apiError{Status: 404, Text: "404: Not Found"})
	})
	return mux
}

// serve answers a request of the route with that name.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, name string, do func(*Server, *call) (any, *apiError)) {
	callback := strings.HasSuffix(name, "/callback")
	if !callback && r.Header.Get("Authorization") != "Bot "+s.cfg.Token {
		answer(w, &apiError{Status: 401, Text: "401: Unauthorized"})
		return
	}
	c := &call{Request: r}
	failure := c.read()
	e := Event{Route: name}
	if strings.Contains(name, "/channels/{id}") {
		e.Channel = r.PathValue("id")
	}
	s.emit(e)
	f := s.fault(name, e.Channel, r)
	defer s.count(name)
	if f.before(s, w, r) {
		return
	}
	var out any
	s.mu.Lock()
	if failure == nil {
		failure = s.checkRequest(c, e, callback)
	}
	if failure == nil {
		out, failure = do(s, c)
	}
	raw, err := json.Marshal(out)
	s.mu.Unlock()
	if err != nil {
		panic(err)
	}
	e.Done = true
	s.emit(e)
	switch {
	case f.DropAfter:
		panic(http.ErrAbortHandler)
	case failure != nil:
		answer(w, failure)
	case out == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}
}

// checkRequest checks what is common to all routes. s.mu is held.
func (s *Server) checkRequest(c *call, e Event, callback bool) *apiError {
	if !callback && s.cfg.Limits {
		if failure := s.limit("", 50, time.Second); failure != nil {
			return failure
		}
		if e.Channel != "" {
			n, window := 5, 5*time.Second
			if strings.Contains(e.Route, "/reactions/") {
				n, window = 1, 250*time.Millisecond
			}
			if failure := s.limit(e.Route+e.Channel, n, window); failure != nil {
				return failure
			}
		}
	}
	if e.Channel == "" {
		return nil
	}
	c.room = s.rooms[e.Channel]
	switch {
	case c.room == nil, c.room.gone == 10003:
		return missing(10003, "Channel")
	case c.room.gone != 0:
		return &apiError{Status: 403, Code: c.room.gone, Text: "Missing Access"}
	}
	return nil
}

func (s *Server) limit(key string, n int, window time.Duration) *apiError {
	sent := s.limits[key]
	for len(sent) > 0 && time.Since(sent[0]) >= window {
		sent = sent[1:]
	}
	if s.limits[key] = append(sent, time.Now()); len(sent) < n {
		return nil
	}
	s.limits[key] = sent
	return &apiError{Status: 429, Text: "You are being rate limited.", After: (window - time.Since(sent[0])).Seconds()}
}

func (s *Server) count(route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[route]++
	s.notify()
}

func answer(w http.ResponseWriter, failure *apiError) {
	w.Header().Set("Content-Type", "application/json")
	if failure.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(failure.After)+1))
	}
	w.WriteHeader(failure.Status)
	_ = json.NewEncoder(w).Encode(failure) // the client is gone
}

// read reads the body, in either of the ways the API takes.
func (c *call) read() *apiError {
	kind, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type"))
	form := kind == "multipart/form-data"
	var raw []byte
	var err error
	if form {
		raw, err = c.form()
	} else {
		raw, err = io.ReadAll(c.Body)
	}
	switch {
	case err != nil:
		return bad("%v", err)
	case len(raw) > 0 && !form && kind != "application/json":
		text := "Expected \"Content-Type\" header to be one of {'application/json'}."
		return &apiError{Status: 400, Code: 50035, Text: text}
	case len(raw) == 0 && kind != "",
		len(raw) > 0 && json.Unmarshal(raw, &c.body) != nil && json.Unmarshal(raw, &c.menu) != nil:
		return &apiError{Status: 400, Code: 50109, Text: "The request body contains invalid JSON."}
	}
	return nil
}

func (c *call) form() (payload []byte, err error) {
	parts, err := c.MultipartReader()
	for err == nil {
		part, end := parts.NextPart()
		if errors.Is(end, io.EOF) {
			return payload, nil
		}
		if end != nil {
			return nil, end
		}
		var data []byte
		data, err = io.ReadAll(part)
		switch {
		case strings.Contains(part.Header.Get("Content-Disposition"), "filename*"):
			err = errors.New("names of files are UTF-8 as they are")
		case part.FormName() == "payload_json":
			payload = data
		default:
			c.files = append(c.files, File{Name: part.FileName(), Type: part.Header.Get("Content-Type"), Data: data})
		}
	}
	return nil, err
}

// serveFile serves files. Their addresses expire.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, ok := s.files[strings.TrimSuffix(r.URL.Path, "/file")]
	s.mu.Unlock()
	made, err := strconv.ParseInt(r.URL.Query().Get("ex"), 10, 64)
	if !ok || err != nil || time.Since(time.Unix(made, 0)) > 24*time.Hour {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "the token goes to the API only", http.StatusBadRequest)
		return
	}
	_, _ = w.Write(data)
}
