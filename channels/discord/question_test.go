package discord

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

// C-051: a question about a long command may take several messages. Whatever the command says stays within
// backticks in each of them, so that it cannot pass for a part of the question.
func TestLongCommandInQuestion(t *testing.T) {
	for name, part := range map[string]string{"words": "a **b** ", "no spaces": "x", "lines": "echo\n", "wide": "\U0001f600 **b**"} {
		var asked string
		ask := func(_ context.Context, _ tools.Call, prompt string) (bool, string, error) {
			asked = prompt
			return false, "", nil
		}
		dangerous := tools.Tool{
			ToolSpec: llm.ToolSpec{Name: "exec", Schema: json.RawMessage(`{"type":"object"}`)},
			Hints:    tools.Hints{Dangerous: true},
			Run:      func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil },
		}
		run := tools.Approve(ask, 0, texts.English().Tools.Approval)(dangerous)
		c := tools.Call{
			Input: map[string]any{"command": strings.Repeat(part, 3000/utf8.RuneCountInString(part))},
			Scope: tools.Scope{From: chat.Sender{Role: chat.Owner}},
		}
		if _, err := run.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		messages := splitText(asked)
		for _, m := range messages {
			if n := utf8.RuneCountInString(m); n > maxText {
				t.Errorf("%s: a message of %d characters", name, n)
			}
			for line := range strings.SplitSeq(m, "\n") {
				if strings.Count(line, "`")%2 != 0 {
					t.Errorf("%s: backticks are torn apart in %q", name, line)
				}
			}
		}
		if len(messages) < 2 || !strings.Contains(asked, " more characters, at the end ") {
			t.Errorf("%s: %d messages: %q", name, len(messages), asked)
		}
	}
}
