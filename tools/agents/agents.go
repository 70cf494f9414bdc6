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

// A Runner has helpers work. After a restart a call is made again: then it
// finds the helpers that it began before.
type Runner interface {
	// Spawn begins c, or finds what was begun for the same c.Call. A
	// *[tools.BusyError] says that too many are at work.
	Spawn(ctx context.Context, c tools.Child) (tools.Child, error)
	// Await returns the helper id once it has ended, or ctx's error.
	Await(ctx context.Context, id string) (tools.Child, error)
}

// A Profile is what an agent with a name of its own is.
type Profile struct {
	Name, Description string
	Instruction       string
	Model             string   // name in config.json; "" is that of the turn
	Tools             []string // those it is to have, if its parent has them; nil: all of its parent's
	Rounds            int      // 0: as many as any turn
}

// Config is what the tools need to know.
type Config struct {
	Runner   Runner
	Profiles func() []Profile // the agents there are; nil: none
}

// category is that of all tools here; helpers have none of it, but for new_task.
const category = "agents"

// deepest is how many agents up to the person the last one is that new_task makes.
const deepest = 3

// New returns the source of the tools: whoever talks to a person has spawn and
// multi_agent, and new_task if there are agents to give one to.
func New(c Config) tools.Source { return source{c} }

type source struct{ Config }

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

// child returns the nth helper of c, with tools as pick says of its parent's.
func child(c tools.Call, n int, label, task string, pick func(tools.Tool) bool) tools.Child {
	key := fmt.Sprintf("%s/%d", c.Key(), n)
	return tools.Child{
		ID: fmt.Sprintf("%.4x", sha256.Sum256([]byte(key))), Call: key, Turn: c.Turn, Door: c.Name, Label: label, Task: task,
		Only: inherit(c, pick), Model: c.Model, Parent: c.Session, At: c.At, From: c.From, Group: c.Group, Depth: c.Depth + 1, Tainted: c.Tainted,
	}
}

// inherit returns the names of those tools of the call's turn that pick wants,
// less what only an agent may do that talks to people.
func inherit(c tools.Call, pick func(tools.Tool) bool) []string {
	names := []string{}
	if c.Tools == nil {
		return names
	}
	for _, t := range c.Tools() {
		ends := t.Name == "attempt_completion"
		if t.AliasOf == "" && (ends || !speaks(t) && pick(t)) {
			names = append(names, t.Name)
		}
	}
	return names
}

// speaks says whether t is for agents that talk to people.
func speaks(t tools.Tool) bool {
	return t.Category == "message" || t.Category == category && t.Name != "new_task" || t.Name == "cron"
}

// among picks the tools that are called one of names, by whatever name.
func among(c tools.Call, names []string) func(tools.Tool) bool {
	names = slices.Clone(names)
	if c.Tools != nil {
		for _, t := range c.Tools() {
			if t.AliasOf != "" && slices.Contains(names, t.Name) {
				names = append(names, t.AliasOf)
			}
		}
	}
	return func(t tools.Tool) bool { return slices.Contains(names, t.Name) }
}

// outcome returns what h answered, with a note, or why it did not.
func outcome(h tools.Child, note string) (text, failure string) {
	if h.State == tools.ChildAnswered {
		return cmp.Or(h.Result, noText) + note, ""
	}
	return "", cmp.Or(h.Result, string(h.State))
}

const (
	noText   = "Agent task completed but did not produce a final text response within the iteration limit."
	reminder = "You are a helper of another agent, which gave you one task and does not see what you do. Do the task, and then " +
		"give a final text answer that holds the whole result: nothing but that text is passed on."
	earlier = "\n\n(already done in this turn; this is the earlier result)" // E-039
)

var errNoRunner = errors.New("LLM client not available")

// run begins h, says so to begun, which may be nil, and waits for its end. The
// note is on what was done before.
func (s source) run(ctx context.Context, h tools.Child, begun func()) (ended tools.Child, note string, err error) {
	if s.Runner == nil {
		return h, "", errNoRunner
	}
	call := h.Call
	if h, err = s.Runner.Spawn(ctx, h); err != nil {
		return h, "", err
	}
	if h.Call != call {
		note = earlier
	}
	if begun != nil {
		begun()
	}
	ended, err = s.Runner.Await(ctx, h.ID)
	return ended, note, err
}
