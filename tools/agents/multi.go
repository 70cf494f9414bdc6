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

type multiArgs struct {
	Tasks []multiTask `json:"tasks" jsonschema:"what is to be done, at most 5: each by a helper that sees nothing of this conversation" limit:"min=1"`
}

type multiTask struct {
	Name        string   `json:"name" jsonschema:"a short name of the task"`
	Instruction string   `json:"instruction" jsonschema:"what the helper is to do, with all it needs to know"`
	Tools       []string `json:"tools,omitempty" jsonschema:"the tools it is to have; leave out for all of yours"`
}

// A multiAnswer is what multi_agent gives.
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

const multiDescription = "Have several helpers work on tasks side by side, and wait for their results. " +
	"Use it for tasks that do not need each other."

func (s source) multi() tools.Tool {
	return tools.New(
		"multi_agent",
		multiDescription,
		func(ctx context.Context, c tools.Call, in multiArgs) (tools.Result, error) {
			if len(in.Tasks) > 5 {
				return tools.Failf(tools.CodeInvalid, "Maximum 5 concurrent agents allowed"), nil
			}
			for _, task := range in.Tasks {
				if unknown := unknownTools(c, task.Tools); len(unknown) > 0 {
					return tools.Failf(tools.CodeInvalid,
						"Task '%s' names tools that there are not: %s. No agent was started. Available: %s", task.Name,
						strings.Join(unknown, ", "), strings.Join(child(c, 0, "", "", nil).Only, ", ")), nil
				}
			}
			all := multiAnswer{Success: true, Results: make([]multiResult, len(in.Tasks)), Total: len(in.Tasks)}
			var done atomic.Int64
			helpers := make([]tools.Subagent, len(in.Tasks))
			var g tools.Group
			g.SetLimit(3)
			tell := func(n int64) { c.Say(s.Texts.Done.With(n, all.Total)) }
			tell(0)
			for i, task := range in.Tasks {
				g.Go(func() error {
					if ctx.Err() == nil {
						helpers[i], all.Results[i] = s.one(ctx, c, i, task)
						tell(done.Add(1))
					}
					return context.Cause(ctx)
				})
			}
			err := g.Wait()
			r := tools.Result{Data: all}
			for _, h := range helpers {
				r.Tainted, r.Sources = r.Tainted || h.Tainted, chat.JoinSources(r.Sources, h.Sources...)
			}
			return r, err
		},
	)
}

// unknownTools returns those of names that mean no tool of c's.
func unknownTools(c tools.Call, names []string) []string {
	all := c.Tools()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return tools.Canonical(all, name) != "" })
}

// one does the ith task. Whatever becomes of it is its result.
func (s source) one(ctx context.Context, c tools.Call, i int, task multiTask) (tools.Subagent, multiResult) {
	if len(task.Tools) == 0 {
		task.Tools = nil
	}
	h := child(c, i, task.Name, task.Instruction, task.Tools)
	h.Rounds, h.Patience = 3, time.Minute
	h, err := s.run(ctx, h, func() {})
	switch {
	case err != nil:
		return h, multiResult{Task: task.Name, Error: err.Error()}
	case h.State != tools.SubagentAnswered:
		return h, multiResult{Task: task.Name, Error: h.Result}
	}
	return h, multiResult{Task: task.Name, Success: true, Response: h.Result}
}
