package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"parley/tools"
)

type spawnArgs struct {
	Task  string `json:"task" jsonschema:"what the helper is to do, with all it needs to know: it sees nothing of this conversation" limit:"min=1"`
	Label string `json:"label,omitempty" jsonschema:"a short name for people"`
	Wait  bool   `json:"wait,omitempty" jsonschema:"wait for the result instead of going on"`
}

const spawnDescription = "Have a subagent work on a task in the background, while you go on talking. It can read, " +
	"write and search files and use the web, " +
	"and cannot talk to the person. You are told when it is done, and then tell the person."

// workers are the tools of a background worker (D-092).
var workers = []string{
	"read_file",
	"write_file",
	"edit_file",
	"list_dir",
	"glob",
	"grep",
	"exec",
	"web_search",
	"web_fetch",
}

func (s source) spawn() tools.Tool {
	return tools.New(
		"spawn",
		spawnDescription,
		func(ctx context.Context, c tools.Call, in spawnArgs) (r tools.Result, err error) {
			label := []rune(cmp.Or(in.Label, in.Task))
			if in.Label == "" && len(label) > 30 {
				label = append(label[:30], []rune("...")...)
			}
			h := child(c, 0, string(label), in.Task, workers)
			h.Rounds = 15
			h.Most = 4
			h.Report = !in.Wait
			h, err = s.run(ctx, h, func() {})
			var busy *tools.BusyError
			switch {
			case errors.As(err, &busy):
				return tools.Failf(
					tools.CodeDenied,
					"Cannot spawn subagent: concurrency limit reached (%d/%d running). "+
						"Wait for a running subagent to complete before spawning a new one.",
					busy.Running,
					busy.Most,
				), nil
			case err != nil:
				return r, err
			case !in.Wait:
				return tools.Result{
					Text: fmt.Sprintf("Subagent [%s] started (id: %s). I'll notify you when it completes.", h.Label,
						h.ID),
				}, nil
			case h.State != tools.SubagentAnswered:
				r = tools.Failf(tools.CodeError, "Subagent [%s] failed: %s", h.Label, h.Result)
			default:
				r.Text = h.Result
			}
			r.Tainted, r.Sources = h.Tainted, h.Sources
			return r, nil
		},
	)
}
