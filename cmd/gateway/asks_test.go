package main

import (
	"cmp"
	"testing"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// Every tool that Parley has is called something by people (C-004), and one that may be held back until somebody
// approves it has a sentence of its own that says what a call would do (C-051).
func TestToolsSpeakToPeople(t *testing.T) {
	t.Parallel()
	say := texts.English().Tools.Approval
	asked := 0
	for _, tool := range builtInTools() {
		if name := cmp.Or(tool.Display, say.Names.Of(cmp.Or(tool.AliasOf, tool.Name))); name == "" {
			t.Errorf("%s has no name for people", tool.Name)
		}
		if !tool.Dangerous && tool.Risky == nil && tool.Guard == nil {
			continue
		}
		asked++
		if tool.Ask == nil {
			t.Errorf("%s has no sentence for people", tool.Name)
			continue
		}
		c := tools.Call{Input: map[string]any{
			"path": "p.txt", "command": "make", "url": "https://e.com/x", "urls": []any{"https://e.com/x", "https://f.com/"}, "query": "q",
			"action": "add", "message": "m", "text": "t", "chat": "42", "channel": "telegram", "task": "t", "taskName": "t", "tasks": []any{map[string]any{"name": "n"}},
		}, Scope: tools.Scope{At: chat.Address{Channel: "web", Chat: "owner"}}}
		if tool.Name == "web_fetch" || tool.Name == "fetch_page" {
			delete(c.Input, "query")
		}
		if s := tool.Ask(say.Asks, c); s.Text == nil || len(s.About) == 0 {
			t.Errorf("%s says nothing of a call", tool.Name)
		}
	}
	if asked < 15 {
		t.Errorf("only %d tools are ever asked about", asked)
	}
}
