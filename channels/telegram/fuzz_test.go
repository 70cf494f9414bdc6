package telegram

import (
	"io"
	"log/slog"
	"net/http"
	"testing"

	"parley/store/mem"
)

// P4: no update causes a panic, and one that cannot be understood is an error.
func FuzzUpdate(f *testing.F) {
	for _, s := range []string{
		`{"update_id":1,"message":{"message_id":2,"chat":{"id":7,"type":"private"},"from":{"id":7},"text":"hello"}}`,
		`{"update_id":1,"edited_message":{"message_id":2,"edit_date":3,"chat":{"id":-100,"type":"supergroup"},"from":{"id":7},"caption":"@parleybot hi","photo":[{}]}}`,
		`{"update_id":1,"message":{"chat":{"id":-5},"migrate_to_chat_id":-1005}}`,
		`{"update_id":1,"message":{"message_id":2,"is_topic_message":true,"message_thread_id":4,"chat":{"id":-100},"sender_chat":{"id":-1},"text":"/a@parleybot","reply_to_message":{"message_id":9,"from":{"id":1}},"quote":{"text":"x"}}}`,
		`{"update_id":1,"message":{"message_id":2,"chat":{"id":7,"type":"private"},"from":{"id":7},"forward_origin":{},"external_reply":{},"venue":{},"location":{},"poll":{"options":[null]},"contact":{},"dice":{}}}`,
		`{"update_id":1,"callback_query":{"id":"5","from":{"id":7},"data":"q:a1:2","message":{"message_id":2,"date":0,"chat":{"id":-100,"type":"supergroup"}}}}`,
		`{"update_id":1,"callback_query":{"id":"5","from":{"id":7},"data":"q:a1:2"}}`,
		`{"update_id":1,"message":{"message_id":2,"media_group_id":"9","chat":{"id":7,"type":"private"},"from":{"id":7},"photo":[null,{"file_id":"x","file_size":1e300}]}}`,
		`{"update_id":1,"message":{"message_id":2,"chat":{"id":7,"type":"private"},"from":{"id":7},"document":{"file_id":"x","file_name":"../\u0000\u202e","mime_type":7}}}`,
		`{"message":null}`, `[]`, `{`, "\xff", `{"update_id":1e99}`,
	} {
		f.Add([]byte(s))
	}
	s := mem.New()
	c, err := New(Config{
		Name: "telegram", Token: "1:AAtoken", Groups: "mention", Dead: s.Log("dead"), Alias: s.Bucket("alias"),
		Log: slog.New(slog.NewTextHandler(io.Discard, nil)), Client: &http.Client{},
	})
	if err != nil {
		f.Fatal(err)
	}
	c.receiver.reader.self.username = "parleybot"
	f.Fuzz(func(t *testing.T, raw []byte) {
		u := decodeUpdate(raw)
		if u.err != nil {
			return
		}
		m, ok, err := c.receiver.reader.read(t.Context(), u.update)
		if err != nil {
			t.Error(err)
		}
		if ok && (m.From.ID == "" || m.Text+m.Media == "" && m.Quote == nil && m.Files == nil && m.Answer == nil || m.At.Chat == "" || m.ID == "" || m.Account != "1") {
			t.Errorf("read %+v", m)
		}
		_, _ = decodeUpdates(raw)
	})
}
