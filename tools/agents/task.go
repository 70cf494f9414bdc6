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

// A taskAnswer is what new_task gives (C-031).
type taskAnswer struct {
	Success bool   `json:"success"`
	Summary string `json:"summary"`
	Subtask string `json:"subtaskId"`
	Error   string `json:"error,omitempty"`
	Note    string `json:"note,omitempty"` // what its profile names in vain
}

const taskDescription = "Give a task to a sub-agent and wait until it is done. What the person says meanwhile is " +
	"said to it.\n\n"

// task is new_task. Its description is to say which agents there are.
func (s source) task() tools.Tool {
	return tools.New(
		"new_task",
		taskDescription,
		func(ctx context.Context, c tools.Call, in taskArgs) (tools.Result, error) {
			profiles := s.Profiles()
			i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == in.Agent })
			if i < 0 { // C-032
				return tools.Failf(tools.CodeError, "Subtask failed: Sub agent '%s' not found in parent agent '%s'",
					in.Agent, cmp.Or(c.Agent, "main")), nil
			}
			c.Say(s.Texts.Creating.With(in.Name))
			h, note := s.subagent(c, profiles[i], in)
			h, err := s.run(ctx, h, func() { c.Say(s.Texts.Running.With(in.Name)) })
			if err != nil {
				return tools.Failf(tools.CodeError, "Subtask failed: %v", err), context.Cause(ctx)
			}
			answer, how := taskAnswer{
				Success: true,
				Summary: h.Result,
				Subtask: "sub_task_" + h.ID,
				Note:    note,
			}, s.Texts.Succeeded
			if h.State != tools.SubagentAnswered {
				answer, how = taskAnswer{Subtask: answer.Subtask, Error: h.Result, Note: note}, s.Texts.Failed
			}
			c.Say(how.With(in.Name))
			b, err := json.Marshal(answer)
			return tools.Result{
				Text:    string(b),
				Tainted: h.Tainted,
				Sources: h.Sources,
			}, err // no failure of the tool, whatever came of the task
		},
	)
}

// subagent is the one that c gives a task to. It may give one itself if its
// profile lets it, unless it is the last that there may be. The note tells what
// the profile names and the subagent does not have.
func (s source) subagent(c tools.Call, p Profile, in taskArgs) (h tools.Subagent, note string) {
	h = child(c, 0, in.Name, in.Input, p.Tools)
	if h.Depth < deepest && (p.Tools == nil || slices.Contains(p.Tools, c.Name)) {
		h.Only = append(h.Only, c.Name)
	}
	all := c.Tools()
	lacks := slices.DeleteFunc(slices.Clone(p.Tools), func(tool string) bool {
		return slices.Contains(h.Only, tools.Canonical(all, tool))
	})
	if p.Model != "" && !s.Model(p.Model) {
		lacks, p.Model = append(lacks, "the model "+p.Model), ""
	}
	if len(lacks) > 0 {
		note = fmt.Sprintf("agents/%s.md names what it does not have here: %s", p.Name, strings.Join(lacks, ", "))
	}
	h.Agent = p.Name
	h.Instruction = p.Instruction
	h.Model = cmp.Or(p.Model, c.Model)
	h.Rounds = p.Rounds
	h.Strict = p.Strict
	h.Hears = true
	return h, note
}

// section tells which agents there are (C-034).
func section(profiles []Profile) string {
	text := "# Available Sub-Agents\n"
	for _, p := range profiles {
		text += fmt.Sprintf("\n- %s: %s", p.Name, strings.Join(strings.Fields(p.Description), " "))
	}
	return text
}
