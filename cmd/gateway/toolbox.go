package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/scheduler"
	"parley/texts"
	"parley/tools"
	"parley/tools/agents"
	"parley/tools/files"
)

// A toolbox makes the tools of a turn, and is what tools need of the gateway.
type toolbox struct{ app *gateway }

func toolboxOf(app *gateway) toolbox { return toolbox{app} }

// A kitMaker makes the tools of a turn.
type kitMaker func(context.Context, tools.Scope) (*tools.Kit, error)

// kits returns what makes the tools of a turn, as c says.
func (t toolbox) kits(c *config.Config) (kitMaker, error) {
	rules := tools.Rules{}
	for category, rule := range c.Tools.Rules {
		rules[category] = tools.Rule(rule)
	}
	sources, err := toolSources(c, toolHost{
		files: t.app.fileTools, say: t.send(c), ask: t.ask, withdraw: t.app.hub.Questions().Withdraw, recall: t.app.knowledge.recall, cron: jobHostOf(t.app).order, log: t.app.Log,
		agents: agents.Config{Runner: t.app.pool.Subagents(), Texts: &t.app.texts.Tools.Subtask, Profiles: t.profiles, Model: t.app.hasModel},
	})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	sources = rules.Permit(sources...)
	t.app.cache.Configure(c.Tools.CacheTTL, fmt.Sprint(c.Tools.Web, c.Tools.Weather))
	pipeline := tools.StandardConfig{
		Log: t.app.Log, Texts: &t.app.texts.Tools, Strays: &t.app.strays, Stats: t.app.stats,
		Approve: t.approve, Patience: c.Tools.ApprovalTimeout, Cache: t.app.cache,
	}
	return func(ctx context.Context, s tools.Scope) (*tools.Kit, error) {
		stages := append([]tools.Middleware{t.app.observer.Tool(), t.audited, t.countWritten(s)}, tools.Standard(pipeline)...)
		return tools.NewKit(ctx, s, sources, stages...)
	}, nil
}

// audited records every call of tool in the audit log.
func (t toolbox) audited(tool tools.Tool) tools.Tool {
	run := tool.Run
	tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		r, err := run(ctx, c)
		outcome := "done"
		if err != nil || r.Failed {
			outcome = "failed"
		}
		who := string(c.From.ID) + " at " + string(c.Session)
		t.app.auditLog.Add("tool", who, fmt.Sprintf("%s %s, call %s", c.Name, outcome, c.Key()))
		return r, err
	}
	return tool
}

// profiles are the agents that a task can be given to.
func (t toolbox) profiles() (all []agents.Profile) {
	for _, p := range t.app.knowledge.skills.Profiles() {
		if p.Fault == "" && p.Missing == "" {
			all = append(all, agents.Profile{Name: p.Name, Description: p.Description, Instruction: p.Text, Model: p.Model, Tools: p.Tools, Rounds: p.Rounds, Strict: p.Strict})
		}
	}
	return all
}

// undo puts back what the last turn of a session changed in files.
func (t toolbox) undo(_ context.Context, id chat.SessionID) (string, error) {
	say := t.app.texts.Gateway.Undo
	done, err := files.Undo(t.app.files, id, say)
	if len(done) == 0 {
		return say.Nothing, err
	}
	t.app.auditLog.Add("tool", string(id), "undone: "+strings.Join(done, ", "))
	return say.Done + "\n\n- " + strings.Join(done, "\n- "), err
}

// statistics tells how often the tools were used, and how that went.
func (t toolbox) statistics() string {
	say, all := t.app.texts.Gateway.Tools, t.app.stats.All()
	if len(all) == 0 {
		return say.None
	}
	var b strings.Builder
	b.WriteString(say.List + "\n")
	for _, s := range all {
		b.WriteString("\n- " + say.Tool.With(s.Tool, s.Runs, s.Failures, s.AverageDuration))
		for _, n := range []struct {
			times int
			what  texts.Format
		}{{s.CacheHits, say.Cached}, {s.Skipped, say.Skipped}, {s.Duplicates, say.Repeated}, {s.Rollbacks, say.RolledBack}} {
			if n.times > 0 {
				b.WriteString(n.what.With(n.times))
			}
		}
	}
	if names := t.app.stats.Unreliable(); len(names) > 0 {
		b.WriteString("\n\n" + say.Unreliable.With(strings.Join(names, ", ")))
	}
	return b.String()
}

// send sends what the message tool says. Of a channel that is not there the model
// is told: the Hub would only put the reply aside.
func (t toolbox) send(c *config.Config) chat.Send {
	known := append([]string{"console", "api"}, networks(c)...)
	if t.app.browser != nil {
		known = append(known, "web")
	}
	return func(ctx context.Context, r chat.Reply) error {
		if !slices.Contains(known, r.To.Channel) {
			return fmt.Errorf("there is no channel %q; there are %s", r.To.Channel, strings.Join(known, ", "))
		}
		return t.app.hub.Send(ctx, r)
	}
}

// ask is Hub.Ask as the tool calls it.
func (t toolbox) ask(ctx context.Context, r chat.Reply) (index int, text string, by chat.Sender, err error) {
	c, err := t.app.hub.Questions().Ask(ctx, r)
	return c.Index, c.Text, c.By, err
}

// approve asks an owner whether c may be made: in its chat if an owner asked for
// it there, else where an owner can be spoken to first.
func (t toolbox) approve(ctx context.Context, c tools.Call, prompt string) (yes bool, by string, err error) {
	say := t.app.texts.Tools.Approval
	q := &chat.Question{ID: fmt.Sprintf("%.8x", sha256.Sum256([]byte("approve "+c.Key()))), Choices: []string{say.Yes, say.No}, Whom: c.From.ID}
	r := chat.Reply{ID: "ask:approve/" + c.Key(), To: c.At, Group: c.Group, Text: prompt, Ask: q}
	if c.From.Role != chat.Owner {
		office, ok := t.app.hub.OwnerChat()
		if !ok {
			return false, "", errors.New("no owner can be asked")
		}
		q.Whom, r.To, r.Group = "", office, false
		r.Text = say.ForThem.With(c.At.Channel, c.From.ID, c.At.Session(), prompt)
		c.Say(say.WaitingForOwner)
	} else {
		c.Say(say.WaitingForYou)
		if c.Effect != "" {
			q.Choices = approvalChoices(say)
		}
	}
	choice, err := t.app.hub.Questions().Ask(ctx, r)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), tools.ErrClosing) {
		err = errors.Join(err, t.app.hub.Questions().Withdraw(context.WithoutCancel(ctx), q.ID))
	}
	by = r.To.Channel + ":" + choice.By.ID
	if err == nil && choice.Index > 1 {
		if err := t.app.pool.Sessions().Grant(ctx, c, by, choice.Index == 3); err != nil { // then it is for this time
			t.app.Log.Error("an approval counts only once, because it could not be kept", "err", err)
		}
	}
	return err == nil && choice.Index != 1, by, err
}

// approvalChoices are the answers to a question that untrusted content brought
// up: yes or no to this call, or yes to all like it for a while.
func approvalChoices(say texts.Approval) []string {
	return []string{say.Yes, say.No, say.Conversation, say.Hour}
}

// checkJob returns the name of the tool that j is to call, or why the
// person whose job it is could not make that call.
func (t toolbox) checkJob(ctx context.Context, j scheduler.Job) (string, error) {
	s := tools.Scope{Session: j.At.Session(), At: j.At, From: j.By, Group: j.Group, Origin: chat.FromSchedule}
	kit, err := (*t.app.kit.Load())(ctx, s)
	if err != nil {
		return j.Tool, err
	}
	c, err := kit.Check(tools.Call{ToolCall: llm.ToolCall{Name: j.Tool, Args: j.Args}, Scope: s})
	return c.Name, err
}

// has says which tools are in kit.
func has(kit *tools.Kit) func(name string) bool {
	return func(name string) bool { _, ok := kit.Tool(name); return ok }
}

// countWritten counts what a person has written into files: the arguments of
// calls that change some.
func (t toolbox) countWritten(s tools.Scope) tools.Middleware {
	who := chat.Whose(s.At, s.From, s.Group)
	return func(tool tools.Tool) tools.Tool {
		if tool.ReadOnly || tool.Category != "files" {
			return tool
		}
		run := tool.Run
		tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			err := t.app.takeBytes(ctx, who, int64(len(c.Args)))
			if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
				return tools.Result{Text: "Nothing was changed. " + refusal.Text, Failed: true}, nil
			} else if err != nil {
				return tools.Result{}, err
			}
			return run(ctx, c)
		}
		return tool
	}
}
