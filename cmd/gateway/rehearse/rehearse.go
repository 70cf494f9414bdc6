// Package rehearse rehearses the scheduled jobs of a gateway: it forecasts their week,
// and has each asked once of its model with everything that it does kept back.
package rehearse

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"parley/agent"
	"parley/agent/budget"
	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/workspace"
)

// A Rehearser is given what a rehearsal needs of a gateway. It changes nothing there, but that what it asks of models
// counts.
type Rehearser struct {
	Scheduler *scheduler.Scheduler
	Role      func(context.Context, chat.Address, chat.Sender) (chat.Role, error)
	Channels  func() []string // those that messages can be sent to
	Limits    func() budget.Limits
	Budget    *budget.Book // of the gateway: what models are asked counts there
	Zone      *time.Location

	Workspace *workspace.Workspace // of which a copy is made
	// Part returns the part of a workspace that turns of who see.
	Part     func(w *workspace.Workspace, who chat.Person) *workspace.Workspace
	Memory   agent.Memory
	Settings func() agent.Settings // the models and tools of the gateway
	BuiltIn  func() []tools.Tool   // Parley's own: no other is called, whatever it says of itself
	Sandbox  sandbox.Runner
	Confined func() bool // programs run in a sandbox
	Log      *slog.Logger
}

// Forecast returns what would happen in the coming days, by what runs took before.
func (r Rehearser) Forecast(ctx context.Context, days int) (rehearsal.Report, error) {
	limit := func(l budget.Limit) rehearsal.Limit { return rehearsal.Limit{Tokens: l.Tokens, Money: l.Money} }
	return rehearsal.Forecast(ctx, rehearsal.Config{
		Jobs:  r.Scheduler.Jobs,
		Due:   r.Scheduler.Due,
		Reach: r.unreachable,
		Zone:  r.Zone,
		Limits: func() rehearsal.Limits {
			all := r.Limits()
			return rehearsal.Limits{Job: limit(all.Job), Person: limit(all.Person), Everybody: limit(all.Everybody)}
		},
	}, days)
}

// unreachable returns why what j says would not be delivered, or "".
func (r Rehearser) unreachable(ctx context.Context, j scheduler.Job) string {
	if j.System {
		return ""
	}
	if !slices.Contains(r.Channels(), j.At.Channel) {
		return fmt.Sprintf("there is no channel %s any more", j.At.Channel)
	}
	role, err := r.Role(ctx, j.At, j.By)
	if err == nil && role == chat.Unknown {
		return "whoever made it may not talk to the agent any more: its runs are refused"
	}
	if n := len(j.Runs); n > 0 && j.Runs[n-1].Outcome == scheduler.Undelivered {
		return "its last answer was not delivered: " + j.Runs[n-1].Note
	}
	return ""
}

// notDone is what the model is told of a call that was kept back.
const notDone = "rehearsal: not done"

// A stage is where one rehearsal takes place: a copy of the workspace, and what the
// jobs did there.
type stage struct {
	Rehearser
	files    *workspace.Workspace // the copy
	programs []tools.Tool         // that run commands in the copy
	kept     *keeper
}

// kit returns the tools of a turn: those of the gateway, of which each that acts
// outside of the copy is kept back.
func (s stage) kit(ctx context.Context, scope tools.Scope) (*tools.Kit, error) {
	real, err := s.Settings().Kit(ctx, scope)
	if err != nil {
		return nil, err
	}
	all := real.Tools()
	for i := range all {
		all[i] = s.safe(all[i])
	}
	stages := tools.Standard(tools.StandardConfig{Log: s.Log})
	kit, err := tools.NewKit(ctx, scope, []tools.Source{tools.Fixed(all)}, stages...)
	if err != nil {
		return nil, err
	}
	kit.Notice = real.Notice
	return kit, nil
}

// safe returns t without effects outside of the copy.
func (s stage) safe(t tools.Tool) tools.Tool {
	if t.Inner != nil {
		return t // it stands for another tool, which is asked for in its place
	}
	asks := func(c tools.Call) bool {
		return t.Dangerous || t.Risky != nil && t.Risky(c) ||
			t.Guard != nil && (c.Tainted || c.From.Role != chat.Owner) && t.Guard(c)
	}
	run := t.Run
	allowed := s.mayRun(t)
	if i := slices.IndexFunc(s.programs, func(p tools.Tool) bool { return p.Name == t.Name }); i >= 0 {
		run = s.programs[i].Run
	}
	quiet := t
	quiet.Dangerous = false
	quiet.Risky = nil
	quiet.Guard = nil
	quiet.Cacheable = false
	quiet.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		switch {
		case t.Name == "message" || t.AliasOf == "message":
			s.kept.send(c)
			return tools.Result{Text: notDone + "; it would have been sent"}, nil
		case allowed && !asks(c):
			return run(ctx, c)
		case allowed:
			s.kept.note("asks first: " + describe(c))
			return tools.Result{Text: notDone + "; a person would be asked first"}, nil
		}
		s.kept.note(describe(c))
		return tools.Result{Text: notDone}, nil
	}
	return quiet
}

// mayRun reports whether calls of t can be made: they only read, or change the copy. What a server of MCP or a custom
// tool says of itself does not count.
func (s stage) mayRun(t tools.Tool) bool {
	if slices.ContainsFunc(s.programs, func(p tools.Tool) bool { return p.Name == t.Name }) {
		return s.Confined()
	}
	isOurs := func(own tools.Tool) bool { return own.Name == t.Name && bytes.Equal(own.Schema, t.Schema) }
	if !slices.ContainsFunc(s.BuiltIn(), isOurs) {
		return false
	}
	switch t.Category {
	case "files":
		return true
	case "exec", "code":
		return false // those that may are in programs
	case "message":
		return t.Name == "attempt_completion"
	case "custom", "cron", "agents", "client":
		return false
	}
	return t.ReadOnly
}

// describe returns a call in one line.
func describe(c tools.Call) string {
	return chat.Clip(chat.OneLine(c.Name+" "+c.Args), 300, "…")
}
