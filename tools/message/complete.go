package message

import (
	"context"
	"strings"

	"parley/tools"
)

// completion has the arguments of attempt_completion. The schema does not require
// Result, because the error for a missing one has a text of its own (C-030).
type completion struct {
	Result string `json:"result,omitempty" jsonschema:"required: the result for the person, in Markdown"`
}

const completeDescription = "Say that the task is done, with the result that the person is to read, without a " +
	"question or an offer at its end. Call it alone, once everything else is done: it ends your turn."

// NewComplete returns attempt_completion, for models that were trained to end
// their turn with a tool (C-030). It works whether listed or not.
func NewComplete(listed bool) tools.Tool {
	t := tools.New(
		tools.Completion,
		completeDescription,
		func(_ context.Context, _ tools.Call, in completion) (tools.Result, error) {
			if strings.TrimSpace(in.Result) == "" {
				return tools.Failf(tools.CodeInvalid, "missing required parameter: result"), nil
			}
			return tools.Result{Text: "Task completed.", End: in.Result}, nil
		},
	)
	t.Category = "message"
	t.Speaks = func(map[string]any) bool { return true }
	t.Hidden = !listed
	t.Last = true
	t.Repeatable = true
	return t
}

// Completion offers attempt_completion. Models that call tools by themselves end a
// turn by saying nothing more, so it is listed only for models with text mode; others
// may call it all the same (C-030).
func Completion(textMode func(model string) bool) tools.Source {
	return completionSource{
		listed:   []tools.Tool{NewComplete(true)},
		unlisted: []tools.Tool{NewComplete(false)},
		textMode: textMode,
	}
}

// A completionSource is the [tools.Source] of Completion.
type completionSource struct {
	listed   []tools.Tool
	unlisted []tools.Tool
	textMode func(model string) bool
}

// Tools implements [tools.Source].
func (c completionSource) Tools(_ context.Context, s tools.Scope) ([]tools.Tool, error) {
	if c.textMode(s.Model) {
		return c.listed, nil
	}
	return c.unlisted, nil
}
