package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"parley/tools"
)

type taskArgs struct {
	Agent string `json:"agentName" jsonschema:"the name of one of the available sub-agents" limit:"min=1"`
	Name  string `json:"taskName" jsonschema:"a short name of the task, for the person" limit:"min=1"`
	Input string `json:"input" jsonschema:"what it is to do, with all it needs to know" limit:"min=1"`
}

type taskResult struct {
	Success bool   `json:"success"`
	Summary string `json:"summary"`
	Subtask string `json:"subtaskId"`
	Error   string `json:"error,omitempty"`
}

const taskDescription = "Give a task to a sub-agent and wait until it is done. What the person says meanwhile is said to it.\n\n"

// task is new_task, for whoever may choose among profiles (C-031).
func (s source) task(profiles []Profile) tools.Tool {
	t := tools.New("new_task", taskDescription+Section(profiles), func(ctx context.Context, c tools.Call, in taskArgs) (tools.Result, error) {
		i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == in.Agent })
		if i < 0 { // C-032
			return taskFailed(fmt.Sprintf("Sub agent '%s' not found in parent agent '%s'", in.Agent, cmp.Or(c.Agent, "main"))), nil
		}
		c.Say(fmt.Sprintf(creating, in.Name))
		h, note, err := s.run(ctx, helper(c, profiles[i], in), func() { c.Say(fmt.Sprintf("子任务「%s」已创建，正在执行...", in.Name)) })
		if err != nil {
			return taskFailed(err.Error()), context.Cause(ctx)
		}
		r := taskResult{Success: h.State == tools.ChildAnswered, Subtask: "sub_task_" + h.ID}
		how := "成功"
		if r.Summary, r.Error = outcome(h, note); !r.Success {
			how = "失败"
		}
		c.Say(fmt.Sprintf("子任务「%s」执行%s", in.Name, how))
		b, err := json.Marshal(r)
		return tools.Result{Text: string(b), Tainted: h.Tainted}, err
	})
	t.Preview = func(in map[string]any) string {
		if in["taskName"] == nil {
			return ""
		}
		return fmt.Sprintf(creating, in["taskName"])
	}
	return t
}

const creating = "正在创建子任务「%s」..."

func taskFailed(why string) tools.Result {
	return tools.Failf(tools.CodeError, "子任务执行失败：%s", why)
}

// helper is the one that c gives a task to. What p does not name it has not;
// it may give tasks itself, unless it is the last that there may be.
func helper(c tools.Call, p Profile, in taskArgs) tools.Child {
	named := among(c, p.Tools)
	h := child(c, 0, in.Name, in.Input, func(t tools.Tool) bool {
		if t.Category == category {
			return t.Name == "new_task" && c.Depth+1 < deepest
		}
		return p.Tools == nil || named(t)
	})
	h.Agent, h.Model, h.Rounds, h.Hears = p.Name, cmp.Or(p.Model, c.Model), p.Rounds, true
	h.Instruction = strings.TrimSpace(p.Instruction + "\n\n" + reminder)
	return h
}

// Section tells the model which agents there are (C-034).
func Section(profiles []Profile) string {
	var b strings.Builder
	b.WriteString("# Available Sub-Agents\n")
	for _, p := range profiles {
		fmt.Fprintf(&b, "\n- %s: %s", p.Name, strings.Join(strings.Fields(p.Description), " "))
	}
	return b.String()
}
