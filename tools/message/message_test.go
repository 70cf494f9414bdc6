package message

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const hint = "\n\n[Analyze the error above and try a different approach.]"

func TestSchema(t *testing.T) {
	tool, path := New(nil), "testdata/message.json"
	got := fmt.Sprintf("%s\n%s\n", tool.Description, tool.Schema)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(path); string(want) != got || err != nil {
		t.Errorf("%s: %v; go test -update makes it\n%s", path, err, got)
	}
	if tool.Parallel() {
		t.Error("D-039: messages must be sent one after another")
	}
}

// speak runs one call of the message tool.
func speak(t *testing.T, scope tools.Scope, args string, send chat.Send) tools.Result {
	t.Helper()
	kit, err := tools.NewKit(t.Context(), scope, []tools.Source{tools.Fixed{New(send)}}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	return kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "c1", Name: "message", Args: args}, Scope: scope})
}

// D-087, R-S23: where a message goes, and who may send it there.
func TestTargets(t *testing.T) {
	private := chat.Address{Channel: "telegram", Chat: "42"}
	topic := chat.Address{Channel: "telegram", Chat: "-100", Thread: "7"}
	owner, user := chat.Sender{ID: "42", Role: chat.Owner}, chat.Sender{ID: "43", Role: chat.User}
	const denied = "denied"
	for _, c := range []struct {
		from chat.Sender
		at   chat.Address
		args string
		want string // session, or denied, or an error's text
	}{
		{user, private, `{"text":"hi"}`, "telegram:42"},
		{user, private, `{"content":"hi"}`, "telegram:42"},
		{user, topic, `{"text":"hi"}`, "telegram:-100/7"},
		{user, topic, `{"text":"hi","chat":"-100"}`, "telegram:-100/7"},
		{user, topic, `{"text":"hi","chat":"-100/8"}`, denied},
		{user, private, `{"text":"hi","channel":"telegram"}`, "telegram:42"},
		{user, private, `{"text":"hi","chat_id":42}`, "telegram:42"},
		{user, private, `{"text":"hi","chat":"telegram:42"}`, "telegram:42"},
		{user, private, `{"text":"hi","chat":"43"}`, denied},
		{user, private, `{"text":"hi","chat":"discord:42"}`, denied},
		{user, private, `{"text":"hi","channel":"discord","chat":"42"}`, denied},
		{chat.Sender{}, private, `{"text":"hi","chat":"43"}`, denied},
		{owner, private, `{"text":"hi","chat":"43"}`, "telegram:43"},
		{owner, private, `{"text":"hi","chat":"discord:5"}`, "discord:5"},
		{owner, private, `{"text":"hi","chat":"telegram:-100/7"}`, "telegram:-100/7"},
		{owner, private, `{"text":"hi","channel":"telegram:work","chat":"5"}`, "telegram:work:5"},
		{owner, private, `{"text":"hi","chat":"telegram:work:5"}`, "telegram:work:5"},
		{owner, private, `{"text":"hi","channel":"discord"}`, "Error: No target channel/chat specified" + hint},
		{owner, private, `{"text":"hi","chat":"discord:"}`, "Error: No target channel/chat specified" + hint},
		{user, chat.Address{}, `{"text":"hi"}`, "Error: No target channel/chat specified" + hint},
		{user, private, `{"text":""}`, "Error: Invalid parameters for tool 'message': text must be at least 1 chars" + hint},
	} {
		var sent []chat.Reply
		send := func(_ context.Context, r chat.Reply) error { sent = append(sent, r); return nil }
		r := speak(t, tools.Scope{At: c.at, From: c.from, Turn: "t"}, c.args, send)
		switch {
		case c.want == denied && (r.Code != tools.CodeDenied || len(sent) != 0):
			t.Errorf("%s from %s: %+v, sent %v; want a refusal", c.args, c.from.Role, r, sent)
		case c.want == denied:
		case r.Failed && (r.Text != c.want || len(sent) != 0):
			t.Errorf("%s: %q, sent %v; want %q", c.args, r.Text, sent, c.want)
		case !r.Failed && (r.Text != "Message sent to "+c.want || len(sent) != 1 || string(sent[0].To.Session()) != c.want || sent[0].Text != "hi"):
			t.Errorf("%s: %q, sent %+v; want it at %s", c.args, r.Text, sent, c.want)
		}
	}
}

// P6: a call that is repeated after a crash sends the same reply, which is then dropped.
func TestSameReply(t *testing.T) {
	seen := map[string]bool{}
	send := func(_ context.Context, r chat.Reply) error { seen[r.ID] = true; return nil }
	scope := tools.Scope{At: chat.Address{Channel: "web", Chat: "1"}, Turn: "web//1/9"}
	speak(t, scope, `{"text":"hi"}`, send)
	speak(t, scope, `{"text":"hi"}`, send)
	if len(seen) != 1 || !seen["tool:web//1/9#c1"] {
		t.Errorf("ids are %v, want one", seen)
	}
}

func TestNotSent(t *testing.T) {
	scope := tools.Scope{At: chat.Address{Channel: "web", Chat: "1"}}
	if r := speak(t, scope, `{"text":"hi"}`, nil); r.Text != "Error: Message sending not configured"+hint {
		t.Errorf("got %q", r.Text)
	}
	full := func(context.Context, chat.Reply) error { return errors.New("disk full") }
	if r := speak(t, scope, `{"text":"hi"}`, full); r.Text != "Error: send to web:1: disk full"+hint || !r.Failed {
		t.Errorf("got %q", r.Text)
	}
}

// D-090: a hundred sessions speak at once with one kit, each in its own chat.
func TestNoCrosstalk(t *testing.T) {
	var mu sync.Mutex
	heard := map[string]string{}
	send := func(_ context.Context, r chat.Reply) error {
		mu.Lock()
		defer mu.Unlock()
		heard[r.To.Chat] += r.Text
		return nil
	}
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{New(send)}}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			chatID := fmt.Sprint(i)
			scope := tools.Scope{At: chat.Address{Channel: "web", Chat: chatID}, Turn: chatID}
			for n := range 3 {
				kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: fmt.Sprint(n), Name: "message", Args: fmt.Sprintf(`{"text":"%d."}`, i)}, Scope: scope})
			}
		})
	}
	all.Wait()
	for i := range 100 {
		if got, want := heard[fmt.Sprint(i)], strings.Repeat(fmt.Sprintf("%d.", i), 3); got != want {
			t.Errorf("chat %d heard %q, want %q", i, got, want)
		}
	}
}
