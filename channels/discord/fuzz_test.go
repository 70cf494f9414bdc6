package discord

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"parley/channels/markdown"
	"parley/chat"
	"parley/store/mem"
)

func deaf(f interface{ Fatal(...any) }) *Channel {
	c, err := New(Config{Name: "discord", Token: "x", Groups: "mention", Seen: mem.New().Bucket("seen"),
		APIURL: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.Fatal(err)
	}
	c.me = user{ID: "101", Name: "parley"}
	c.parents["5"] = "4"
	c.roles["9"] = "555"
	return c
}

// P4: whatever comes as an event, nothing panics, and what is heard is whole.
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
	c := deaf(f)
	f.Fuzz(func(t *testing.T, raw []byte, edited bool) {
		whole := func(m chat.Message) {
			if m.From.ID == "" || m.At.Chat == "" || m.ID == "" || m.Account != "101" || m.Text+m.Media == "" && m.Quote == nil && len(m.Files) == 0 && m.Answer == nil {
				t.Errorf("heard %+v", m)
			}
		}
		var w message
		if json.Unmarshal(raw, &w) == nil && snowflake.MatchString(w.Channel) && snowflake.MatchString(w.ID) && (w.Guild == "" || w.Channel == "5" && w.Guild == "9") {
			m, said, err := c.read(t.Context(), w, edited)
			if err != nil {
				t.Error(err)
			}
			if said {
				whole(m)
			}
		}
		var i interaction
		if json.Unmarshal(raw, &i) == nil && i.Guild == "" {
			if m, ok := c.interacted(t.Context(), i); ok {
				whole(m)
			}
		}
	})
}

// Whatever the gateway sends, what is let through to the library is whole
// frames, each an object with a known order, and nothing panics or hangs.
func FuzzWire(f *testing.F) {
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write([]byte(`{"op":10,"d":{"heartbeat_interval":1000}}`))
	_ = w.Close()
	hello := frameOf([]byte(`{"op":10,"d":{"heartbeat_interval":1000}}`))
	f.Add(append([]byte("HTTP/1.1 101 X\r\n\r\n"), hello...))
	f.Add(append([]byte("HTTP/1.1 101 X\r\n\r\n\x82"+string(rune(z.Len()))), z.Bytes()...))
	f.Add([]byte("HTTP/1.1 101 X\r\n\r\n\x88\x02\x0f\xa4"))
	f.Add([]byte("HTTP/1.1 101 X\r\n\r\n\x81\x7f\xff\xff\xff\xff\xff\xff\xff\xff"))
	f.Add(append(append([]byte("HTTP/1.1 101 X\r\n\r\n"), hello...), frameOf([]byte(`{"op":0,"t":"READY","s":1,"d":{"session_id":"s","user":{"id":"1"}}}`))...))
	f.Fuzz(func(t *testing.T, raw []byte) {
		here, there := net.Pipe()
		go func() {
			_, _ = there.Write(raw)
			there.Close()
		}()
		w := newWire(here, time.Minute)
		out, err := io.ReadAll(w)
		if err == nil && w.why() == nil {
			t.Error("it does not say why it ended")
		}
		here.Close()
		_, rest, _ := bytes.Cut(out, []byte("\n\r\n"))
		if w.head >= 0 || !bytes.HasPrefix(out, []byte("HTTP/1.1 101 X\r\n\r\n")) {
			return
		}
		for n := 0; len(rest) > 0; {
			size, at := int(rest[1]), 2
			switch size {
			case 126:
				size, at = int(binary.BigEndian.Uint16(rest[2:])), 4
			case 127:
				size, at = int(binary.BigEndian.Uint64(rest[2:])), 10
			}
			payload, op := rest[at:at+size], rest[0]
			if rest = rest[at+size:]; op&8 != 0 {
				continue
			}
			var p packet
			if n++; json.Unmarshal(payload, &p) != nil || payload[0] != '{' || op != 0x81 || (p.Op == opHello) != (n == 1) || p.Op == opReconnect || p.Op == opInvalid {
				t.Errorf("packet %d came through: %q", n, payload)
			}
		}
	})
}

// Whatever is said, its parts fit, and their code is closed.
func FuzzSplit(f *testing.F) {
	f.Add("a\n```go\nx\n```\n| a |\n|---|---|\n~~~\n", 100)
	f.Add("> ```\n`````", 3)
	c := deaf(f)
	f.Fuzz(func(t *testing.T, text string, times int) {
		text = string(bytes.Repeat([]byte(text), min(max(times, 1), 4000/(len(text)+1)+1)))
		for _, p := range c.Split(chat.Reply{ID: "r", Text: text}) {
			if n := len([]rune(p.Text)); n > maxText || !bytes.ContainsFunc([]byte(p.Text), markdown.Visible) {
				t.Errorf("a part of %d: %q", n, p.Text)
			}
		}
	})
}
