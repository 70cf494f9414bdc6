package main

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"parley/llm"
	"parley/llm/llmtest"
	"parley/requiretest"
	"parley/tools/mcp/mcptest"
)

// weatherOf is what a client's tool is said to have returned.
var weatherOf = regexp.MustCompile(`Result of get_weather \([^)]+\):\s+(.*)`)

// forPrograms answers what the programs of testdata/clients ask.
func forPrograms(_ context.Context, r llmtest.Request) llmtest.Reply {
	last := spokenLast(r)
	result := weatherOf.FindStringSubmatch(r.Last())
	switch {
	case result != nil:
		return llmtest.Reply{Text: "They say: " + strings.Trim(result[1], `"> `)}
	case last == "weather":
		return llmtest.Reply{Calls: []llm.ToolCall{{ID: "call_1", Name: "get_weather", Args: `{"city":"Rome"}`}}}
	case last == "count" && strings.Contains(string(r.Body), `"max_tokens":2`):
		return llmtest.Reply{Text: "one, t", Finish: "length"}
	case last == "JSON" && strings.Contains(string(r.Body), `"response_format":{"type":"json_schema"`):
		return llmtest.Reply{Text: `{"city":"Rome"}`}
	}
	return llmtest.Reply{Text: r.Model + " heard " + last}
}

// Other people's clients find what they know from OpenAI: models, limits, formats, their own tools, errors.
func TestClientsFromNPM(t *testing.T) {
	t.Parallel()
	packages := filepath.Join(os.Getenv(mcptest.PackagesVariable), "node_modules")
	if _, err := os.Stat(filepath.Join(packages, "openai")); err != nil {
		requiretest.Missing(t, mcptest.PackagesVariable+" is to name a folder with the npm packages:", err)
	}
	w := newTestGateway(t, forPrograms)
	other := maps.Clone(w.model)
	w.model["model"] = "m1"
	other["model"] = "m2"
	w.more["models"] = map[string]any{"main": w.model, "other": other}
	w.start()
	base := w.base()
	key := w.key("owner")
	for _, script := range []string{"openai.mjs", "ai.mjs"} {
		cmd := exec.CommandContext(t.Context(), mcptest.Node(), filepath.Join("testdata", "clients", script), packages)
		cmd.Env = append(os.Environ(), "OPENAI_BASE_URL="+base+"/v1", "OPENAI_API_KEY="+key)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "all is well" {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
	}
}

// A call that a client was given outlives Parley: after a kill the client's result goes on with the conversation, in
// which the call was made once.
func TestClientToolOutlivesKill(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, forPrograms)
	w.start()
	key := w.key("owner")
	const tool = `"tools":[{"type":"function","function":{"name":"get_weather"}}]`
	const asked = `{"role":"user","content":"weather"}`
	status, body := w.askAPI(w.base(), key, "first", `{"model":"parley",`+tool+`,"messages":[`+asked+`]}`)
	_, after, found := strings.Cut(body, `"tool_calls":[{"id":"`)
	id, _, _ := strings.Cut(after, `"`)
	if status != 200 || !found || id == "" {
		t.Fatal(status, body)
	}
	w.kill()
	w.start()
	again, body := w.askAPI(w.base(), key, "first", `{"model":"parley",`+tool+`,"messages":[`+asked+`]}`)
	if again != 200 || strings.Count(body, id) != 1 {
		t.Error(again, body)
	}
	result := `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"get_weather",` +
		`"arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id + `","content":"sunny"}`
	status, body = w.askAPI(w.base(), key, "second", `{"model":"parley",`+tool+`,"messages":[`+asked+`,`+result+`]}`)
	if status != 200 || !strings.Contains(body, "They say: sunny") {
		t.Error(status, body)
	}
	if out, _ := w.run("", "sessions", "list"); strings.Count(out, "api:owner/") != 1 {
		t.Errorf("the result did not go on with the conversation: %s", out)
	}
	if n := len(w.asked()); n != 2 {
		t.Errorf("the model was asked %d times", n)
	}
}
