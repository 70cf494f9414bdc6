package discordtest

import (
	"cmp"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

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
