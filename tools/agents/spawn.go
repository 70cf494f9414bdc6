package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"parley/chat"
	"parley/tools"
)

const (
	spawnRounds = 15
	maxSpawned  = 4  // subagents of spawn at work for one session
	labelRunes  = 30 // of the task, if it has no label
)

type spawnArgs struct {
	Task  string `json:"task" jsonschema:"with all it needs to know" limit:"min=1"`
	Label string `json:"label,omitempty"`
	Wait  bool   `json:"wait,omitempty" jsonschema:"for the result"`
}

const spawnDescription = "Have a subagent work on a task in the background. It has files and the web, and sees " +
	"nothing of this conversation. You are told when it is done, and then tell the person."

// spawnTools returns the tools of a subagent in the background (D-092).
func spawnTools() []string {
	return []string{
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
}

func (s source) newSpawn() tools.Tool {
	return tools.New("spawn", spawnDescription, s.runSpawn)
}

// runSpawn begins one subagent, and waits for it if it is to.
func (s source) runSpawn(ctx context.Context, c tools.Call, in spawnArgs) (r tools.Result, err error) {
	label := cmp.Or(in.Label, chat.Clip(in.Task, labelRunes, "..."))
	sub := newSubagent(c, 0, label, in.Task, spawnTools())
	sub.Rounds = spawnRounds
	sub.Most = maxSpawned
	sub.Report = !in.Wait
	sub, err = s.run(ctx, sub, func() {})
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
		r.Text = fmt.Sprintf("Subagent [%s] started (id: %s). I'll notify you when it completes.", sub.Label, sub.ID)
		return r, nil
	case sub.State != tools.SubagentAnswered:
		r = tools.Failf(tools.CodeError, "Subagent [%s] failed: %s", sub.Label, sub.Result)
	default:
		r.Text = sub.Result
	}
	r.Tainted = sub.Tainted
	r.Sources = sub.Sources
	return r, nil
}
