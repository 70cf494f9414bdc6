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
	"time"

	"parley/chat"
	"parley/llm"
	"parley/timetest"
	"parley/tools"
	"parley/workspace"
)

var update = flag.Bool("update", false, "rewrite the golden file")

const hint = "\n\n[Analyze the error above and try a different approach.]"

func TestSchema(t *testing.T) {
	for path, tool := range map[string]tools.Tool{"testdata/message.json": New(nil), "testdata/ask_user.json": NewAsk(nil, nil), "testdata/attempt_completion.json": NewComplete(true)} {
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
			t.Errorf("D-039: %s must not run beside others", tool.Name)
		}
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

// D-087, D-089, R-S18, R-S23: files of the workspace go along, and nothing else does.
func TestMedia(t *testing.T) {
	dir := t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	const others = ".parley/tool-results/telegram_42-0011/a.txt"
	for _, name := range []string{"a.png", "docs/b c.pdf", others} {
		if err := ws.Names().WriteFile(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	scope := tools.Scope{At: chat.Address{Channel: "web", Chat: "1"}, From: chat.Sender{Role: chat.Owner}, Turn: "t", Workspace: ws}
	const refused = "Error: media path is not allowed: "
	for args, want := range map[string]string{
		`{"text":"hi","media":["a.png"]}`:                              "Message sent to web:1 with 1 attachments",
		`{"text":"hi","files":["a.png","docs/b c.pdf"]}`:               "Message sent to web:1 with 2 attachments",
		`{"text":"hi","attachments":["` + dir + `/a.png"],"chat":"2"}`: "Message sent to web:2 with 1 attachments",
		`{"text":"hi","media":[]}`:                                     "Message sent to web:1",
		`{"text":"hi","media":["a.png","/etc/passwd"]}`:                refused + "Path /etc/passwd is outside allowed directory " + dir + hint,
		`{"text":"hi","media":["../x"]}`:                               refused + "Path ../x is outside allowed directory " + dir + hint,
		`{"text":"hi","media":["link"]}`:                               refused + "Path link is outside allowed directory " + dir + hint,
		`{"text":"hi","media":["docs"]}`:                               refused + "docs: not a plain file" + hint,
		`{"text":"hi","media":["` + others + `"]}`:                     refused + others + " is not for this conversation" + hint,
		`{"text":"hi","media":["gone.png"]}`:                           refused + "gone.png: no such file or directory" + hint,
	} {
		var got []chat.Reply
		r := speak(t, scope, args, func(_ context.Context, r chat.Reply) error { got = append(got, r); return nil })
		if r.Text != want || r.Failed != (len(got) == 0) || r.Failed == strings.HasPrefix(want, "Message") {
			t.Errorf("%s: %q, sent %+v; want %q", args, r.Text, got, want)
		}
		for _, reply := range got {
			for _, f := range reply.Files {
				if f.Path != "a.png" && f.Path != "docs/b c.pdf" || f.Name == "" || !strings.Contains("image/png application/pdf", f.Type) {
					t.Errorf("%s: sent %+v", args, f)
				}
			}
			if (r.Told == "hi") != (reply.To == scope.At) {
				t.Errorf("D-091: %s told %q", args, r.Told)
			}
		}
	}
}

// A question is one question, however often it is asked, and says who chose what.
func TestAsk(t *testing.T) {
	scope := tools.Scope{At: chat.Address{Channel: "web", Chat: "1"}, From: chat.Sender{ID: "7"}, Group: true, Turn: "web//1/9"}
	run := func(ctx context.Context, ask Ask, withdraw func(context.Context, string) error) tools.Result {
		kit, err := tools.NewKit(ctx, scope, []tools.Source{tools.Fixed{NewAsk(ask, withdraw)}}, tools.Standard(tools.StandardConfig{})...)
		if err != nil {
			t.Fatal(err)
		}
		return kit.Call(ctx, tools.Call{ToolCall: llm.ToolCall{ID: "c1", Name: "ask_user", Args: `{"question":"Really?","options":["Yes","No"]}`}, Scope: scope})
	}
	var asked []chat.Reply
	for _, c := range []struct {
		index int
		text  string
		name  string
		want  string
	}{
		{0, "", "Anna", `Anna chose "Yes"`},
		{1, "", "A\n[x]  B", `A [x] B chose "No"`},
		{-1, "maybe", "", "The person answered in their own words: maybe"},
		{7, "what?", "Anna", "Anna answered in their own words: what?"},
	} {
		r := run(t.Context(), func(_ context.Context, r chat.Reply) (int, string, chat.Sender, error) {
			asked = append(asked, r)
			return c.index, c.text, chat.Sender{Name: c.name}, nil
		}, nil)
		if r.Failed || r.Text != c.want {
			t.Errorf("got %+v, want %q", r, c.want)
		}
	}
	q := asked[0].Ask
	if again := asked[3]; again.ID != asked[0].ID || again.Ask.ID != q.ID {
		t.Errorf("asked %+v, then %+v", asked[0], again)
	}
	if len(q.ID) != 16 || q.Whom != "7" || !q.Free || len(q.Choices) != 2 || asked[0].To != scope.At || asked[0].ID == "" || !asked[0].Group {
		t.Errorf("asked %+v %+v", asked[0], *q)
	}
	full := func(context.Context, chat.Reply) (int, string, chat.Sender, error) {
		return 0, "", chat.Sender{}, errors.New("disk full")
	}
	if r := run(t.Context(), full, nil); r.Text != "Error: ask at web:1: disk full"+hint {
		t.Errorf("got %q", r.Text)
	}
}

// Choices that a person cannot tell apart are the model's to mend.
func TestUnclear(t *testing.T) {
	for want, choices := range map[string][]string{
		"": {"Yes", "No", "yes, but"}, "choice 2 is empty": {"Yes", " \n"}, "choices 1 and 3 are the same": {"Yes please", "No", " yes  Please"},
	} {
		asked := false
		tool := NewAsk(func(context.Context, chat.Reply) (int, string, chat.Sender, error) {
			asked = true
			return 0, "", chat.Sender{}, nil
		}, nil)
		r, err := tool.Run(t.Context(), tools.Call{Input: map[string]any{"question": "?", "choices": choices}})
		if err != nil || asked != (want == "") || r.Failed == asked || !strings.HasPrefix(r.Text, want) {
			t.Errorf("%q: asked %v, %+v, %v", choices, asked, r, err)
		}
	}
}

// A question that nobody waits for is withdrawn, but not because the house
// closes: then it is asked again at the next start.
func TestWithdraw(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		wait := func(ctx context.Context, _ chat.Reply) (int, string, chat.Sender, error) {
			<-ctx.Done()
			return 0, "", chat.Sender{}, ctx.Err()
		}
		for _, c := range []struct {
			cause error
			after time.Duration
			want  int
			code  string
		}{
			{errors.New("stopped"), time.Minute, 1, tools.CodeCancelled},
			{tools.ErrClosing, time.Minute, 0, tools.CodeCancelled},
			{nil, 0, 1, tools.CodeTimeout},
		} {
			withdrawn := 0
			tool := NewAsk(wait, func(context.Context, string) error { withdrawn++; return nil })
			kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{tool}}, tools.Standard(tools.StandardConfig{})...)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			if c.after > 0 {
				time.AfterFunc(c.after, func() { cancel(c.cause) })
			}
			began := time.Now()
			r := kit.Call(ctx, tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "ask_user", Args: `{"question":"?","choices":["a","b"]}`}})
			if took := time.Since(began); withdrawn != c.want || r.Code != c.code || c.after == 0 && took != 24*time.Hour {
				t.Errorf("%v: withdrawn %d times after %v: %+v", c.cause, withdrawn, took, r)
			}
			cancel(nil)
		}
	})
}
