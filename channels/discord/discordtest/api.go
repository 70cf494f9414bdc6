package discordtest

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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

func (s *Server) gatewayAddress(*call) (any, *apiError) {
	return map[string]any{"url": s.GatewayURL}, nil
}

func (s *Server) gatewayBot(*call) (any, *apiError) {
	return map[string]any{"url": s.GatewayURL, "shards": 1, "session_start_limit": map[string]any{
		"total": s.cfg.Starts, "remaining": max(0, s.cfg.Starts-s.starts), "reset_after": 1000, "max_concurrency": 1,
	}}, nil
}

func (s *Server) application(*call) (any, *apiError) {
	flags := 1 << 19
	if s.cfg.Blind {
		flags = 0
	}
	return map[string]any{"id": "100", "name": "Parley", "flags": flags, "bot": s.bot}, nil
}

func (s *Server) openDM(c *call) (any, *apiError) {
	if n, err := strconv.ParseUint(c.Recipient, 10, 63); err != nil || n == 0 {
		return nil, bad("recipient_id")
	}
	r := s.dm(c.Recipient)
	return map[string]any{"id": r.id, "type": 1, "recipients": []User{r.person}}, nil
}

func (s *Server) getChannel(c *call) (any, *apiError) {
	r := c.room
	return map[string]any{"id": r.id, "type": r.kind, "guild_id": r.guild, "parent_id": cmp.Or(r.parent, "800")}, nil
}

func (s *Server) getRoles(c *call) (any, *apiError) {
	return []any{
		map[string]any{"id": c.PathValue("id"), "name": "@everyone"},
		map[string]any{"id": "555", "name": "Parley", "tags": map[string]any{"bot_id": s.bot.ID}},
	}, nil
}

// history returns a page of messages, newest first: the oldest after one, or the newest.
func (s *Server) history(c *call) (any, *apiError) {
	query := c.URL.Query()
	limit, err := strconv.Atoi(cmp.Or(query.Get("limit"), "50"))
	if err != nil || limit < 1 || limit > 100 {
		return nil, bad("limit: int value should be between 1 and 100")
	}
	ms := c.room.messages
	if after := query.Get("after"); after != "" {
		n, err := strconv.ParseInt(after, 10, 64)
		if err != nil {
			return nil, bad("after: not a snowflake")
		}
		ms = slices.DeleteFunc(slices.Clone(ms), func(m Message) bool {
			id, _ := strconv.ParseInt(m.ID, 10, 64)
			return id <= n
		})
		ms = ms[:min(limit, len(ms))]
	}
	page := []any{}
	for _, m := range slices.Backward(ms[max(0, len(ms)-limit):]) {
		page = append(page, s.json(c.room, m, false))
	}
	return page, nil
}

func (s *Server) getMessage(c *call) (any, *apiError) {
	m := c.room.find(c.PathValue("message"))
	if m == nil {
		return nil, missing(10008, "Message")
	}
	return s.json(c.room, *m, false), nil
}

// createMessage sends a message of the bot.
func (s *Server) createMessage(c *call) (any, *apiError) {
	if utf8.RuneCountInString(c.Nonce) > 25 {
		return nil, bad("nonce: must be 25 or fewer in length")
	}
	if c.Enforce && c.Nonce != "" {
		if m := c.room.find(s.nonces[c.room.id+c.Nonce]); m != nil {
			return s.json(c.room, *m, false), nil
		}
	}
	m := Message{From: s.bot}
	if failure := c.setContent(&m, c.files); failure != nil {
		return nil, failure
	}
	if ref := c.Reference; ref != nil {
		if c.room.find(ref.Message) != nil {
			m.ReplyTo = ref.Message
		} else if ref.Must == nil || *ref.Must {
			return nil, bad("message_reference: Unknown message")
		}
	}
	m.ID = s.id()
	for _, f := range c.files {
		if len(f.Data) > 10<<20 {
			return nil, &apiError{Status: 413, Code: 40005, Text: "Request entity too large"}
		}
		m.Files = append(m.Files, s.keep(c.room, f))
	}
	c.room.add(m)
	s.nonces[c.room.id+c.Nonce] = m.ID
	s.dispatch(c.room, "MESSAGE_CREATE", s.json(c.room, m, true))
	c.room.notify()
	return s.json(c.room, m, false), nil
}

// setContent sets text, buttons and flags of m, within Discord's limits.
func (c *call) setContent(m *Message, files []File) *apiError {
	m.Text = strings.TrimSpace(c.Content)
	switch {
	case utf8.RuneCountInString(m.Text) > 2000:
		return bad("content: Must be 2000 or fewer in length.")
	case len(files) > 10:
		return bad("attachments: Must be 10 or fewer in length.")
	case m.Text == "" && len(files) == 0:
		return &apiError{Status: 400, Code: 50006, Text: "Cannot send an empty message"}
	}
	m.Preview = c.Flags&4 == 0
	m.Pings = c.Allowed == nil || len(c.Allowed.Parse) > 0
	if c.Rows == nil {
		return nil
	}
	if m.Buttons = nil; len(*c.Rows) > 5 {
		return bad("components: Must be 5 or fewer in length.")
	}
	seen := map[string]bool{}
	for _, row := range *c.Rows {
		if len(row.Keys) < 1 || len(row.Keys) > 5 {
			return bad("components: Must be between 1 and 5 in length.")
		}
		for _, b := range row.Keys {
			if b.Label == "" || utf8.RuneCountInString(b.Label) > 80 || b.ID == "" || len(b.ID) > 100 || seen[b.ID] {
				return bad("components: label or custom_id %q", b.ID)
			}
			seen[b.ID] = true
			m.Buttons = append(m.Buttons, Button{b.Label, b.ID})
		}
	}
	return nil
}

func (s *Server) edit(c *call) (any, *apiError) {
	m := c.room.find(c.PathValue("message"))
	switch {
	case m == nil:
		return nil, missing(10008, "Message")
	case !m.From.Bot:
		return nil, &apiError{Status: 403, Code: 50005, Text: "Cannot edit a message authored by another user"}
	}
	old := m.Text
	if failure := c.setContent(m, m.Files); failure != nil {
		return nil, failure
	}
	if m.Text != old {
		m.Edits, m.edited = append(m.Edits, old), time.Now()
	}
	s.dispatch(c.room, "MESSAGE_UPDATE", s.json(c.room, *m, true))
	c.room.notify()
	return s.json(c.room, *m, false), nil
}

func (s *Server) deleteMessage(c *call) (any, *apiError) {
	id := c.PathValue("message")
	switch m := c.room.find(id); {
	case m == nil:
		return nil, missing(10008, "Message")
	case !m.From.Bot:
		return nil, &apiError{Status: 403, Code: 50013, Text: "Missing Permissions"}
	}
	c.room.delete(id)
	return nil, nil
}

// setReaction adds a reaction to a message, or removes it.
func (s *Server) setReaction(c *call) (any, *apiError) {
	m, emoji := c.room.find(c.PathValue("message")), c.PathValue("emoji")
	switch {
	case m == nil:
		return nil, missing(10008, "Message")
	case strings.Trim(emoji, "abcdefghijklmnopqrstuvwxyz:") == "":
		return nil, &apiError{Status: 400, Code: 10014, Text: "Unknown Emoji"}
	}
	m.Reactions = slices.DeleteFunc(slices.Clone(m.Reactions), func(e string) bool { return e == emoji })
	if c.Method == http.MethodPut {
		m.Reactions = append(m.Reactions, emoji)
	}
	c.room.notify()
	return nil, nil
}

func (s *Server) setMenu(c *call) (any, *apiError) {
	form := regexp.MustCompile(`^[-_a-z0-9]{1,32}$`)
	for i, cmd := range c.menu {
		name, _ := cmd["name"].(string)
		help, _ := cmd["description"].(string)
		if !form.MatchString(name) || help == "" || utf8.RuneCountInString(help) > 100 || i >= 100 {
			return nil, bad("%d: name or description", i)
		}
	}
	s.menu, _ = json.Marshal(c.menu)
	return s.menu, nil
}

// callback answers an interaction.
func (s *Server) callback(c *call) (any, *apiError) {
	i := s.interactions[c.PathValue("id")]
	switch {
	case i == nil || i.Token != c.PathValue("token") || i.Late:
		return nil, missing(10062, "interaction")
	case i.Acked:
		return nil, &apiError{Status: 400, Code: 40060, Text: "Interaction has already been acknowledged."}
	case c.Type != 4 && c.Type != 5 && c.Type != 6:
		return nil, bad("type")
	case c.Type == 4 && c.Data.Content == "":
		return nil, &apiError{Status: 400, Code: 50006, Text: "Cannot send an empty message"}
	}
	i.Acked = true
	i.Says = c.Data.Content
	i.Quiet = c.Data.Flags&64 != 0
	i.Preview = c.Type == 4 && c.Data.Flags&4 == 0
	i.timer.Stop()
	s.notify()
	return nil, nil
}
