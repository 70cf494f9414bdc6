// Package agents is the tools by which the agent has subagents work for it.
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

// A Runner has subagents work. A call that is made again, as after a restart,
// finds the subagents that it began before.
type Runner interface {
	// Spawn begins c, or finds what was begun for the same c.Call. A
	// *[tools.BusyError] says that too many are at work.
	Spawn(ctx context.Context, c tools.Subagent) (tools.Subagent, error)
	// Await returns the subagent id once it has ended, or ctx's cause.
	Await(ctx context.Context, id string) (tools.Subagent, error)
}

// A Profile is an agent with a name of its own.
type Profile struct {
	Name, Description, Instruction string

	Model  string   // name in config.json; "" is that of its parent
	Tools  []string // those that it has of its parent's; nil: all
	Rounds int      // 0: as many as any turn
	Strict bool     // the first tool that fails ends it (D-041)
}

// Config is what the tools need to know.
type Config struct {
	Runner   Runner
	Profiles func() []Profile       // the agents there are; nil: none
	Texts    *texts.Subtask         // what people are told; nil: in English
	Model    func(name string) bool // whether there is one of that name; nil: there is
}

// New returns the source of the tools. Who talks to people has spawn and
// multi_agent; new_task is there if there are agents, for subagents too.
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
	s := source{Config: c}
	s.made = []tools.Tool{s.spawn(), s.multi(), s.task()}
	for i := range s.made {
		s.made[i].Category = category
		s.made[i].Repeatable = true
		s.made[i].Timeout = -1
		s.made[i].Guard = leaks
		s.made[i].Effect = func(tools.Call) string { return "give subagents words of memory or files" }
	}
	return s
}

// leaks is Guard of the tools: what a task holds, the subagent may search for and
// open (R-S12).
func leaks(c tools.Call) bool {
	if !c.Tainted {
		return false
	}
	if c.Known == nil {
		return true
	}
	return c.Known().TaskLeaks(strings.Join(tools.TextsOf(c.Input), "\n"), c.Descriptions())
}

type source struct {
	Config
	made []tools.Tool // spawn, multi_agent and new_task: to make them takes time
}

const (
	category = "agents"
	deepest  = 3 // agents up to the person: what new_task makes
)

// Tools implements [tools.Source].
func (s source) Tools(_ context.Context, scope tools.Scope) (all []tools.Tool, err error) {
	if scope.Depth == 0 {
		all = append(all, s.made[:2]...)
	}
	if scope.Depth < deepest {
		if profiles := s.Profiles(); len(profiles) > 0 {
			task := s.made[2]
			task.Description += section(profiles)
			all = append(all, task)
		}
	}
	return all, nil
}

// child returns the nth subagent of c. Of its parent's tools it has those called
// one of names, of which nil is all, less what is for agents that talk to people;
// and what ends a task.
func child(c tools.Call, n int, label, task string, names []string) tools.Subagent {
	key := fmt.Sprintf("%s/%d", c.Key(), n)
	h := tools.Subagent{
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
		if t.AliasOf == "" && (!speaks && (names == nil || wanted[t.Name]) || t.Name == "attempt_completion") {
			h.Only = append(h.Only, t.Name)
		}
	}
	return h
}

const (
	noText  = "Agent task completed but did not produce a final text response within the iteration limit."
	earlier = "\n\n(already done in this turn; this is the earlier result)"                                // E-039
)

// run begins h, calls begun, and waits for its end, unless h reports that
// itself. The Result is what h answered, or why it did not.
func (s source) run(ctx context.Context, h tools.Subagent, begun func()) (tools.Subagent, error) {
	if s.Runner == nil {
		return h, errors.New("LLM client not available")
	}
	known, err := s.Runner.Spawn(ctx, h)
	if err != nil || h.Report {
		return known, err
	}
	begun()
	ended, err := s.Runner.Await(ctx, known.ID)
	if ended.State != tools.SubagentAnswered {
		ended.Result = cmp.Or(ended.Result, "it was "+string(ended.State))
		return ended, err
	}
	ended.Result = cmp.Or(ended.Result, noText)
	if known.Call != h.Call {
		ended.Result += earlier
	}
	return ended, err
}
