package agents

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/tools"
)

type multiArgs struct {
	Tasks []multiTask `json:"tasks" jsonschema:"what is to be done, at most 5: each by a helper that knows nothing of this conversation" limit:"min=1"`
}

type multiTask struct {
	Name        string   `json:"name" jsonschema:"a short name of the task"`
	Instruction string   `json:"instruction" jsonschema:"what the helper is to do, with all it needs to know"`
	Tools       []string `json:"tools,omitempty" jsonschema:"the tools it is to have; leave out for all of yours"`
}

type multiResult struct {
	Task     string `json:"task_name"`
	Success  bool   `json:"success"`
	Response string `json:"response,omitempty"`
	Error    string `json:"error,omitempty"`
}

const multiDescription = "Have several helpers work on tasks side by side, and wait for their results. " +
	"Use it for tasks that do not need each other."

const (
	multiMost     = 5 // tasks
	multiAtOnce   = 3
	multiRounds   = 3
	multiPatience = time.Minute
)

func (s source) multi() tools.Tool {
	t := tools.New("multi_agent", multiDescription, func(ctx context.Context, c tools.Call, in multiArgs) (tools.Result, error) {
		if len(in.Tasks) > multiMost {
			return tools.Failf(tools.CodeInvalid, "Maximum 5 concurrent agents allowed"), nil
		}
		results, tainted, err := s.sideBySide(ctx, c, in.Tasks)
		if err != nil {
			return tools.Result{}, err
		}
		return tools.Result{Tainted: tainted, Data: struct {
			Success bool          `json:"success"`
			Results []multiResult `json:"results"`
			Total   int           `json:"total"`
		}{true, results, len(results)}}, nil
	})
	t.Aliases = map[string]string{"agents": "tasks", "subtasks": "tasks"}
	return t
}

// sideBySide runs the tasks and returns what came of each, or why the
// call does not go on.
func (s source) sideBySide(ctx context.Context, c tools.Call, tasks []multiTask) ([]multiResult, bool, error) {
	results := make([]multiResult, len(tasks))
	var done atomic.Int64
	var tainted atomic.Bool
	var g errgroup.Group
	g.SetLimit(multiAtOnce)
	tell := func(n int64) { c.Say(fmt.Sprintf("%d of %d done", n, len(tasks))) }
	tell(0)
	for i, task := range tasks {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			named := among(c, task.Tools)
			h := child(c, i, task.Name, task.Instruction, func(t tools.Tool) bool {
				return t.Category != category && (len(task.Tools) == 0 || named(t))
			})
			h.Instruction, h.Rounds, h.Patience = reminder, multiRounds, multiPatience
			h, note, err := s.run(ctx, h, nil)
			results[i] = multiResult{Task: task.Name}
			if err == nil {
				results[i].Response, results[i].Error = outcome(h, note)
			} else {
				results[i].Error = err.Error()
			}
			results[i].Success = results[i].Error == ""
			if h.Tainted {
				tainted.Store(true)
			}
			tell(done.Add(1))
			return context.Cause(ctx)
		})
	}
	err := g.Wait()
	return results, tainted.Load(), err
}
