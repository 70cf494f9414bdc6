// Package agents is the tools by which the agent has helpers work for it.
package agents

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"parley/tools"
)

// A Runner has helpers work. A call that is made again, as after a restart,
// finds the helpers that it began before.
type Runner interface {
	// Spawn begins c, or finds what was begun for the same c.Call. A
	// *[tools.BusyError] says that too many are at work.
	Spawn(ctx context.Context, c tools.Child) (tools.Child, error)
	// Await returns the helper id once it has ended, or ctx's cause.
	Await(ctx context.Context, id string) (tools.Child, error)
}

// A Profile is an agent with a name of its own.
type Profile struct {
	Name, Description, Instruction string

	Model  string   // name in config.json; "" is that of its parent
	Tools  []string // those that it has of its parent's; nil: all
	Rounds int      // 0: as many as any turn
}

// Config is what the tools need to know.
type Config struct {
	Runner   Runner
	Profiles func() []Profile // the agents there are; nil: none
}

// New returns the source of the tools. Who talks to people has spawn and
// multi_agent; new_task is there if there are agents, for helpers too.
func New(c Config) tools.Source { return source{c} }

type source struct{ Config }

const (
	category = "agents"
	deepest  = 3 // agents up to the person: what new_task makes
)

// Tools implements [tools.Source].
func (s source) Tools(_ context.Context, scope tools.Scope) (all []tools.Tool, err error) {
	if scope.Depth == 0 {
		all = append(all, s.spawn(), s.multi())
	}
	if s.Profiles != nil && scope.Depth < deepest {
		if profiles := s.Profiles(); len(profiles) > 0 {
			all = append(all, s.task(profiles))
		}
	}
	for i := range all {
		all[i].Category, all[i].Repeatable, all[i].Timeout = category, true, -1
	}
	return all, nil
}

// child returns the nth helper of c. Of its parent's tools it has those that
// pick wants, less what is for agents that talk to people; and what ends a task.
func child(c tools.Call, n int, label, task string, pick func(tools.Tool) bool) tools.Child {
	key := fmt.Sprintf("%s/%d", c.Key(), n)
	h := tools.Child{
		ID: fmt.Sprintf("%.4x", sha256.Sum256([]byte(key))), Call: key, Turn: c.Turn, Door: c.Name, Label: label, Task: task,
		Instruction: reminder, Only: []string{}, Model: c.Model,
		Parent: c.Session, At: c.At, From: c.From, Group: c.Group, Depth: c.Depth + 1, Tainted: c.Tainted,
	}
	if c.Tools == nil {
		return h
	}
	for _, t := range c.Tools() {
		speaks := t.Category == "message" || t.Name == "cron" || t.Category == category && t.Name != "new_task"
		if t.AliasOf == "" && (!speaks && pick(t) || t.Name == "attempt_completion") {
			h.Only = append(h.Only, t.Name)
		}
	}
	return h
}

// named picks the tools called one of names, or all but those here if names is nil.
func named(names []string) func(tools.Tool) bool {
	return func(t tools.Tool) bool {
		return slices.Contains(names, t.Name) || names == nil && t.Category != category
	}
}

const (
	noText   = "Agent task completed but did not produce a final text response within the iteration limit."
	reminder = "You are a helper of another agent, which gave you one task and does not see what you do. Do the task, and then " +
		"give a final text answer that holds the whole result: nothing but that text is passed on."
	earlier = "\n\n(already done in this turn; this is the earlier result)" // E-039
)

// run begins h, says so to begun, which may be nil, and waits for its end. It
// returns what h answered, or why it did not.
func (s source) run(ctx context.Context, h tools.Child, begun func()) (ended tools.Child, text, failure string, err error) {
	if s.Runner == nil {
		return h, "", "", errors.New("LLM client not available")
	}
	known, err := s.Runner.Spawn(ctx, h)
	if err == nil && begun != nil {
		begun()
	}
	if err == nil {
		ended, err = s.Runner.Await(ctx, known.ID)
	}
	switch {
	case err != nil:
	case ended.State != tools.ChildAnswered:
		failure = cmp.Or(ended.Result, "it was "+string(ended.State))
	default:
		if text = cmp.Or(ended.Result, noText); known.Call != h.Call {
			text += earlier
		}
	}
	return ended, text, failure, err
}
