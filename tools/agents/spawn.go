package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"parley/tools"
)

type spawnArgs struct {
	Task  string `json:"task" jsonschema:"what the helper is to do: it knows nothing of this conversation, so say all it needs" limit:"min=1"`
	Label string `json:"label,omitempty" jsonschema:"a short name for people"`
	Wait  bool   `json:"wait,omitempty" jsonschema:"wait for the result instead of going on"`
}

const spawnDescription = "Have a helper work on a task in the background, while you go on talking. It can use files, commands and the web, " +
	"and cannot talk to the person. You are told when it is done, and then tell the person."

const (
	spawnMost   = 4 // at once for one session
	spawnRounds = 15
	labelRunes  = 30
)

// workers are the tools of a background worker, if its parent has them (D-092).
var workers = []string{"read_file", "write_file", "edit_file", "list_dir", "glob", "grep", "exec", "web_search", "web_fetch"}

func (s source) spawn() tools.Tool {
	t := tools.New("spawn", spawnDescription, func(ctx context.Context, c tools.Call, in spawnArgs) (tools.Result, error) {
		h := child(c, 0, cmp.Or(in.Label, shortly(in.Task)), in.Task, func(t tools.Tool) bool { return slices.Contains(workers, t.Name) })
		h.Instruction, h.Rounds, h.Most, h.Report = reminder, spawnRounds, spawnMost, !in.Wait
		if in.Wait {
			c.Say("waiting for " + h.Label)
			return told(s.run(ctx, h, nil))
		}
		if s.Runner == nil {
			return tools.Result{}, errNoRunner
		}
		h, err := s.Runner.Spawn(ctx, h)
		if err != nil {
			return told(h, "", err)
		}
		return tools.Result{Text: fmt.Sprintf("Subagent [%s] started (id: %s). I'll notify you when it completes.", h.Label, h.ID)}, nil
	})
	t.Aliases = map[string]string{"prompt": "task", "instruction": "task", "name": "label"}
	return t
}

// told is the result of a call that waited for h.
func told(h tools.Child, note string, err error) (tools.Result, error) {
	var busy *tools.BusyError
	if errors.As(err, &busy) {
		return tools.Failf(tools.CodeDenied, "Cannot spawn subagent: concurrency limit reached (%d/%d running). "+
			"Wait for a running subagent to complete before spawning a new one.", busy.Running, busy.Most), nil
	}
	if err != nil {
		return tools.Result{}, err
	}
	text, failure := outcome(h, note)
	r := tools.Result{Text: text}
	if failure != "" {
		r = tools.Failf(tools.CodeError, "Subagent [%s] failed: %s", h.Label, failure)
	}
	r.Tainted = h.Tainted
	return r, nil
}

// shortly returns the first characters of a task, its label (D-092).
func shortly(task string) string {
	if all := []rune(task); len(all) > labelRunes {
		return string(all[:labelRunes]) + "..."
	}
	return task
}
