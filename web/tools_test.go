package web

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/llm"
	"parley/tools"
)

// what models are told of the tools, and with all=1 the rest.
func TestToolList(t *testing.T) {
	f := newFace(t)
	cookie := f.owner(t)
	for path, want := range map[string]string{
		"/api/tools": `{"tools":[{"type":"function","function":{"name":"list_dir","description":` + quoted(evil) + `,"parameters":{"type":"object"}}}],"total":1}`,
		"/api/tools?all=1": `{"tools":[{"type":"function","function":{"name":"file_list","description":` + quoted(evil) + `,"parameters":{"type":"object"}},"category":"files","alias_of":"list_dir"},` +
			`{"type":"function","function":{"name":"list_dir","description":` + quoted(evil) + `,"parameters":{"type":"object"}},"category":"general"}],"total":2}`,
	} {
		var got, wanted any
		body := f.want(t, 200, asking{path: path, by: cookie}).Body.Bytes()
		if json.Unmarshal(body, &got) != nil || json.Unmarshal([]byte(want), &wanted) != nil || !same(got, wanted) {
			t.Errorf("%s: %s", path, body)
		}
	}
}

func quoted(s string) string { b, _ := json.Marshal(s); return string(b) }

func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// the calls of a session, each with its seven keys.
func TestCalls(t *testing.T) {
	f := newFace(t)
	cookie := f.owner(t)
	f.want(t, 404, asking{path: "/api/sessions/nobody/calls", by: cookie})
	var got struct {
		Calls []map[string]any
		Total int
	}
	body := f.want(t, 200, asking{path: "/api/sessions/telegram:-100%2F7/calls", by: cookie}).Body.Bytes()
	if err := json.Unmarshal(body, &got); err != nil || got.Total != 1 || len(got.Calls) != 1 {
		t.Fatalf("%s, %v", body, err)
	}
	for _, key := range []string{"id", "type", "function", "result", "success", "skipped", "execution_time", "meta"} {
		if _, ok := got.Calls[0][key]; !ok {
			t.Errorf("no %s in %s", key, body)
		}
	}
	if len(got.Calls[0]) != 8 {
		t.Errorf("more keys than A-014 has: %s", body)
	}
}

// C-043, C-044, C-045: the statistics are shown, and begin anew.
func TestToolStats(t *testing.T) {
	f := newFace(t)
	cookie := f.owner(t)
	slow := tools.New("slow", "Takes its time.", func(context.Context, tools.Call, struct{}) (tools.Result, error) {
		time.Sleep(time.Millisecond)
		return tools.Result{Text: "done"}, nil
	})
	kit, err := tools.NewKit(t.Context(), tools.Scope{}, []tools.Source{tools.Fixed{slow}}, tools.Standard(tools.StandardConfig{Stats: f.Server.cfg.Gateway.Toolbox.Stats})...)
	if err != nil {
		t.Fatal(err)
	}
	kit.Call(t.Context(), tools.Call{ToolCall: llm.ToolCall{ID: "1", Name: "slow"}})
	stats := func() (s struct{ Tools []tools.Stat }) {
		if err := json.Unmarshal(f.want(t, 200, asking{path: "/api/tool-stats", by: cookie}).Body.Bytes(), &s); err != nil {
			t.Error(err)
		}
		return s
	}
	if got := stats().Tools; len(got) != 1 || got[0].Tool != "slow" || got[0].Runs != 1 || got[0].TotalDuration < 1 {
		t.Errorf("%+v", got)
	}
	var one tools.Stat
	if json.Unmarshal(f.want(t, 200, asking{path: "/api/tool-stats?tool=slow", by: cookie}).Body.Bytes(), &one) != nil || one != stats().Tools[0] {
		t.Errorf("of one tool: %+v", one)
	}
	if body := f.want(t, 404, asking{path: "/api/tool-stats?tool=fast", by: cookie}).Body.String(); !strings.Contains(body, "No stats found for tool: fast") {
		t.Error(body)
	}
	f.want(t, 204, asking{method: "DELETE", path: "/api/tool-stats?tool=fast", by: cookie})
	if got := stats().Tools; len(got) != 1 {
		t.Errorf("after a reset of another: %+v", got)
	}
	f.want(t, 204, asking{method: "DELETE", path: "/api/tool-stats", by: cookie})
	if got := stats().Tools; len(got) != 0 {
		t.Errorf("after a reset: %+v", got)
	}
	if !slices.ContainsFunc(f.audited, func(line string) bool { return strings.Contains(line, "statistics") }) {
		t.Error("the reset is not in the audit log")
	}
}

// A recording is the owner's alone, a line of JSON after the other.
func TestRecording(t *testing.T) {
	f := newFace(t)
	cookie := f.owner(t)
	f.want(t, 401, asking{path: "/api/sessions/telegram:-100%2F7/recording"})
	f.want(t, 404, asking{path: "/api/sessions/nobody/recording", by: cookie})
	got := f.want(t, 200, asking{path: "/api/sessions/telegram:-100%2F7/recording", by: cookie}).Body.String()
	if want := "{\"session\":\"telegram:-100/7\"}\n{}\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
