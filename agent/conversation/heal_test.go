package conversation

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"parley/llm"
)

// acceptable returns what a provider would answer 400 to in ms, or "".
func acceptable(ms []llm.Message) string {
	ids := map[string]bool{}
	var waiting []string
	for i, m := range ms {
		if m.Role != llm.ToolRole && len(waiting) > 0 {
			return fmt.Sprintf("message %d: calls %q are not followed by results", i, waiting)
		}
		switch m.Role {
		case llm.User:
			if m.Text == "" {
				return fmt.Sprintf("message %d is empty", i)
			}
		case llm.Assistant:
			if i == 0 {
				return "the agent begins"
			}
			if m.Text == "" && len(m.Calls) == 0 {
				return fmt.Sprintf("message %d is empty", i)
			}
			for _, c := range m.Calls {
				var args map[string]any
				if c.ID == "" || ids[c.ID] || c.Name == "" || len(c.Name) > 64 || json.Unmarshal([]byte(c.Args), &args) != nil {
					return fmt.Sprintf("message %d: call %+v", i, c)
				}
				ids[c.ID] = true
				waiting = append(waiting, c.ID)
			}
		case llm.ToolRole:
			if len(waiting) == 0 || waiting[0] != m.Call || m.Text == "" {
				return fmt.Sprintf("message %d: result %+v, want one of %q", i, m, waiting)
			}
			waiting = waiting[1:]
		default:
			return fmt.Sprintf("message %d has role %q", i, m.Role)
		}
	}
	if len(waiting) > 0 {
		return fmt.Sprintf("calls %q are not followed by results", waiting)
	}
	return ""
}

// TestHeal is P25 and D-047: whatever a history has suffered, a provider accepts it.
func TestHeal(t *testing.T) {
	user := func(s string) llm.Message { return llm.Message{Role: llm.User, Text: s} }
	asks := func(ids ...string) llm.Message {
		m := llm.Message{Role: llm.Assistant}
		for _, id := range ids {
			m.Calls = append(m.Calls, llm.ToolCall{ID: id, Name: "read_file", Args: "{}"})
		}
		return m
	}
	result := func(id, s string) llm.Message {
		return llm.Message{Role: llm.ToolRole, Call: id, Name: "read_file", Text: s}
	}
	for name, tc := range map[string]struct {
		in   []llm.Message
		want string // roles and texts
	}{
		"sound":            {[]llm.Message{user("a"), asks("1"), result("1", "x"), user("b")}, "user a|assistant |tool x|user b"},
		"orphan call":      {[]llm.Message{user("a"), asks("1", "2"), result("2", "x")}, "user a|assistant |tool " + msgLostResult + "|tool x"},
		"orphan result":    {[]llm.Message{user("a"), result("9", "x"), user("b")}, "user a|user b"},
		"two results":      {[]llm.Message{user("a"), asks("1"), result("1", "x"), result("1", "y")}, "user a|assistant |tool x"},
		"wrong order":      {[]llm.Message{user("a"), asks("1", "2"), result("2", "y"), user("b"), result("1", "x")}, "user a|assistant |tool x|tool y|user b"},
		"result before":    {[]llm.Message{user("a"), result("1", "x"), asks("1")}, "user a|assistant |tool " + msgLostResult},
		"empty":            {[]llm.Message{user(" "), {Role: llm.Assistant}}, "user (no text)|assistant (no answer)"},
		"empty result":     {[]llm.Message{user("a"), asks("1"), result("1", "")}, "user a|assistant |tool (read_file completed with no output)"},
		"the agent begins": {[]llm.Message{{Role: llm.Assistant, Text: "hi"}}, "user (earlier messages are left out)|assistant hi"},
		"duplicate ids":    {[]llm.Message{user("a"), asks("1"), result("1", "x"), asks("1"), result("1", "y")}, "user a|assistant |tool x|assistant |tool y"},
	} {
		t.Run(name, func(t *testing.T) {
			got := heal(tc.in)
			if why := acceptable(got); why != "" {
				t.Fatal(why)
			}
			var parts []string
			for _, m := range got {
				parts = append(parts, string(m.Role)+" "+m.Text)
			}
			if s := strings.Join(parts, "|"); s != tc.want {
				t.Errorf("got  %s\nwant %s", s, tc.want)
			}
		})
	}
}

func TestHealCutArguments(t *testing.T) {
	got := heal([]llm.Message{
		{Role: llm.User, Text: "a"},
		{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: "1", Name: "write file!", Args: `{"path": "x`}}},
	})
	if why := acceptable(got); why != "" {
		t.Fatal(why)
	}
	if c := got[1].Calls[0]; c.Name != "write_file_" || !strings.Contains(c.Args, "unreadable") {
		t.Errorf("call %+v", c)
	}
}

// FuzzHeal makes histories of any shape, seen with a bit of everything that goes wrong.
func FuzzHeal(f *testing.F) {
	f.Add("uaarrurar")
	f.Add("raXruAuR")
	f.Fuzz(func(t *testing.T, shape string) {
		shape = shape[:min(len(shape), 64)]
		var ms []llm.Message
		for i, c := range []byte(shape) {
			id := string("123"[i%3])
			switch c % 6 {
			case 0:
				ms = append(ms, llm.Message{Role: llm.User, Text: shape[i:]})
			case 1:
				ms = append(ms, llm.Message{Role: llm.Assistant, Text: shape[:i]})
			case 2:
				ms = append(ms, llm.Message{Role: llm.Assistant, Calls: []llm.ToolCall{{ID: id, Name: shape[i:], Args: shape}, {ID: shape[:i%2], Name: "x"}}})
			case 3:
				ms = append(ms, llm.Message{Role: llm.ToolRole, Call: id, Text: shape})
			case 4:
				ms = append(ms, llm.Message{Role: llm.ToolRole})
			case 5:
				ms = append(ms, llm.Message{Role: "system", Text: shape})
			}
		}
		once := heal(ms)
		if why := acceptable(once); why != "" {
			t.Fatalf("%s\n%+v", why, once)
		}
		if twice := heal(once); !reflect.DeepEqual(once, twice) {
			t.Fatalf("healed again it is different:\n%+v\n%+v", once, twice)
		}
	})
}
