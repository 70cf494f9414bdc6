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

// A taskAnswer is the result of new_task (C-031).
type taskAnswer struct {
	Success bool   `json:"success"`
	Summary string `json:"summary"`
	Subtask string `json:"subtaskId"`
	Error   string `json:"error,omitempty"`
	Note    string `json:"note,omitempty"` // what the profile names and is not available
}

const taskDescription = "Give a task to a sub-agent and wait until it is done. What the person says meanwhile is " +
	"said to it.\n\n"

// newNewTask returns new_task, whose description the list of profiles completes.
func (s source) newNewTask() tools.Tool {
	return tools.New("new_task", taskDescription, s.runNewTask)
}

// runNewTask runs a subagent with the profile that in names, and tells the person
// how it goes. Whatever becomes of the task, the tool does not fail.
func (s source) runNewTask(ctx context.Context, c tools.Call, in taskArgs) (tools.Result, error) {
	profiles := s.cfg.Profiles()
	i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == in.Agent })
	if i < 0 { // C-032
		return tools.Failf(
			tools.CodeError,
			"Subtask failed: Sub agent '%s' not found in parent agent '%s'",
			in.Agent,
			cmp.Or(c.Agent, "main"),
		), nil
	}
	say := s.cfg.Texts
	c.Say(say.Creating.With(in.Name))
	sub, note := s.withProfile(c, profiles[i], in)
	sub, err := s.run(ctx, sub, func() { c.Say(say.Running.With(in.Name)) })
	if err != nil {
		return tools.Failf(tools.CodeError, "Subtask failed: %v", err), context.Cause(ctx)
	}
	answer := taskAnswer{Subtask: "sub_task_" + sub.ID, Note: note}
	if sub.State == tools.SubagentAnswered {
		answer.Success = true
		answer.Summary = sub.Result
		c.Say(say.Succeeded.With(in.Name))
	} else {
		answer.Error = sub.Result
		c.Say(say.Failed.With(in.Name))
	}
	text, err := json.Marshal(answer)
	return tools.Result{Text: string(text), Tainted: sub.Tainted, Sources: sub.Sources}, err
}

// withProfile returns the subagent that c gives a task to. It may use new_task
// itself if its profile lets it and it is not too deep. The note tells what the
// profile names that is not available.
func (s source) withProfile(c tools.Call, p Profile, in taskArgs) (sub tools.Subagent, note string) {
	sub = newSubagent(c, 0, in.Name, in.Input, p.Tools)
	if sub.Depth < maxDepth && (p.Tools == nil || slices.Contains(p.Tools, c.Name)) {
		sub.Only = append(sub.Only, c.Name)
	}
	all := c.Tools()
	missing := slices.DeleteFunc(slices.Clone(p.Tools), func(tool string) bool {
		return slices.Contains(sub.Only, tools.Canonical(all, tool))
	})
	if p.Model != "" && !s.cfg.Model(p.Model) {
		missing = append(missing, "the model "+p.Model)
		p.Model = ""
	}
	if len(missing) > 0 {
		note = fmt.Sprintf("agents/%s.md names what it does not have here: %s", p.Name, strings.Join(missing, ", "))
	}
	sub.Agent = p.Name
	sub.Instruction = p.Instruction
	sub.Model = cmp.Or(p.Model, c.Model)
	sub.Rounds = p.Rounds
	sub.Strict = p.Strict
	sub.Hears = true
	return sub, note
}

// listProfiles tells the model which agents there are (C-034).
func listProfiles(profiles []Profile) string {
	text := "# Available Sub-Agents\n"
	for _, p := range profiles {
		text += fmt.Sprintf("\n- %s: %s", p.Name, strings.Join(strings.Fields(p.Description), " "))
	}
	return text
}
