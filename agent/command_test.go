package agent_test

import (
	"context"
	"strings"
	"testing"

	"parley/agent"
	"parley/agent/budget"
	"parley/llm"
	"parley/tools"
)

// D-111, R-S15: a command of a tool begins the turn with its call, and the model goes on from there. The turn counts
// as any. What cannot be called is answered without a model, also when it looks like a command that does not exist.
func TestCommandOfTool(t *testing.T) {
	ran := 0
	h := limited(budget.Limits{Person: budget.Limit{Turns: 1}})
	h.tools = []tools.Tool{tool("mcp_notes_prompt_plan", func(context.Context) (string, error) { ran++; return "go by train", nil })}
	h.model = script(words("By train, then."))
	setLimits := h.set
	h.set = func(s *agent.Settings) {
		setLimits(s)
		makeKit := s.Kit
		s.Kit = func(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
			kit, err := makeKit(ctx, scope)
			if err != nil {
				return nil, err
			}
			kit.Command = func(text string) ([]llm.ToolCall, string) {
				switch {
				case text == "/mcp_notes_prompt_plan":
					return []llm.ToolCall{call("command", "mcp_notes_prompt_plan")}, ""
				case strings.HasPrefix(text, "/mcp_"):
					return nil, "There is no such prompt."
				}
				return nil, ""
			}
			return kit, nil
		}
	}
	play(t, h, func(h *house) {
		h.say("1", "/mcp_notes_prompt_other")
		h.want("There is no such prompt.")
		h.say("2", "/mcp_notes_prompt_plan")
		h.want("By train, then.\n\n100 % of today's limit for you is used: 1 of 1 answers.")
		if got := spoken(h.asks[0], 3); ran != 1 || len(h.asks) != 1 || got != "user /mcp_notes_prompt_plan | assistant  | tool go by train" {
			t.Errorf("ran %d times; the model was asked %d times and shown %q", ran, len(h.asks), got)
		}
		h.say("3", "/mcp_notes_prompt_plan")
		h.want("Today's limit for you is reached: 1 of 1 answers." + raisable + "owner.")
		if ran != 1 {
			t.Error("the tool ran over the limit")
		}
	})
}
