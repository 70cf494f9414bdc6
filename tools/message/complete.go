package message

import (
	"context"
	"strings"

	"parley/tools"
)

// The result is not required by the schema: without one there is a text of
// its own (C-030).
type completion struct {
	Result string `json:"result,omitempty" jsonschema:"required: what came of the task, for the person; in Markdown, without a question or an offer at its end"`
}

const completeDescription = "Say that the task is done, with the result that the person is to read. " +
	"Call it alone, once all else has been done: it ends your turn."

// NewComplete returns attempt_completion, by which models that were taught to
// end their turn with a tool do so (C-030). It works whether listed or not.
func NewComplete(listed bool) tools.Tool {
	t := tools.New(
		"attempt_completion",
		completeDescription,
		func(_ context.Context, _ tools.Call, in completion) (tools.Result, error) {
			if strings.TrimSpace(in.Result) == "" {
				return tools.Failf(tools.CodeInvalid, "missing required parameter: result"), nil
			}
			return tools.Result{Text: "Task completed.", End: in.Result}, nil
		},
	)
	t.Category = "message"
	t.Hidden = !listed
	t.Last = true
	t.Repeatable = true
	return t
}
