package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agent"
	"parley/chat"
	"parley/config"
	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/agents"
	"parley/tools/files"
)

const (
	modelTime = 10 * time.Minute // the most one answer may take (P11)
	maxTokens = 4096             // left free for an answer where the config names no limit
)

// settings returns what the agent works with, as c says.
func (h *house) settings(ctx context.Context, c *config.Config) (agent.Settings, error) {
	kit, err := h.kits(c)
	if err != nil {
		return agent.Settings{}, err
	}
	all, err := kit(ctx, tools.Scope{From: chat.Sender{Role: chat.Owner}})
	if err != nil {
		return agent.Settings{}, fmt.Errorf("tools: %w", err)
	}
	h.offered.Store(all)
	h.spacious(ctx, c, all)
	h.kit.Store(&kit)
	return agent.Settings{
		Models: h.models(c), Model: c.Agent.Model, Rounds: c.Agent.MaxRounds, MaxAge: c.Agent.MessageTTL, Kit: kit,
		Rollback: c.Tools.Rollback, RolledBack: h.stats.RolledBack, Price: h.price, Limits: limitsOf(c), Sum: c.DreamModel(),
	}, nil
}

// spacious warns if instructions and tools leave the model little room for talk.
func (h *house) spacious(ctx context.Context, c *config.Config, all *tools.Kit) {
	system, _ := h.prompt().System(ctx, "", chat.TheOwner) // of files that cannot be read it says so
	n := len(system)
	for _, t := range all.Specs() {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if m := c.Models[c.Agent.Model]; n/4 > m.ContextWindow/2 {
		h.Log.Warn("instructions and tools leave little room for talk: raise contextWindow if the model has more, or switch tools off",
			"model", c.Agent.Model, "contextWindow", m.ContextWindow, "taken", n/4)
	}
}

// A kitMaker makes the tools of a turn.
type kitMaker func(context.Context, tools.Scope) (*tools.Kit, error)

// kits returns what makes the tools of a turn, as c says.
func (h *house) kits(c *config.Config) (kitMaker, error) {
	rules := tools.Rules{}
	for category, rule := range c.Tools.Rules {
		rules[category] = tools.Rule(rule)
	}
	sources, err := toolSources(c, toolHost{
		files: h.filing, say: h.say(c), ask: h.askPerson, withdraw: h.hub.Withdraw, recall: h.recall, cron: h.orderJob, log: h.Log,
		agents: agents.Config{Runner: h.pool, Texts: &h.texts.Tools.Subtask, Profiles: h.profiles, Model: h.hasModel},
	})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	sources = rules.Permit(sources...)
	h.cache.Configure(c.Tools.CacheTTL, fmt.Sprint(c.Tools.Web, c.Tools.Weather))
	pipeline := tools.StandardConfig{
		Log: h.Log, Texts: &h.texts.Tools, Strays: &h.strays, Stats: h.stats,
		Approve: h.approve, Patience: c.Tools.ApprovalTimeout, Cache: h.cache,
	}
	return func(ctx context.Context, s tools.Scope) (*tools.Kit, error) {
		stages := append([]tools.Middleware{h.observer.Tool(), h.auditTool, h.countWritten(s)}, tools.Standard(pipeline)...)
		return tools.NewKit(ctx, s, sources, stages...)
	}, nil
}

// auditTool notes every call of t in the audit log.
func (h *house) auditTool(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		r, err := run(ctx, c)
		outcome := "done"
		if err != nil || r.Failed {
			outcome = "failed"
		}
		who := string(c.From.ID) + " at " + string(c.Session)
		h.auditLog.Add("tool", who, fmt.Sprintf("%s %s, call %s", c.Name, outcome, c.Key()))
		return r, err
	}
	return t
}

// profiles are the agents that a task can be given to.
func (h *house) profiles() (all []agents.Profile) {
	for _, p := range h.mind.skills.Profiles() {
		if p.Fault == "" && p.Missing == "" {
			all = append(all, agents.Profile{Name: p.Name, Description: p.Description, Instruction: p.Text, Model: p.Model, Tools: p.Tools, Rounds: p.Rounds, Strict: p.Strict})
		}
	}
	return all
}

// undo puts back what the last turn of a session changed in files.
func (h *house) undo(_ context.Context, id chat.SessionID) (string, error) {
	say := h.texts.Gateway.Undo
	done, err := files.Undo(h.files, id, say)
	if len(done) == 0 {
		return say.Nothing, err
	}
	h.auditLog.Add("tool", string(id), "undone: "+strings.Join(done, ", "))
	return say.Done + "\n\n- " + strings.Join(done, "\n- "), err
}

// toolStats tells how often the tools were used, and how that went.
func (h *house) toolStats() string {
	say, all := h.texts.Gateway.Tools, h.stats.All()
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
	if names := h.stats.Unreliable(); len(names) > 0 {
		b.WriteString("\n\n" + say.Unreliable.With(strings.Join(names, ", ")))
	}
	return b.String()
}

// say sends what the message tool says. Of a channel that is not there the model
// is told: the Hub would only put the reply aside.
func (h *house) say(c *config.Config) chat.Send {
	known := append([]string{"console", "api"}, networks(c)...)
	if h.browser != nil {
		known = append(known, "web")
	}
	return func(ctx context.Context, r chat.Reply) error {
		if !slices.Contains(known, r.To.Channel) {
			return fmt.Errorf("there is no channel %q; there are %s", r.To.Channel, strings.Join(known, ", "))
		}
		return h.hub.Send(ctx, r)
	}
}

// askPerson is Hub.Ask as the tool calls it.
func (h *house) askPerson(ctx context.Context, r chat.Reply) (index int, text string, by chat.Sender, err error) {
	c, err := h.hub.Ask(ctx, r)
	return c.Index, c.Text, c.By, err
}

// approve asks an owner whether c may be made: in its chat if an owner asked for
// it there, else where an owner can be spoken to first.
func (h *house) approve(ctx context.Context, c tools.Call, prompt string) (yes bool, by string, err error) {
	say := h.texts.Tools.Approval
	q := &chat.Question{ID: fmt.Sprintf("%.8x", sha256.Sum256([]byte("approve "+c.Key()))), Choices: []string{say.Yes, say.No}, Whom: c.From.ID}
	r := chat.Reply{ID: "ask:approve/" + c.Key(), To: c.At, Group: c.Group, Text: prompt, Ask: q}
	if c.From.Role != chat.Owner {
		office, ok := h.hub.Office()
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
	choice, err := h.hub.Ask(ctx, r)
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), tools.ErrClosing) {
		err = errors.Join(err, h.hub.Withdraw(context.WithoutCancel(ctx), q.ID))
	}
	by = r.To.Channel + ":" + choice.By.ID
	if err == nil && choice.Index > 1 {
		if err := h.pool.Grant(ctx, c, by, choice.Index == 3); err != nil { // then it is for this time
			h.Log.Error("an approval counts only once, because it could not be kept", "err", err)
		}
	}
	return err == nil && choice.Index != 1, by, err
}

// approvalChoices are the answers to a question that untrusted content brought
// up: yes or no to this call, or yes to all like it for a while.
func approvalChoices(say texts.Approval) []string {
	return []string{say.Yes, say.No, say.Conversation, say.Hour}
}

// models returns the models a conversation may choose from. Each is tried
// several times, and then those of agent.fallback (P11).
func (h *house) models(c *config.Config) map[string]agent.Model {
	patient := map[string]llm.Model{}
	for name, m := range c.Models {
		patient[name] = h.observer.Model(name, llm.Retry(h.observer.Try(name, newModel(name, m))))
	}
	all := map[string]agent.Model{}
	for name, m := range c.Models {
		chain := []llm.Model{patient[name]}
		for _, next := range c.Agent.Fallback {
			if next != name {
				chain = append(chain, patient[next])
			}
		}
		answer := m.MaxTokens
		if answer == 0 {
			answer = min(maxTokens, m.ContextWindow/4)
		}
		all[name] = agent.Model{Model: llm.Limit(modelTime)(llm.Fallback(chain...)), Window: m.ContextWindow, MaxTokens: answer, Vision: driverOf(m).Sees()}
	}
	return all
}

// limitsOf are those of a day, as the agent knows them.
func limitsOf(c *config.Config) agent.Limits {
	of := func(whose string) agent.Limit {
		l := c.Limits[whose]
		return agent.Limit{Turns: l.Turns, Rounds: l.Rounds, Tokens: l.Tokens, Money: l.Money, Children: l.Children, Bytes: l.Bytes}
	}
	return agent.Limits{Person: of("person"), Session: of("session"), Job: of("job"), Everybody: of("everybody")}
}
