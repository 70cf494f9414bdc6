package agents

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"parley/chat"
	"parley/tools"
)

const (
	maxTasks     = 5           // of one call
	maxParallel  = 3           // of its subagents at work
	taskRounds   = 3           // of each
	taskPatience = time.Minute // with each request
)

type multiArgs struct {
	Tasks []multiTask `json:"tasks" jsonschema:"what is to be done, at most 5 tasks" limit:"min=1"`
}

type multiTask struct {
	Name        string   `json:"name" jsonschema:"a short name of the task"`
	Instruction string   `json:"instruction" jsonschema:"what the subagent is to do, with all it needs to know"`
	Tools       []string `json:"tools,omitempty" jsonschema:"the tools it is to have; leave out for all of yours"`
}

// A multiAnswer is the result of multi_agent.
type multiAnswer struct {
	Success bool          `json:"success"`
	Results []multiResult `json:"results"`
	Total   int           `json:"total"`
}

type multiResult struct {
	Task     string `json:"task_name"`
	Success  bool   `json:"success"`
	Response string `json:"response,omitempty"`
	Error    string `json:"error,omitempty"`
}

const multiDescription = "Have several subagents work on tasks side by side, and wait for their results. " +
	"They see nothing of this conversation. Use it for tasks that do not need each other."

func (s source) newMultiAgent() tools.Tool {
	return tools.New("multi_agent", multiDescription, s.runTasks)
}

// runTasks runs all tasks and collects their results.
func (s source) runTasks(ctx context.Context, c tools.Call, in multiArgs) (r tools.Result, err error) {
	if len(in.Tasks) > maxTasks {
		return tools.Failf(tools.CodeInvalid, "Maximum %d concurrent agents allowed", maxTasks), nil
	}
	for _, task := range in.Tasks {
		if unknown := unknownTools(c, task.Tools); len(unknown) > 0 {
			available := newSubagent(c, 0, "", "", nil).Only
			return tools.Failf(
				tools.CodeInvalid,
				"Task '%s' names tools that there are not: %s. No agent was started. Available: %s",
				task.Name,
				strings.Join(unknown, ", "),
				strings.Join(available, ", "),
			), nil
		}
	}
	total := len(in.Tasks)
	answer := multiAnswer{Success: true, Results: make([]multiResult, total), Total: total}
	subagents := make([]tools.Subagent, total)
	var done atomic.Int64
	showProgress := func(n int64) { c.Say(s.cfg.Texts.Done.With(n, total)) }
	showProgress(0)
	var g tools.Group
	g.SetLimit(maxParallel)
	for i, task := range in.Tasks {
		g.Go(func() error {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			subagents[i], answer.Results[i] = s.runTask(ctx, c, i, task)
			showProgress(done.Add(1))
			return context.Cause(ctx)
		})
	}
	err = g.Wait()
	r.Data = answer
	for _, sub := range subagents {
		r.Tainted = r.Tainted || sub.Tainted
		r.Sources = chat.JoinSources(r.Sources, sub.Sources...)
	}
	return r, err
}

// unknownTools returns those of names that stand for no tool of c's.
func unknownTools(c tools.Call, names []string) []string {
	all := c.Tools()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return tools.Canonical(all, name) != "" })
}

// runTask runs the ith task. An error is its result, too.
func (s source) runTask(ctx context.Context, c tools.Call, i int, task multiTask) (tools.Subagent, multiResult) {
	if len(task.Tools) == 0 {
		task.Tools = nil
	}
	sub := newSubagent(c, i, task.Name, task.Instruction, task.Tools)
	sub.Rounds = taskRounds
	sub.Patience = taskPatience
	sub, err := s.run(ctx, sub, func() {})
	switch {
	case err != nil:
		return sub, multiResult{Task: task.Name, Error: err.Error()}
	case sub.State != tools.SubagentAnswered:
		return sub, multiResult{Task: task.Name, Error: sub.Result}
	}
	return sub, multiResult{Task: task.Name, Success: true, Response: sub.Result}
}
