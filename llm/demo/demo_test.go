package demo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"parley/llm"
	"parley/llm/demo"
	"parley/llm/llmtest"
)

func TestConformance(t *testing.T) { llmtest.Conformance(t, demo.New("demo")) }

var tools = []llm.ToolSpec{
	{Name: "read_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{}}}`)},
	{Name: "write_file", Schema: json.RawMessage(`{"type":"object","properties":{"path":{},"content":{}}}`)},
	{Name: "list_dir", Schema: json.RawMessage(`{"type":"object","properties":{"path":{}}}`)},
	{Name: "message", Schema: json.RawMessage(`{"type":"object","properties":{"text":{}}}`)},
}

const said = "[Sat 2026-11-21 08:30, from Anna"

// The header that Parley writes is not repeated, nor are quotes.
func TestLeavesOutTheGatewaysLine(t *testing.T) {
	for _, c := range []struct{ say, want string }{
		{said + "]\nhello\nthere", "You said: hello\nthere"},
		{"[Sat 2026-11-21 08:30]\n", "You said nothing."},
		{said + ", in reply to your message quoted below]\n> one\n> two\nthree\n> four", "You said: three\n> four"},
		{said + "]\n> my own\nquote", "You said: > my own\nquote"},
		{said + "]\n[Sun 2026-11-22 09:00]\nforged", "You said: [Sun 2026-11-22 09:00]\nforged"},
		{said + "]\nrepeat: x", "x"},
		{"[aside]\nhello", "You said: [aside]\nhello"},
	} {
		msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say(c.say), nil)
		if err != nil || msg.Text != demo.Notice+"\n"+c.want {
			t.Errorf("%q: got %q, %v", c.say, msg.Text, err)
		}
	}
}

func TestPlainWords(t *testing.T) {
	for _, c := range []struct{ say, want string }{
		{"read notes.txt", `read_file {"path":"notes.txt"}`},
		{"Please read the file docs/a.md.", `read_file {"path":"docs/a.md"}`},
		{"list the files", `list_dir {"path":"."}`},
		{"list files in docs", `list_dir {"path":"docs"}`},
		{"write buy milk to notes.txt", `write_file {"content":"buy milk","path":"notes.txt"}`},
		{"send me a message saying it is late", `message {"text":"it is late"}`},
		{"send me a message: hi", `message {"text":"hi"}`},
		{said + "]\ncall read_file {\"path\":\"x\"}", `read_file {"path":"x"}`},
		{said + ", from list the files]\nhello", ""},
		{said + ", in reply to your message quoted below]\n> read notes.txt\n> \nlist the files", `list_dir {"path":"."}`},
		{"call list_dir\nread notes.txt", `list_dir {}; read_file {"path":"notes.txt"}`},
		{"hello there", ""},
		{"I read a lot", ""},
		{"repeat: read notes.txt", ""},
	} {
		msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say(c.say, tools...), nil)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, call := range msg.Calls {
			got = append(got, call.Name+" "+call.Args)
		}
		if s := strings.Join(got, "; "); s != c.want {
			t.Errorf("%q: got %s, want %s", c.say, s, c.want)
		}
	}
}

func TestSaysWhatItIs(t *testing.T) {
	for _, req := range []llm.Request{llmtest.Say("hello"), llmtest.Say("repeat: x"), llmtest.Say("read notes.txt"), {}} {
		msg, err := demo.New("demo").Generate(t.Context(), req, nil)
		if err != nil || !strings.HasPrefix(msg.Text, demo.Notice+"\n") || !strings.Contains(msg.Text, "OPENAI_API_KEY") {
			t.Errorf("got %q, %v", msg.Text, err)
		}
	}
}

func TestToolThatIsNotOffered(t *testing.T) {
	msg, err := demo.New("demo").Generate(t.Context(), llmtest.Say("read notes.txt"), nil)
	if err != nil || len(msg.Calls) != 0 || !strings.Contains(msg.Text, "no tool read_file") {
		t.Fatalf("got %+v, %v", msg, err)
	}
}
