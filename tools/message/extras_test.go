package message

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/arguments"
)

// D-088: what answers a message quotes it in its own chat, and never in
// another. The press of a button is for whoever is asked, and waits for nobody.
func TestButtonsAndQuotes(t *testing.T) {
	here := chat.Address{Channel: "telegram", Chat: "-100", Thread: "7"}
	scope := tools.Scope{At: here, From: chat.Sender{ID: "42", Role: chat.Owner}, Group: true, Message: "m9", Turn: "t"}
	for _, c := range []struct {
		args    string
		quote   string
		choices []string
		whom    string
		group   bool
	}{
		{`{"text":"hi"}`, "", nil, "", true},
		{`{"text":"hi","reply":true}`, "m9", nil, "", true},
		{`{"text":"hi","reply":"true","chat":"telegram:-100/7"}`, "m9", nil, "", true},
		{`{"text":"hi","reply":true,"chat":"discord:5"}`, "", nil, "", false},
		{`{"text":"hi","buttons":["Yes","No"]}`, "", []string{"Yes", "No"}, "42", true},
		{`{"text":"hi","buttons":["Yes","No"],"reply":true,"chat":"discord:5"}`, "", []string{"Yes", "No"}, "", false},
		{`{"text":"hi","buttons":[]}`, "", nil, "", true},
	} {
		var got []chat.Reply
		send := func(_ context.Context, r chat.Reply) error { got = append(got, r); return nil }
		for range 2 {
			if r := speak(t, scope, c.args, send); r.Failed {
				t.Fatalf("%s: %s", c.args, r.Text)
			}
		}
		r := got[0]
		if r.Quote != c.quote || r.Group != c.group || (r.Ask == nil) != (c.choices == nil) {
			t.Errorf("%s: sent %+v", c.args, r)
		}
		if q := r.Ask; q != nil && (!slices.Equal(q.Choices, c.choices) || q.Whom != c.whom || !q.Free || !q.Say || len(q.ID) != 16 || got[1].Ask.ID != q.ID) {
			t.Errorf("%s: asked %+v, then %+v", c.args, q, got[1].Ask)
		}
	}
	scope.Group = false
	var alone chat.Reply
	speak(t, scope, `{"text":"hi","reply":true}`, func(_ context.Context, r chat.Reply) error { alone = r; return nil })
	if alone.Quote != "m9" || !alone.Group {
		t.Errorf("in private nothing is quoted: %+v", alone)
	}
	for args, want := range map[string]string{
		`{"text":"hi","buttons":["Yes"," yes"]}`:                                  "Error: choices 1 and 2 are the same: nothing was sent" + hint,
		`{"text":"hi","buttons":[""]}`:                                            "Error: choice 1 is empty: nothing was sent" + hint,
		`{"text":"hi","buttons":["1","2","3","4","5","6","7","8","9","10","11"]}`: "Error: Invalid parameters for tool 'message': buttons must have at most 10 items" + hint,
	} {
		if r := speak(t, scope, args, nil); r.Text != want || r.Code != tools.CodeInvalid {
			t.Errorf("%s: %q, want %q", args, r.Text, want)
		}
	}
}

// D-090: what a hundred sessions ask, each is answered where it asked.
func TestNoCrosstalkOfButtons(t *testing.T) {
	var mu sync.Mutex
	ids := map[string]bool{}
	send := func(_ context.Context, r chat.Reply) error {
		mu.Lock()
		defer mu.Unlock()
		ids[r.Ask.ID] = true
		if r.Quote != "m"+r.To.Chat || r.Ask.Whom != "u"+r.To.Chat || r.Text != r.To.Chat {
			t.Errorf("%+v %+v is mixed up", r, *r.Ask)
		}
		return nil
	}
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{New(send)}}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			id := fmt.Sprint(i)
			scope := tools.Scope{At: chat.Address{Channel: "web", Chat: id}, From: chat.Sender{ID: "u" + id}, Message: "m" + id, Turn: id}
			args := fmt.Sprintf(`{"text":"%d","reply":true,"buttons":["a","b"]}`, i)
			if r := kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "message", Args: args}, Scope: scope}); r.Failed {
				t.Errorf("%s: %s", id, r.Text)
			}
		})
	}
	all.Wait()
	if len(ids) != 100 {
		t.Errorf("%d questions, want 100", len(ids))
	}
}

// R-S12: once strangers have had a word, speaking elsewhere is asked for first.
func TestGuard(t *testing.T) {
	here := chat.Address{Channel: "telegram", Chat: "42"}
	guard := New(nil).Guard
	for _, c := range []struct {
		in   map[string]any
		want bool
	}{
		{map[string]any{"text": "hi"}, false},
		{map[string]any{"text": "hi", "chat": "42"}, false},
		{map[string]any{"text": "hi", "chat": "telegram:42", "channel": "telegram"}, false},
		{map[string]any{"text": "hi", "chat": "43"}, true},
		{map[string]any{"text": "hi", "chat": "telegram:42/7"}, true},
		{map[string]any{"text": "hi", "channel": "discord", "chat": "42"}, true},
		{map[string]any{"text": "hi", "channel": "discord"}, false}, // it goes nowhere
	} {
		scope := tools.Scope{At: here, From: chat.Sender{Role: chat.Owner}}
		if got := guard(tools.Call{Scope: scope, Input: c.in}); got != c.want {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
		scope.From.Role = chat.User // who is told no, and nobody is asked (R-S23)
		if guard(tools.Call{Scope: scope, Input: c.in}) {
			t.Errorf("%v: an owner is asked what is refused anyway", c.in)
		}
	}
}

// C-015, C-016: a preview makes do with what has come in.
func TestPreview(t *testing.T) {
	preview := New(nil).Preview
	for args, want := range map[string]string{
		`{`:                                     "",
		`{"text":"Hel`:                          "Hel",
		`{"text":"a\nb  c","chat`:               "a b c",
		`{"text":"Hello","chat":"telegram:42"}`: "to telegram:42: Hello",
		`{"chat":42,"channel":"telegram","text":"Hello"}`: "to telegram:42: Hello",
		`{"chat":"42"}`:                     "to 42",
		`{"channel":"discord","text":"你好"}`: "to discord: 你好",
		`{"text":"1234567890123456789012345678901234567890 and more"}`: "1234567890123456789012345678901234567890…",
		`{"text":["no text"],"chat":{}}`:                               "to map[]",
	} {
		if got := preview(texts.English().Agent.Steps, arguments.Partial(args)); got != want {
			t.Errorf("%s: %q, want %q", args, got, want)
		}
	}
}

// D-117: the model is told to send files with message and its media, and not with read_file.
func TestDescription(t *testing.T) {
	const want = "It is the only way to send files (media): read_file shows them only to you."
	if tool := New(nil); !strings.Contains(tool.Description, want) {
		t.Errorf("got %q", tool.Description)
	}
}

// C-030: attempt_completion ends the turn, after all other calls of its round.
func TestComplete(t *testing.T) {
	kit := func(listed bool, more ...tools.Source) *tools.Kit {
		sources := append([]tools.Source{tools.Fixed{NewComplete(listed), New(nil)}}, more...)
		k, err := tools.NewKit(t.Context(), tools.Scope{}, sources, tools.Standard(tools.StandardConfig{})...)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	call := func(args string) tools.Call {
		return tools.Call{ToolCall: llm.ToolCall{ID: "c", Name: "attempt_completion", Args: args}}
	}
	for _, listed := range []bool{true, false} {
		k := kit(listed)
		if got := slices.ContainsFunc(k.Specs(), func(s llm.ToolSpec) bool { return s.Name == "attempt_completion" }); got != listed {
			t.Errorf("listed is %v, want %v", got, listed)
		}
		if r := k.Call(t.Context(), call(`{"result":"All **done**."}`)); r.Failed || r.Text != "Task completed." || r.End != "All **done**." {
			t.Errorf("got %+v", r)
		}
		for _, args := range []string{``, `{}`, `{"result":""}`, `{"result":" \n"}`, `{"result":null}`} {
			if r := kit(listed).Call(t.Context(), call(args)); !r.Failed || r.Code != tools.CodeInvalid || r.Text != "Error: missing required parameter: result"+hint || r.End != "" {
				t.Errorf("%s: %+v", args, r)
			}
		}
		other := tools.Call{ToolCall: llm.ToolCall{ID: "m", Name: "message", Args: `{"text":"hi"}`}}
		if groups := k.Groups([]tools.Call{call(`{"result":"x"}`), other}); len(groups) != 2 || groups[0][0].ID != "m" || groups[1][0].ID != "c" {
			t.Errorf("the groups are %+v", groups)
		}
	}
	// C-035, C-036: a person's own tool of that name takes its place, in the list and in the call.
	own := NewComplete(true)
	own.Description = "Mine."
	own.Run = func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{Text: "mine"}, nil }
	k := kit(true, tools.Fixed{own})
	if specs := k.Specs(); len(specs) != 2 || specs[0].Description != "Mine." {
		t.Errorf("the list is %+v", specs)
	}
	if r := k.Call(t.Context(), call(`{"result":"x"}`)); r.Text != "mine" {
		t.Errorf("got %+v", r)
	}
}

// A yes to messages for a while is none to files.
func TestEffectNamesFiles(t *testing.T) {
	effect := New(nil).Effect
	scope := tools.Scope{At: chat.Address{Channel: "telegram", Chat: "42"}}
	words := effect(tools.Call{Scope: scope, Input: map[string]any{"text": "hi", "chat": "43"}})
	files := effect(tools.Call{Scope: scope, Input: map[string]any{"text": "hi", "chat": "43", "media": []any{"MEMORY.md"}}})
	if words != "send a message to telegram:43" || files != "send the files MEMORY.md to telegram:43" {
		t.Errorf("%q and %q", words, files)
	}
}
