package oversight

import (
	"context"
	"testing"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// The same call is asked about once, also after a restart; if it may do more by then than the person was told,
// their answer does not count for it (R-S16).
func TestAnswerCountsForWhatWasTold(t *testing.T) {
	asked := map[string]bool{}
	a := Approver{Ask: func(_ context.Context, r chat.Reply) (int, string, chat.Sender, error) {
		asked[r.Ask.ID+" "+r.ID] = true
		return choiceYes, "", chat.Sender{ID: "42"}, nil
	}}
	for i, c := range []struct {
		consequence string
		questions   int
	}{{"", 1}, {"", 1}, {"It reaches public hosts.", 2}, {"It reaches public hosts.", 2}, {"It reaches everything.", 3}} {
		call := tools.Call{ToolCall: llm.ToolCall{ID: "c1", Name: "exec"}, Consequence: c.consequence}
		call.Turn = "turn"
		call.From.Role = chat.Owner
		if yes, _, err := a.Approve(t.Context(), call, "May I?"); err != nil || !yes || len(asked) != c.questions {
			t.Errorf("%d: %v, %v; %d questions, want %d", i, yes, err, len(asked), c.questions)
		}
	}
}
