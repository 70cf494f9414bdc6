package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/message"
)

// However much a call takes, its step shows little of it (D-040, P15).
func TestStepsAreBrief(t *testing.T) {
	params := map[string]any{"n": 17, "list": []any{strings.Repeat("x", 1000)}, "content": strings.Repeat("ä", 1<<20), strings.Repeat("k", 100): true}
	for i := range 100 {
		params[fmt.Sprint("z", i)] = i
	}
	got := brief(params)
	if list, _ := got["list"].(string); len(got) != maxArgs || got["n"] != 17 || got[strings.Repeat("k", maxName)] != true ||
		got["content"] != strings.Repeat("ä", maxText) || !strings.HasPrefix(list, `["xxx`) || len(list) != maxText {
		t.Errorf("the step shows %.300v", got)
	}
}

type shown []chat.Step

func (*shown) Show(string)        {}
func (s *shown) Step(x chat.Step) { *s = append(*s, x) }
func (*shown) Close()             {}

// What a tool says in the turn's own chat is seen there, and is no step: not while it comes in, and not when it is said. What it
// says elsewhere is one, and so is what could not be said.
func TestSpeechIsNoStep(t *testing.T) {
	send := func(context.Context, chat.Reply) error { return nil }
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{message.New(send)}}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		t.Fatal(err)
	}
	here := llm.ToolCall{ID: "1", Name: "message", Args: `{"text":"Hel`}
	there := llm.ToolCall{ID: "2", Name: "message", Args: `{"to":"telegram:7","text":"Hel`}
	named := llm.ToolCall{ID: "4", Name: "message", Args: `{"text":"Hello","chat":"42"}`} // written in chat 42
	say := texts.English().Agent.Steps
	var seen shown
	v := NewView(say)
	v.Open(&seen, false)
	in := Incoming{View: v, Kit: kit}
	in.Add(here)
	in.Add(there)
	v.Call(kit, here, chat.Running)
	v.Result(llm.Message{Call: "1", Name: "message", Text: "sent"}, tools.Result{Told: "Hello"}, false)
	v.Result(llm.Message{Call: "2", Name: "message", Text: "sent"}, tools.Result{}, false)
	v.Result(llm.Message{Call: "3", Name: "message", Text: "no"}, tools.Result{Failed: true}, false)
	v.Call(kit, named, chat.Running)
	v.Result(llm.Message{Call: "4", Name: "message", Text: "sent"}, tools.Result{Told: "Hello"}, false)
	var got []string
	for _, s := range seen {
		got = append(got, fmt.Sprint(s.Call, s.State))
	}
	if want := []string{"2wait", "2success", "3error", "4doing", "4success"}; !slices.Equal(got, want) {
		t.Errorf("steps %v, want %v", got, want)
	}
	spoke := chat.Step{Call: "1", Tool: "message", State: chat.Done, Spoke: true}
	elsewhere := chat.Step{Call: "2", Tool: "message", State: chat.Done}
	answers := []llm.Message{{Calls: []llm.ToolCall{here}}}
	if line, taken := Summarize(say, kit, []chat.Step{spoke}, answers); line != "" || taken == nil || taken.All != 0 {
		t.Errorf("words only: %q, %+v", line, taken)
	}
	if line, taken := Summarize(say, kit, []chat.Step{{Call: "9", Tool: "look_up", State: chat.Done}}, nil); line == "" || taken == nil || taken.All != 1 {
		t.Errorf("a step of a turn in which no model answered: %q, %+v", line, taken)
	}
	again := []llm.Message{{Calls: []llm.ToolCall{{ID: "1", Name: "look_up", Args: "{}"}}}, answers[0]} // the first was rolled back
	looked := chat.Step{Call: "1", Tool: "look_up", State: chat.Done}
	if line, taken := Summarize(say, kit, []chat.Step{looked, spoke}, again); line == "" || taken == nil || taken.All != 1 {
		t.Errorf("two calls with the same ID: %q, %+v", line, taken)
	}
	if line, taken := Summarize(say, kit, nil, nil); line != "" || taken != nil {
		t.Errorf("a turn in which no model answered: %q, %+v", line, taken)
	}
	answers[0].Calls = append(answers[0].Calls, there)
	if line, taken := Summarize(say, kit, []chat.Step{spoke, elsewhere}, answers); line == "" || taken == nil || taken.All != 1 {
		t.Errorf("with words for others: %q, %+v", line, taken)
	}
}
