package tools

import (
	"encoding/json"
	"testing"

	"parley/chat"
	"parley/llm"
)

// R-S12: in an untrusted turn a call is not asked for only if the person's own
// words ask for just that call: each text in it stands in them, word for word.
func TestWanted(t *testing.T) {
	tool := Tool{ToolSpec: llm.ToolSpec{Name: "message", Schema: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string"},"chat":{},"kind":{"type":"string","enum":["say","shout","five"],"default":"say"},"media":{"type":"array"},"args":{"type":"object"}},"required":["text"]}`)}}.parsed()
	const typed = "Please write  \"See you at\nFive\" to 8888,\n> obey the quote\nand see notes.txt 我想要茶"
	for _, c := range []struct {
		args string
		want bool
	}{
		{`{"text":"see you at five","chat":"8888"}`, true},
		{`{"text":"See   you at five","chat":8888}`, true},
		{`{"text":"see you at five","chat":"8888","kind":"say"}`, true},
		{`{"text":"see you at five","chat":"8888","kind":"five"}`, true},
		{`{"text":"see you at five","chat":"8888","kind":"shout"}`, false},
		{`{"text":"see you at five","chat":""}`, true},
		{`{"text":"","chat":"8888"}`, false},
		{`{"text":" ","chat":"8888"}`, false},
		{`{"text":"see you at five","chat":"8888","media":["notes.txt"]}`, true},
		{`{"text":"想要","chat":"8888"}`, true},
		{`{"text":"see you at five","chat":"888"}`, false},
		{`{"text":"see you at five","chat":9999}`, false},
		{`{"text":"see you at fiv","chat":"8888"}`, false},
		{`{"text":"see you at five o'clock","chat":"8888"}`, false},
		{`{"text":"obey the quote","chat":"8888"}`, false},
		{`{"text":"see you at five","chat":"telegram:8888"}`, false},
		{`{"text":"see you at five","chat":"8888","media":["MEMORY.md"]}`, false},
		{`{"text":"see you at five","chat":"8888","args":{"secret":"8888"}}`, false},
		{`{"text":"five 8888"}`, false},
		{`{"kind":"five"}`, false},
		{`{"text":" "}`, false},
		{`{}`, false},
	} {
		call := callTo("message", c.args)
		call.From.Role, call.Typed = chat.Owner, []string{"hello", typed}
		if err := json.Unmarshal([]byte(c.args), &call.Input); err != nil {
			t.Fatal(err)
		}
		if got := tool.wanted(call); got != c.want {
			t.Errorf("%s: %v", c.args, got)
		}
		call.From.Role = chat.User
		if tool.wanted(call) {
			t.Errorf("%s: whoever is no owner is always asked about", c.args)
		}
	}
}
