package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// A session is one bot's events, numbered, over one connection or several.
type session struct {
	id      string
	intents int
	ready   bool
	zlib    bool // what is sent is to be compressed
	seq     int64
	sent    []packet // the last events, which a RESUME brings again
	trimmed int64    // number of the last event that is kept no longer
	conn    *conn    // nil while the bot is away
}

type packet struct {
	Op   int    `json:"op"`
	Data any    `json:"d"`
	Seq  *int64 `json:"s,omitempty"`
	Type string `json:"t,omitempty"`
}

// A conn is a connection to the gateway.
type conn struct {
	*websocket.Conn
	gate Gate
	mu   sync.Mutex // held while it is written to
	zlib bool
}

// A Gate makes one connection to the gateway go wrong. Its zero value does not.
type Gate struct {
	Refuse     bool   // no websocket: HTTP 503
	NoHello    bool   // silence
	ReadyFirst bool   // READY comes without a HELLO
	Second     string // this comes as the second packet, before READY, and nothing after it
	First      string // this comes instead of HELLO
	Close      int    // this close code answers IDENTIFY and RESUME
	NoAck      bool   // heartbeats are not answered
	Invalid    bool   // RESUME is answered with op 9
}

// Gates sets what goes wrong with the next connections, one for each.
func (s *Server) Gates(gs ...Gate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gates = append(s.gates, gs...)
}

// Drop ends the connection with a close code; with 0 it breaks without one.
func (s *Server) Drop(code int) {
	s.each(func(ses *session, c *conn) {
		if code != 0 {
			c.closeWith(code, "")
			return
		}
		c.Close()
	})
}

// HalfFrame sends the beginning of a frame and breaks the connection.
func (s *Server) HalfFrame() {
	s.each(func(_ *session, c *conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, _ = c.NetConn().Write([]byte{0x81, 126, 1, 0, '{', '"', 'o'})
		_ = c.NetConn().Close()
	})
}

// Raw sends a message of the gateway that is no packet, or one of its own making.
func (s *Server) Raw(binary bool, body string) {
	s.each(func(_ *session, c *conn) {
		kind := websocket.TextMessage
		if binary {
			kind = websocket.BinaryMessage
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute)) // not that of what was written before
		_ = c.WriteMessage(kind, []byte(body))
	})
}

// Reconnect asks the bot to connect anew (op 7).
func (s *Server) Reconnect() { s.Raw(false, `{"op":7,"d":null}`) }

// Forget ends all sessions: they cannot be resumed.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, ses := range s.sessions {
		if ses.conn != nil {
			_ = ses.conn.Close()
		}
		delete(s.sessions, id)
	}
}

// each calls f for every session that has a connection.
func (s *Server) each(f func(*session, *conn)) {
	s.mu.Lock()
	var all []*session
	for _, ses := range s.sessions {
		all = append(all, ses)
	}
	s.mu.Unlock()
	for _, ses := range all {
		s.mu.Lock()
		c := ses.conn
		s.mu.Unlock()
		if c != nil {
			f(ses, c)
		}
	}
}

func (c *conn) closeWith(code int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, text), time.Now().Add(time.Second))
	_ = c.Close()
}

// write sends p, compressed if the bot asked for that.
func (c *conn) write(p packet) {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	kind := websocket.TextMessage
	if c.zlib {
		var b bytes.Buffer
		z := zlib.NewWriter(&b)
		_, _ = z.Write(raw)
		_ = z.Close()
		kind, raw = websocket.BinaryMessage, b.Bytes()
	}
	_ = c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	_ = c.WriteMessage(kind, raw)
}

// dispatch sends an event to the sessions that may receive it. s.mu is held.
func (s *Server) dispatch(r *room, kind string, data any) {
	need := 1 << 9
	if r.kind == 1 {
		need = 1 << 12
	}
	for _, ses := range s.sessions {
		if kind == "INTERACTION_CREATE" || ses.intents&need != 0 {
			s.send(ses, kind, data)
		}
	}
}

// send sends the session an event, now or when it is resumed. s.mu is held.
func (s *Server) send(ses *session, kind string, data any) {
	ses.seq++
	seq := ses.seq
	p := packet{Op: 0, Type: kind, Seq: &seq, Data: data}
	ses.sent = append(ses.sent, p)
	if over := len(ses.sent) - s.cfg.Buffer; over > 0 {
		ses.trim(*ses.sent[over-1].Seq)
	}
	if ses.conn != nil {
		ses.conn.write(p)
	}
}

// trim forgets the events up to that number: the bot has them, or they are too many.
func (ses *session) trim(seq int64) {
	kept := slices.IndexFunc(ses.sent, func(p packet) bool { return *p.Seq > seq })
	if kept < 0 {
		kept = len(ses.sent)
	}
	ses.sent = slices.Delete(ses.sent, 0, kept)
	ses.trimmed = max(ses.trimmed, min(seq, ses.seq))
}

var upgrader = websocket.Upgrader{CheckOrigin: func(*http.Request) bool { return true }}

// gateway is one connection.
func (s *Server) gateway(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	var g Gate
	if len(s.gates) > 0 {
		g, s.gates = s.gates[0], s.gates[1:]
	}
	closed := s.closed.Err() != nil
	if !closed {
		s.live.Add(1)
	}
	s.mu.Unlock()
	if closed {
		return
	}
	defer s.live.Done()
	if q := r.URL.Query(); g.Refuse || q.Get("v") != "9" || q.Get("encoding") != "json" {
		http.Error(w, "no gateway", http.StatusServiceUnavailable)
		return
	}
	ws, err := upgrader.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	c := &conn{Conn: ws, gate: g}
	stop := make(chan struct{})
	defer close(stop)
	s.live.Go(func() {
		select {
		case <-s.closed.Done():
			_ = ws.NetConn().Close()
		case <-stop:
		}
	})
	defer ws.Close()
	s.serveConn(c)
}

// serveConn is the conversation with one bot.
func (s *Server) serveConn(c *conn) {
	hello := fmt.Sprintf(`{"op":10,"d":{"heartbeat_interval":%d}}`, s.cfg.Heartbeat.Milliseconds())
	switch {
	case c.gate.ReadyFirst:
		hello = `{"op":0,"t":"READY","s":1,"d":{"v":9,"session_id":"x","user":{"id":"101"},"guilds":[]}}`
	case c.gate.First != "":
		hello = c.gate.First
	}
	if !c.gate.NoHello {
		_ = c.WriteMessage(websocket.TextMessage, []byte(hello))
	}
	var ses *session
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if ses != nil && ses.conn == c {
			ses.conn = nil
			s.notify()
		}
	}()
	for {
		_ = c.SetReadDeadline(time.Now().Add(max(3*s.cfg.Heartbeat, 2*time.Second)))
		_, raw, err := c.ReadMessage()
		if err != nil {
			if websocket.IsCloseError(err, 1000, 1001) && ses != nil {
				s.end(ses) // the bot says good-bye
			}
			if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
				c.closeWith(4009, "Session timed out.")
			}
			return
		}
		var p struct {
			Op   int             `json:"op"`
			Data json.RawMessage `json:"d"`
		}
		if json.Unmarshal(raw, &p) != nil {
			c.closeWith(4002, "Error while decoding payload.")
			return
		}
		switch p.Op {
		case 1:
			s.mu.Lock()
			s.beats++
			var had int64
			if ses != nil && json.Unmarshal(p.Data, &had) == nil {
				ses.trim(had)
			}
			s.notify()
			s.mu.Unlock()
			if !c.gate.NoAck {
				c.write(packet{Op: 11})
			}
		case 2, 6:
			if ses != nil {
				c.closeWith(4005, "Already authenticated.")
				return
			}
			if c.gate.Close != 0 {
				c.closeWith(c.gate.Close, "")
				return
			}
			if c.gate.Second != "" {
				_ = c.WriteMessage(websocket.TextMessage, []byte(c.gate.Second))
				continue
			}
			var d opening
			_ = json.Unmarshal(p.Data, &d)
			begin := s.identify
			if p.Op == 6 {
				begin = s.resume
			}
			var ok bool
			ses, ok = begin(c, d)
			if !ok {
				return
			}
		case 3, 4, 8:
		default:
			c.closeWith(4001, "Unknown opcode.")
			return
		}
	}
}

func (s *Server) end(ses *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ses.id)
	s.notify()
}

// An opening is the first packet of the bot.
type opening struct {
	Token    string `json:"token"`
	Intents  int    `json:"intents"`
	Compress bool   `json:"compress"`
	Session  string `json:"session_id"`
	Seq      int64  `json:"seq"`
}

// identify begins a session.
func (s *Server) identify(c *conn, d opening) (*session, bool) {
	switch {
	case d.Token != "Bot "+s.cfg.Token:
		c.closeWith(4004, "Authentication failed.")
		return nil, false
	case d.Intents >= 1<<26 || d.Intents < 0:
		c.closeWith(4013, "Invalid intent(s).")
		return nil, false
	case s.cfg.Blind && d.Intents&(1<<15) != 0:
		c.closeWith(4014, "Disallowed intent(s).")
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.sessions { // one that is away goes on: it may be resumed
		if other.conn != nil {
			_ = other.conn.Close()
		}
	}
	s.starts++
	ses := &session{id: "session" + strconv.Itoa(s.starts), intents: d.Intents, ready: true, conn: c}
	c.zlib, ses.zlib = d.Compress, d.Compress
	s.sessions[ses.id] = ses
	guilds := s.guilds()
	listed := []any{}
	for _, id := range guilds {
		listed = append(listed, map[string]any{"id": id, "unavailable": true})
	}
	s.send(ses, "READY", map[string]any{
		"v": 9, "session_id": ses.id, "resume_gateway_url": s.GatewayURL + "/resume", "user": s.bot,
		"guilds": listed, "application": map[string]any{"id": "100", "flags": 0},
		"private_channels": []any{}, // a bot's private channels are listed nowhere
	})
	ses.sent = nil // no RESUME brings a READY
	for _, id := range guilds {
		s.send(ses, "GUILD_CREATE", s.guild(id))
	}
	s.notify()
	return ses, true
}

// guilds returns the ids of the servers. s.mu is held.
func (s *Server) guilds() []string {
	ids := map[string]bool{"900": true}
	for _, r := range s.rooms {
		ids[r.guild] = true
	}
	delete(ids, "")
	return slices.Sorted(maps.Keys(ids))
}

// guild is what the bot is told of a server when a session begins: its channels
// and the threads that are active, each with the id of its last message, which
// may be gone. s.mu is held.
func (s *Server) guild(id string) map[string]any {
	channels, threads := []any{}, []any{}
	for _, key := range slices.Sorted(maps.Keys(s.rooms)) {
		r := s.rooms[key]
		if r.guild != id || r.gone == 10003 {
			continue
		}
		is := map[string]any{"id": r.id, "type": r.kind, "last_message_id": nil}
		if r.last != "" {
			is["last_message_id"] = r.last
		}
		if r.kind == 11 {
			is["parent_id"] = r.parent
			threads = append(threads, is)
		} else {
			channels = append(channels, is)
		}
	}
	return map[string]any{
		"id": id, "name": "A server", "joined_at": madeAt("0"), "members": []any{},
		"channels": channels, "threads": threads,
	}
}

// resume continues a session.
func (s *Server) resume(c *conn, d opening) (*session, bool) {
	if d.Token != "Bot "+s.cfg.Token {
		c.closeWith(4004, "Authentication failed.")
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ses := s.sessions[d.Session]
	if ses == nil || c.gate.Invalid {
		c.write(packet{Op: 9, Data: false})
		return nil, true
	}
	if d.Seq > ses.seq {
		c.closeWith(4007, "Invalid seq.")
		return nil, false
	}
	if d.Seq < ses.trimmed { // too old
		delete(s.sessions, ses.id)
		c.write(packet{Op: 9, Data: false})
		return nil, true
	}
	if ses.conn != nil {
		_ = ses.conn.Close()
	}
	ses.conn, c.zlib = c, ses.zlib
	for _, p := range ses.sent {
		if *p.Seq > d.Seq {
			c.write(p)
		}
	}
	s.resumes++
	s.send(ses, "RESUMED", map[string]any{})
	s.notify()
	return ses, true
}

// madeAt returns the time of a snowflake as the API shows it.
func madeAt(id string) string {
	n, _ := strconv.ParseInt(id, 10, 64)
	return time.UnixMilli(n>>22 + 1420070400000).UTC().Format(time.RFC3339Nano)
}
