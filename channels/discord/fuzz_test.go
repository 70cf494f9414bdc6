package discord

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/bwmarrin/discordgo"

	"parley/channels/markdown"
	"parley/chat"
	"parley/store/mem"
)

func newOffline(f interface{ Fatal(...any) }) *Channel {
	c, err := New(Config{Name: "discord", Token: "x", Groups: "mention", Seen: mem.New().Bucket("seen"),
		APIURL: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	c.directory.self = user{ID: "101", Name: "parley"}
	c.directory.parents["5"] = "4"
	c.directory.roles["9"] = "555"
	return c
}

// Events that arrive while Run ends are not handled, so the session repeats them.
func TestEventsAtTheEnd(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	in, err := newOffline(t).newIntake(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	in.beginSession("s", "", 1, nil)
	in.handleEvent("READY", 1, nil)
	stop()
	for seq, event := range map[int64]struct{ kind, data string }{
		2: {"INTERACTION_CREATE", `{"id":"1","type":2,"token":"t","user":{"id":"7"},"data":{"name":"stop"}}`},
		3: {"INTERACTION_CREATE", `{"id":"2","type":2,"token":"t","channel_id":"5","user":{"id":"7"},"data":{"name":"stop"}}`},
		4: {"MESSAGE_CREATE", `{"id":"3","channel_id":"5","author":{"id":"7"},"content":"hello"}`},
		5: {"MESSAGE_CREATE", `[]`},
	} {
		in.handleEvent(event.kind, seq, json.RawMessage(event.data))
		held := false
		for e := range in.tracker.open {
			held = held || e.sequence == seq
		}
		if !held {
			t.Errorf("%s %s counts as handled", event.kind, event.data)
		}
	}
}

// P4: no event causes a panic, and every message that is read is complete.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"id":"1","channel_id":"5","type":0,"author":{"id":"7","username":"ann"},"content":"hello","timestamp":"2026-01-01T00:00:00Z"}`,
		`{"id":"1","channel_id":"5","guild_id":"9","type":19,"author":{"id":"7"},"content":"<@101> <@&555> hi","mentions":[{"id":"101"}],"mention_roles":["555"],"referenced_message":{"id":"2","author":{"id":"101"},"attachments":[{}]}}`,
		`{"id":"1","channel_id":"5","author":{"id":"7"},"message_reference":{"type":1},"message_snapshots":[{"message":{"content":"x"}}],"flags":8192,"attachments":[{"id":"3","size":-1,"duration_secs":1e300}],"poll":{},"sticker_items":[{}]}`,
		`{"id":"1","type":3,"token":"t","channel_id":"5","guild_id":"9","channel":{"type":11,"parent_id":"4"},"member":{"user":{"id":"7"}},"message":{"id":"2"},"data":{"custom_id":"q:abc:1"}}`,
		`{"id":"1","type":2,"token":"t","channel_id":"5","user":{"id":"7"},"data":{"name":"new","options":[{"value":null},{"value":{}}]}}`,
		`{"id":"1","channel_id":"5","author":null,"member":null,"referenced_message":null}`, `null`, `[]`, "\xff",
	} {
		f.Add([]byte(s), true)
	}
	c := newOffline(f)
	f.Fuzz(func(t *testing.T, raw []byte, edited bool) {
		whole := func(m chat.Message) {
			if m.From.ID == "" || m.At.Chat == "" || m.ID == "" || m.Account != "101" || m.Text+m.Media == "" && m.Quote == nil && len(m.Files) == 0 && m.Answer == nil {
				t.Errorf("read %+v", m)
			}
		}
		var w message
		if json.Unmarshal(raw, &w) == nil && snowflake.MatchString(w.Channel) && snowflake.MatchString(w.ID) && (w.Guild == "" || w.Channel == "5" && w.Guild == "9") {
			m, ok, err := c.reader.read(t.Context(), w, edited)
			if err != nil {
				t.Error(err)
			}
			if ok {
				whole(m)
			}
		}
		var i interaction
		if json.Unmarshal(raw, &i) == nil && i.Guild == "" {
			if m, ok := c.reader.readInteraction(t.Context(), i); ok {
				whole(m)
			}
		}
	})
}

// No packet causes a panic, and every connection ends with a reason.
func FuzzPackets(f *testing.F) {
	const hello, ready = `{"op":10,"d":{"heartbeat_interval":1000}}`, `{"op":0,"t":"READY","s":1,"d":{"session_id":"s"}}`
	for _, second := range []string{ready, `{"op":9,"d":true}`, `{"op":9}`, `{"op":7}`, `{"op":11}`, `{"op":1}`, hello, `null`, `{"op":0,"t":"READY","d":null}`} {
		f.Add([]byte(hello), []byte(second))
	}
	f.Add([]byte(`{"op":10,"d":{"heartbeat_interval":1e300}}`), []byte("\xff"))
	c := newOffline(f)
	f.Fuzz(func(t *testing.T, first, second []byte) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		in, err := c.newIntake(ctx, func(context.Context, chat.Message) error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		g := newGateway(c, in)
		g.library = &discordgo.Session{}
		conn := &connection{gateway: g, socket: &packetSocket{first, second}}
		err = conn.listen(ctx)
		cancel()
		conn.heartbeat.Wait()
		in.close()
		if err == nil || conn.ready != (g.session != "" || strings.Contains(string(second), "RESUMED")) {
			t.Errorf("ended with %v, ready %v, session %q", err, conn.ready, g.session)
		}
	})
}

// A packetSocket is a socket on which these packets arrive.
type packetSocket [][]byte

func (p *packetSocket) ReadMessage() (int, []byte, error) {
	if len(*p) == 0 {
		return 0, nil, io.EOF
	}
	next := (*p)[0]
	*p = (*p)[1:]
	return 1, next, nil
}
func (*packetSocket) SetReadDeadline(time.Time) error           { return nil }
func (*packetSocket) WriteJSON(any) error                       { return nil }
func (*packetSocket) SetWriteDeadline(time.Time) error          { return nil }
func (*packetSocket) WriteControl(int, []byte, time.Time) error { return nil }
func (*packetSocket) Close() error                              { return nil }

// The parts of any text fit into messages, and their code is closed.
func FuzzSplit(f *testing.F) {
	f.Add("a\n```go\nx\n```\n| a |\n|---|---|\n~~~\n", 100)
	f.Add("> ```\n`````", 3)
	c := newOffline(f)
	f.Fuzz(func(t *testing.T, text string, times int) {
		text = string(bytes.Repeat([]byte(text), min(max(times, 1), 4000/(len(text)+1)+1)))
		for _, p := range c.Split(text) {
			if n := len([]rune(p)); n > maxText || !strings.ContainsFunc(p, markdown.Visible) {
				t.Errorf("a part of %d: %q", n, p)
			}
		}
	})
}
