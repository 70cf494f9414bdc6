// Package agents is the tools by which an agent gives tasks to subagents.
package agents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"parley/texts"
	"parley/tools"
)

// A Runner runs subagents. A call that is repeated, as after a restart, finds the
// subagents that it began before.
type Runner interface {
	// Spawn begins c, or finds the subagent that was begun for the same c.Call. A
	// *[tools.BusyError] says that as many are at work as may be.
	Spawn(ctx context.Context, c tools.Subagent) (tools.Subagent, error)
	// Await returns the subagent id once it has ended, or ctx's cause.
	Await(ctx context.Context, id string) (tools.Subagent, error)
}

// A Profile is an agent with a name, instructions and tools of its own.
type Profile struct {
	Name        string
	Description string
	Instruction string

	Model  string   // name in config.json; "": that of its parent
	Tools  []string // those that it has of its parent's; nil: all
	Rounds int      // 0: as many as any turn
	Strict bool     // the first tool that fails ends it (D-041)
}

// Config is what the tools need to know.
type Config struct {
	Runner   Runner
	Profiles func() []Profile       // the agents there are; nil: none
	Texts    *texts.Subtask         // what people read; nil: in English
	Model    func(name string) bool // whether there is a model of that name; nil: there is
}

const (
	category = "agents"
	maxDepth = 3 // agents from the person down to a subagent that new_task begins
)

// A source offers the tools that it has made, which takes time, once.
type source struct {
	cfg        Config
	spawn      tools.Tool
	multiAgent tools.Tool
	newTask    tools.Tool
}

// New returns the source of the tools. An agent that talks to a person has spawn
// and multi_agent; new_task is offered if there are profiles, to subagents too.
func New(c Config) tools.Source {
	if c.Profiles == nil {
		c.Profiles = func() []Profile { return nil }
	}
	if c.Texts == nil {
		c.Texts = &texts.English().Tools.Subtask
	}
	if c.Model == nil {
		c.Model = func(string) bool { return true }
	}
	s := source{cfg: c}
	s.spawn = finish(s.newSpawn())
	s.multiAgent = finish(s.newMultiAgent())
	s.newTask = finish(s.newNewTask())
	s.multiAgent.Use = tools.Rare
	s.newTask.Use = tools.Rare
	return s
}

// finish sets what the tools have in common.
func finish(t tools.Tool) tools.Tool {
	t.Category = category
	t.Repeatable = true
	t.Timeout = -1
	t.Guard = leaksTask
	t.Ask = asking
	t.Effect = func(tools.Call) string { return "give subagents words of memory or files" }
	return t
}

// asking says which tasks c would give to subagents.
func asking(say texts.Asks, c tools.Call) tools.Sentence {
	text := func(in map[string]any, name string) string {
		s, _ := in[name].(string)
		return s
	}
	tasks, several := c.Input["tasks"].([]any)
	if !several {
		return tools.Asking(say.Delegate,
			tools.Quoted(cmp.Or(text(c.Input, "label"), text(c.Input, "taskName"), text(c.Input, "task"))))
	}
	var names []string
	for _, t := range tasks {
		task, _ := t.(map[string]any)
		names = append(names, text(task, "name"))
	}
	return tools.AskingOf(say.DelegateMany, len(names), tools.Quoted(strings.Join(names, ", ")))
}

// leaksTask reports whether the task of an untrusted turn holds something private:
// the subagent may search for what is in its task, and open it (R-S12).
func leaksTask(c tools.Call) bool {
	if !c.Tainted {
		return false
	}
	if c.Known == nil {
		return true
	}
	return c.Known().TaskLeaks(strings.Join(tools.TextsOf(c.Input), "\n"), c.Descriptions())
}

// Tools implements [tools.Source].
func (s source) Tools(_ context.Context, scope tools.Scope) (all []tools.Tool, err error) {
	if scope.Depth == 0 {
		all = append(all, s.spawn, s.multiAgent)
	}
	profiles := s.cfg.Profiles()
	if scope.Depth < maxDepth && len(profiles) > 0 {
		newTask := s.newTask
		newTask.Description += listProfiles(profiles)
		all = append(all, newTask)
	}
	return all, nil
}

// newSubagent returns the nth subagent of the call c. Of its parent's tools it has
// those that names has, all if names is nil, except those that talk to people or
// begin subagents; and it has the tool that ends a task.
func newSubagent(c tools.Call, n int, label, task string, names []string) tools.Subagent {
	key := fmt.Sprintf("%s/%d", c.Key(), n)
	sub := tools.Subagent{
		ID:      fmt.Sprintf("%.4x", sha256.Sum256([]byte(key))),
		Call:    key,
		Turn:    c.Turn,
		Tool:    c.Name,
		Label:   label,
		Task:    task,
		Only:    []string{},
		Model:   c.Model,
		Parent:  c.Session,
		At:      c.At,
		From:    c.From,
		Group:   c.Group,
		Depth:   c.Depth + 1,
		Tainted: c.Tainted,
		Sources: c.Sources,
	}
	all := c.Tools()
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[tools.Canonical(all, name)] = true
	}
	for _, t := range all {
		speaks := t.Category == "message" || t.Category == category || t.Name == "cron"
		chosen := names == nil || wanted[t.Name] || t.Through != "" && wanted[t.Through]
		if t.AliasOf == "" && (!speaks && chosen || t.Name == tools.Completion) {
			sub.Only = append(sub.Only, t.Name)
		}
	}
	return sub
}

const (
	msgNoAnswer = "Agent task completed but did not produce a final text response within the iteration limit."
	msgEarlier  = "\n\n(already done in this turn; this is the earlier result)"                                // E-039
)

// run begins sub, calls begun, and waits until it has ended, unless it reports its
// end itself. The Result is its answer, or why there is none.
func (s source) run(ctx context.Context, sub tools.Subagent, begun func()) (tools.Subagent, error) {
	if s.cfg.Runner == nil {
		return sub, errors.New("LLM client not available")
	}
	known, err := s.cfg.Runner.Spawn(ctx, sub)
	if err != nil || sub.Report {
		return known, err
	}
	begun()
	ended, err := s.cfg.Runner.Await(ctx, known.ID)
	if ended.State != tools.SubagentAnswered {
		ended.Result = cmp.Or(ended.Result, "it was "+string(ended.State))
		return ended, err
	}
	ended.Result = cmp.Or(ended.Result, msgNoAnswer)
	if known.Call != sub.Call {
		ended.Result += msgEarlier
	}
	return ended, err
}
