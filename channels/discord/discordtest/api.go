package discordtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A refusal is an answer of the API that says no.
type refusal struct {
	Status int     `json:"-"`
	Code   int     `json:"code"`
	Text   string  `json:"message"`
	After  float64 `json:"retry_after,omitempty"`
	Global bool    `json:"global,omitempty"`
}

func bad(format string, args ...any) *refusal {
	return &refusal{Status: http.StatusBadRequest, Code: 50035, Text: "Invalid Form Body: " + fmt.Sprintf(format, args...)}
}

func missing(code int, what string) *refusal {
	return &refusal{Status: http.StatusNotFound, Code: code, Text: "Unknown " + what}
}

// A call is a request to the API.
type call struct {
	ids   []string // in its path
	query url.Values
	body  map[string]any
	list  []any // the body, when it is one
	files []File
	room  *room // of the first id, for routes about channels
	limit http.Header
}

func (c call) text(name string) string { t, _ := c.body[name].(string); return t }
func (c call) int(name string) int     { n, _ := c.body[name].(float64); return int(n) }

// A route is a part of the API. do holds s.mu; nil is 204.
type route struct {
	name string
	form *regexp.Regexp
	do   func(*Server, *call) (any, *refusal)
}

var routes = func() (rs []route) {
	for name, do := range map[string]func(*Server, *call) (any, *refusal){
		"GET /gateway":     func(s *Server, _ *call) (any, *refusal) { return map[string]any{"url": s.GatewayURL}, nil },
		"GET /gateway/bot": (*Server).gatewayBot,
		"GET /users/@me":   func(s *Server, _ *call) (any, *refusal) { return s.bot, nil },
		"GET /applications/@me": func(s *Server, _ *call) (any, *refusal) {
			flags := 1 << 19
			if s.cfg.Blind {
				flags = 0
			}
			return map[string]any{"id": "100", "name": "Parley", "flags": flags, "bot": s.bot}, nil
		},
		"POST /users/@me/channels":           (*Server).openDM,
		"GET /channels/{id}":                 (*Server).getChannel,
		"GET /guilds/{id}/roles":             (*Server).getRoles,
		"GET /channels/{id}/messages":        (*Server).history,
		"POST /channels/{id}/messages":       (*Server).create,
		"GET /channels/{id}/messages/{id}":   (*Server).getMessage,
		"PATCH /channels/{id}/messages/{id}": (*Server).edit,
		"DELETE /channels/{id}/messages/{id}": func(s *Server, c *call) (any, *refusal) {
			switch m := c.room.find(c.ids[1]); {
			case m == nil:
				return nil, missing(10008, "Message")
			case !m.From.Bot:
				return nil, &refusal{Status: 403, Code: 50013, Text: "Missing Permissions"}
			}
			c.room.delete(c.ids[1])
			return nil, nil
		},
		"POST /channels/{id}/typing":                                func(s *Server, c *call) (any, *refusal) { c.room.typing++; return nil, nil },
		"PUT /channels/{id}/messages/{id}/reactions/{emoji}/@me":    (*Server).react,
		"DELETE /channels/{id}/messages/{id}/reactions/{emoji}/@me": (*Server).unreact,
		"GET /applications/{id}/commands":                           func(s *Server, _ *call) (any, *refusal) { return s.menu, nil },
		"PUT /applications/{id}/commands":                           (*Server).setMenu,
		"POST /interactions/{id}/{token}/callback":                  (*Server).callback,
	} {
		form := regexp.QuoteMeta(strings.NewReplacer("{id}", "ID", "{token}", "ANY", "{emoji}", "ANY").Replace(name))
		form = strings.NewReplacer("ID", "([0-9]{1,20})", "ANY", "([^/]+)").Replace(form)
		rs = append(rs, route{name, regexp.MustCompile("^" + form + "$"), do})
	}
	return rs
}()

// ServeHTTP is all of Discord.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, api := strings.CutPrefix(r.URL.EscapedPath(), "/api/v9")
	switch {
	case strings.HasPrefix(r.URL.Path, "/gateway"):
		s.gateway(w, r)
		return
	case strings.HasPrefix(r.URL.Path, "/attachments/"):
		s.blob(w, r)
		return
	case !api:
		answer(w, &refusal{Status: 404, Text: "404: Not Found"})
		return
	}
	at := slices.IndexFunc(routes, func(rt route) bool { return rt.form.MatchString(r.Method + " " + path) })
	if at < 0 {
		answer(w, &refusal{Status: 404, Text: "404: Not Found"})
		return
	}
	rt := routes[at]
	c := &call{query: r.URL.Query(), ids: rt.form.FindStringSubmatch(r.Method + " " + path)[1:]}
	callback := strings.HasSuffix(rt.name, "/callback")
	if !callback && r.Header.Get("Authorization") != "Bot "+s.cfg.Token {
		answer(w, &refusal{Status: 401, Text: "401: Unauthorized"})
		return
	}
	no := c.read(r)
	e := Event{Route: rt.name, Body: c.body}
	if strings.Contains(rt.name, "/channels/{id}") {
		e.Channel = c.ids[0]
	}
	s.happen(e)
	f := s.fault(rt.name, e.Channel)
	defer s.count(rt.name)
	if f.before(s, w, r) {
		return
	}
	var out any
	s.mu.Lock()
	if no == nil {
		no = s.enter(c, e, callback)
	}
	if no == nil {
		out, no = rt.do(s, c)
	}
	raw, err := json.Marshal(out)
	s.mu.Unlock()
	if err != nil {
		panic(err)
	}
	e.Done, e.OK = true, no == nil
	s.happen(e)
	maps.Copy(w.Header(), c.limit)
	switch {
	case f.DropAfter:
		panic(http.ErrAbortHandler)
	case no != nil:
		answer(w, no)
	case out == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(raw)
	}
}

// enter checks what is the same for all routes. s.mu is held.
func (s *Server) enter(c *call, e Event, callback bool) *refusal {
	if !callback && s.cfg.Limits {
		if no := s.limit("", 50, time.Second, true); no != nil {
			return no
		}
		if e.Channel != "" {
			n, window := 5, 5*time.Second
			if strings.Contains(e.Route, "/reactions/") {
				n, window = 1, 250*time.Millisecond
			}
			if no := s.limit(e.Route+e.Channel, n, window, false); no != nil {
				return no
			}
			sent := s.limits[e.Route+e.Channel]
			c.limit = http.Header{"X-Ratelimit-Remaining": {strconv.Itoa(n - len(sent))},
				"X-Ratelimit-Reset-After": {fmt.Sprintf("%.3f", (window - time.Since(sent[0])).Seconds())}}
		}
	}
	if e.Channel == "" {
		return nil
	}
	if c.room = s.rooms[c.ids[0]]; c.room == nil {
		return missing(10003, "Channel")
	}
	switch c.room.gone {
	case 0:
		return nil
	case 10003:
		return missing(10003, "Channel")
	}
	return &refusal{Status: 403, Code: c.room.gone, Text: "Missing Access"}
}

func (s *Server) limit(key string, n int, window time.Duration, global bool) *refusal {
	sent := s.limits[key]
	for len(sent) > 0 && time.Since(sent[0]) >= window {
		sent = sent[1:]
	}
	if s.limits[key] = append(sent, time.Now()); len(sent) < n {
		return nil
	}
	s.limits[key] = sent
	return &refusal{Status: 429, Text: "You are being rate limited.", After: (window - time.Since(sent[0])).Seconds(), Global: global}
}

func (s *Server) count(route string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[route]++
	s.tell()
}

func answer(w http.ResponseWriter, no *refusal) {
	w.Header().Set("Content-Type", "application/json")
	if no.Status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", strconv.Itoa(int(no.After)+1))
	}
	w.WriteHeader(no.Status)
	_ = json.NewEncoder(w).Encode(no) // the client is gone
}

// read reads the body, in either of the ways the API takes.
func (c *call) read(r *http.Request) *refusal {
	kind, opts, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	raw, err := io.ReadAll(io.LimitReader(r.Body, 120<<20))
	if err != nil {
		return bad("%v", err)
	}
	switch {
	case kind == "multipart/form-data":
		if raw, err = c.form(multipart.NewReader(bytes.NewReader(raw), opts["boundary"])); err != nil {
			return bad("%v", err)
		}
	case len(raw) > 0 && kind != "application/json":
		return &refusal{Status: 400, Code: 50035, Text: "Expected \"Content-Type\" header to be one of {'application/json'}."}
	case len(raw) == 0 && kind != "":
		return &refusal{Status: 400, Code: 50109, Text: "The request body contains invalid JSON."}
	}
	if len(raw) > 0 && json.Unmarshal(raw, &c.body) != nil && json.Unmarshal(raw, &c.list) != nil {
		return &refusal{Status: 400, Code: 50109, Text: "The request body contains invalid JSON."}
	}
	return nil
}

func (c *call) form(parts *multipart.Reader) (payload []byte, err error) {
	for {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return payload, nil
		}
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if strings.Contains(part.Header.Get("Content-Disposition"), "filename*") {
			return nil, errors.New("names of files are UTF-8 as they are")
		}
		if part.FormName() == "payload_json" {
			payload = data
		} else {
			c.files = append(c.files, File{Name: part.FileName(), Type: part.Header.Get("Content-Type"), Data: data})
		}
	}
}

// blob is the server of files. Their addresses are good for a while only.
func (s *Server) blob(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	data, ok := s.blobs[strings.TrimSuffix(r.URL.Path, "/file")]
	s.mu.Unlock()
	if made, err := strconv.ParseInt(r.URL.Query().Get("ex"), 10, 64); !ok || err != nil || time.Since(time.Unix(made, 0)) > 24*time.Hour {
		http.Error(w, "This content is no longer available.", http.StatusNotFound)
		return
	}
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "the token goes to the API only", http.StatusBadRequest)
		return
	}
	_, _ = w.Write(data)
}

func (s *Server) gatewayBot(*call) (any, *refusal) {
	return map[string]any{"url": s.GatewayURL, "shards": 1, "session_start_limit": map[string]any{
		"total": 1000, "remaining": max(0, 1000-s.starts), "reset_after": 1000, "max_concurrency": 1,
	}}, nil
}

func (s *Server) openDM(c *call) (any, *refusal) {
	id := c.text("recipient_id")
	if n, err := strconv.ParseUint(id, 10, 63); err != nil || n == 0 {
		return nil, bad("recipient_id")
	}
	r := s.dm(id)
	return map[string]any{"id": r.id, "type": 1, "recipients": []User{r.person}}, nil
}

func (s *Server) getChannel(c *call) (any, *refusal) {
	r := c.room
	return map[string]any{"id": r.id, "type": r.kind, "guild_id": r.guild, "parent_id": cmp.Or(r.parent, "800")}, nil
}

func (s *Server) getRoles(c *call) (any, *refusal) {
	return []any{
		map[string]any{"id": c.ids[0], "name": "@everyone"},
		map[string]any{"id": "555", "name": "Parley", "tags": map[string]any{"bot_id": s.bot.ID}},
	}, nil
}

// history is a page of messages, newest first: the oldest after one, or the newest.
func (s *Server) history(c *call) (any, *refusal) {
	limit, err := strconv.Atoi(cmp.Or(c.query.Get("limit"), "50"))
	if err != nil || limit < 1 || limit > 100 {
		return nil, bad("limit: int value should be between 1 and 100")
	}
	ms := c.room.messages
	if after := c.query.Get("after"); after != "" {
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

func (s *Server) getMessage(c *call) (any, *refusal) {
	m := c.room.find(c.ids[1])
	if m == nil {
		return nil, missing(10008, "Message")
	}
	return s.json(c.room, *m, false), nil
}

// create is a message of the bot.
func (s *Server) create(c *call) (any, *refusal) {
	nonce := c.text("nonce")
	if utf8.RuneCountInString(nonce) > 25 {
		return nil, bad("nonce: must be 25 or fewer in length")
	}
	if enforce, _ := c.body["enforce_nonce"].(bool); enforce && nonce != "" {
		if m := c.room.find(s.nonces[c.room.id+nonce]); m != nil {
			return s.json(c.room, *m, false), nil
		}
	}
	m := Message{From: s.bot, Nonce: nonce, ReplyTo: ""}
	if no := c.fill(&m, c.files); no != nil {
		return nil, no
	}
	if ref, ok := c.body["message_reference"].(map[string]any); ok {
		id, _ := ref["message_id"].(string)
		if c.room.find(id) != nil {
			m.ReplyTo = id
		} else if must, said := ref["fail_if_not_exists"].(bool); must || !said {
			return nil, bad("message_reference: Unknown message")
		}
	}
	m.ID = s.id()
	for _, f := range c.files {
		if len(f.Data) > 10<<20 {
			return nil, &refusal{Status: 413, Code: 40005, Text: "Request entity too large"}
		}
		m.Files = append(m.Files, s.keep(c.room, f))
	}
	c.room.messages = append(c.room.messages, m)
	s.nonces[c.room.id+nonce] = m.ID
	s.dispatch(c.room, "MESSAGE_CREATE", s.json(c.room, m, true))
	c.room.tell()
	return s.json(c.room, m, false), nil
}

// fill puts content, buttons and flags into m, within Discord's limits.
func (c *call) fill(m *Message, files []File) *refusal {
	m.Text = strings.TrimSpace(c.text("content"))
	switch {
	case utf8.RuneCountInString(m.Text) > 2000:
		return bad("content: Must be 2000 or fewer in length.")
	case len(files) > 10:
		return bad("attachments: Must be 10 or fewer in length.")
	case m.Text == "" && len(files) == 0:
		return &refusal{Status: 400, Code: 50006, Text: "Cannot send an empty message"}
	}
	m.Preview = c.int("flags")&4 == 0
	allowed, ok := c.body["allowed_mentions"].(map[string]any)
	parse, _ := allowed["parse"].([]any)
	m.Pings = !ok || len(parse) > 0
	if rows, ok := c.body["components"].([]any); ok {
		m.Buttons = nil
		if len(rows) > 5 {
			return bad("components: Must be 5 or fewer in length.")
		}
		seen := map[string]bool{}
		for _, row := range rows {
			keys, _ := row.(map[string]any)["components"].([]any)
			if len(keys) < 1 || len(keys) > 5 {
				return bad("components: Must be between 1 and 5 in length.")
			}
			for _, key := range keys {
				b, _ := key.(map[string]any)
				label, _ := b["label"].(string)
				id, _ := b["custom_id"].(string)
				if label == "" || utf8.RuneCountInString(label) > 80 || id == "" || len(id) > 100 || seen[id] {
					return bad("components: label or custom_id %q", id)
				}
				seen[id] = true
				m.Buttons = append(m.Buttons, Button{label, id})
			}
		}
	}
	return nil
}

func (s *Server) edit(c *call) (any, *refusal) {
	m := c.room.find(c.ids[1])
	switch {
	case m == nil:
		return nil, missing(10008, "Message")
	case !m.From.Bot:
		return nil, &refusal{Status: 403, Code: 50005, Text: "Cannot edit a message authored by another user"}
	}
	old := m.Text
	if no := c.fill(m, m.Files); no != nil {
		return nil, no
	}
	if m.Text != old {
		m.Edits, m.edited = append(m.Edits, old), time.Now()
	}
	s.dispatch(c.room, "MESSAGE_UPDATE", s.json(c.room, *m, true))
	c.room.tell()
	return s.json(c.room, *m, false), nil
}

func (s *Server) react(c *call) (any, *refusal)   { return s.mark(c, true) }
func (s *Server) unreact(c *call) (any, *refusal) { return s.mark(c, false) }

// mark puts a reaction below a message, or takes it away.
func (s *Server) mark(c *call, put bool) (any, *refusal) {
	m := c.room.find(c.ids[1])
	emoji, err := url.PathUnescape(c.ids[2])
	switch {
	case m == nil:
		return nil, missing(10008, "Message")
	case err != nil || emoji == "" || strings.Trim(emoji, "abcdefghijklmnopqrstuvwxyz:") == "":
		return nil, &refusal{Status: 400, Code: 10014, Text: "Unknown Emoji"}
	}
	m.Reactions = slices.DeleteFunc(slices.Clone(m.Reactions), func(e string) bool { return e == emoji })
	if put {
		m.Reactions = append(m.Reactions, emoji)
	}
	c.room.tell()
	return nil, nil
}

func (s *Server) setMenu(c *call) (any, *refusal) {
	stored, form := []any{}, regexp.MustCompile(`^[-_a-z0-9]{1,32}$`)
	for i, entry := range c.list {
		cmd, _ := entry.(map[string]any)
		name, _ := cmd["name"].(string)
		help, _ := cmd["description"].(string)
		if !form.MatchString(name) || help == "" || utf8.RuneCountInString(help) > 100 || i >= 100 {
			return nil, bad("%d: name or description", i)
		}
		out := maps.Clone(cmd)
		out["id"], out["application_id"], out["version"] = s.id(), "100", "1"
		stored = append(stored, out)
	}
	s.menu, _ = json.Marshal(stored)
	return s.menu, nil
}

// callback is the answer to an interaction.
func (s *Server) callback(c *call) (any, *refusal) {
	i := s.acts[c.ids[0]]
	switch {
	case i == nil || i.Token != c.ids[1] || i.Late:
		return nil, missing(10062, "interaction")
	case i.Acked:
		return nil, &refusal{Status: 400, Code: 40060, Text: "Interaction has already been acknowledged."}
	}
	data, _ := c.body["data"].(map[string]any)
	kind := c.int("type")
	if kind != 4 && kind != 5 && kind != 6 {
		return nil, bad("type")
	}
	i.Acked, i.answer = true, kind
	i.Says, _ = data["content"].(string)
	if kind == 4 && i.Says == "" {
		return nil, &refusal{Status: 400, Code: 50006, Text: "Cannot send an empty message"}
	}
	flags, _ := data["flags"].(float64)
	i.Quiet = int(flags)&64 != 0
	i.timer.Stop()
	s.tell()
	return nil, nil
}
