package main

import (
	"context"
	"os/exec"
	"strings"
	"testing"

	"parley/llm/llmtest"
)

// TestMCPOtherParley: a Parley uses another as its MCP server, over HTTP with a key and by parley mcp serve, and
// goes on with it when that was killed. With a wrong key it gets nothing, and says so.
func TestMCPOtherParley(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("parley")
	if err != nil {
		t.Fatal(err)
	}
	other := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	other.start()
	base := other.base()
	other.tg.Say(person, "hello")
	other.says(person, "answer to hello")
	byHTTP := func(key string) map[string]any {
		return map[string]any{"url": base + "/mcp", "headers": map[string]string{"Authorization": "Bearer " + key}}
	}
	w := newTestGateway(t, obedient)
	w.mcpServers(map[string]any{
		"http":  byHTTP(other.key("owner")),
		"wrong": byHTTP("parley_" + strings.Repeat("A", 52)),
		"stdio": map[string]any{"command": program, "args": []string{"--data", other.dir, "mcp", "serve"}},
	})
	w.start()
	w.connects("http", "stdio")
	use := func(server string) {
		t.Helper()
		tool := "mcp_" + server + "_"
		send := tool + `send_message {"text": "sent by ` + server + `"}`
		if got := w.does(person, tool+"list_jobs {}", send); strings.Count(got, `"jobs"`) != 1 || !strings.Contains(got, `"chat"`) {
			t.Errorf("%s: %s", server, got)
		}
		other.sentOnce(person, "sent by "+server)
		w.tg.Say(person, "call "+tool+`ask_agent {"message": "tea for `+server+`"}`)
		q := w.asks(person, "ask_agent")
		w.tg.Press(person, q.ID, 0)
		w.told(person, "the other's answer", func(texts []string) bool {
			return strings.Contains(strings.Join(texts, "\n"), "answer to tea for "+server)
		})
	}
	use("http")
	use("stdio")
	if got := w.does(person, "mcp_wrong_list_jobs {}"); !strings.Contains(got, "not found") {
		t.Errorf("with a wrong key: %s", got)
	}
	w.tg.Say(person, "/mcp")
	w.told(person, "why there is nothing", func(texts []string) bool {
		return strings.Contains(strings.Join(texts, "\n"), "Unauthorized")
	})
	other.kill()
	other.start()
	if got := w.does(person, "mcp_stdio_list_jobs {}"); !strings.Contains(got, `"jobs"`) {
		t.Errorf("after the other's end: %s", got)
	}
}
