package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/cmd/gateway/control"
	"parley/cmd/gateway/mcpservers"
	"parley/config"
	"parley/llm"
	"parley/scheduler"
	"parley/tools"
	"parley/tools/agents"
	"parley/tools/catalog"
	"parley/tools/clienttools"
	"parley/tools/custom"
	"parley/tools/files"
	"parley/tools/mcp/prompts"
	"parley/tools/oversight"
	"parley/tools/policy"
	"parley/workspace"
)

// A toolbox makes the tools of a turn, and is what tools need of the gateway.
type toolbox struct{ app *gateway }

func toolboxOf(app *gateway) toolbox { return toolbox{app} }

// A kitMaker makes the tools of a turn.
type kitMaker func(context.Context, tools.Scope) (*tools.Kit, error)

// kits returns what makes the tools of a turn, as c says.
func (t toolbox) kits(c *config.Config) (kitMaker, error) {
	t.app.sandbox.Use(c.Tools.Exec.Sandbox)
	own := t.customTools(c)
	sources, err := toolSources(c, toolHost{
		files:    t.app.fileTools,
		say:      t.send(),
		ask:      t.ask,
		withdraw: t.app.hub.Questions().Withdraw,
		recall:   t.app.knowledge.recall,
		cron:     jobHostOf(t.app).order,
		log:      t.app.Log,
		stored:   t.app.maxStored,
		sandbox:  t.app.sandbox,
		shell:    t.app.shell,
		custom:   own,
		mcp:      t.app.mcp.Servers,
		agents: agents.Config{
			Runner:   t.app.pool.Subagents(),
			Texts:    &t.app.texts.Tools.Subtask,
			Profiles: t.profiles,
			Model:    t.app.hasModel,
		},
	})
	if err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	for _, name := range own.Missing() {
		id := own.Overrides[name].Tool
		t.app.Log.Warn("no custom tool for the place of a built-in one", "tool", name, "custom", id)
	}
	sources = append(sources, clienttools.Source{Channel: "api", Clients: t.app.api})
	sources = mcpservers.Rules(c.Tools.MCPServers, c.Tools.Rules).Permit(sources...)
	t.app.policy.Configure(policy.Offer{Sources: sources, Models: slices.Sorted(maps.Keys(c.Models))})
	t.app.cache.Configure(c.Tools.CacheTTL, fmt.Sprint(c.Tools.Web, c.Tools.Weather))
	approver := oversight.Approver{
		Ask:      t.ask,
		Withdraw: t.app.hub.Questions().Withdraw,
		Office:   t.app.hub.OwnerChat,
		Texts:    t.app.texts.Tools.Approval,
		Log:      t.app.Log,
		Grant:    t.app.pool.Sessions().Grant,
	}
	pipeline := tools.StandardConfig{
		Log:      t.app.Log,
		Texts:    &t.app.texts.Tools,
		Strays:   &t.app.strays,
		Stats:    t.app.stats,
		Approve:  approver.Approve,
		Patience: c.Tools.ApprovalTimeout,
		Cache:    t.app.cache,
	}
	audited := oversight.Audit(t.app.auditLog.Add)
	noted := oversight.NoteArguments(t.app.attachments.NoteUse)
	remembered := control.NoteMemory(t.app.knowledge.notes.Versions, t.app.Log)
	stages := func(s tools.Scope) []tools.Middleware {
		first := []tools.Middleware{t.app.observer.Tool(), audited, noted, oversight.CountWritten(s, t.app.takeBytes)}
		return append(append(first, tools.Standard(pipeline)...), remembered)
	}
	t.app.ownTools.Store(&ownTools{own, stages})
	t.app.mcp.Use(c.Tools.MCPServers, func(ctx context.Context, s tools.Scope, one tools.Source) (*tools.Kit, error) {
		return t.app.policy.Kit(ctx, s, []tools.Source{one}, stages(s)...)
	})
	lists := new(catalog.Catalog)
	return func(ctx context.Context, s tools.Scope) (*tools.Kit, error) {
		kit, err := t.app.policy.Kit(ctx, s, sources, stages(s)...)
		if err != nil {
			return nil, err
		}
		return prompts.Offer(lists.Shorten(t.app.mcp.Servers.Instruct(kit, s), s), &t.app.texts.Tools.MCP), nil
	}, nil
}

// tryCustom runs a custom tool for an owner who wants to see whether it works.
func (t toolbox) tryCustom(ctx context.Context, who chat.Sender, trial custom.Trial) (any, error) {
	at := chat.Address{Channel: "web", Chat: "custom-tools"}
	scope := tools.Scope{Session: at.Session(), At: at, From: who, Workspace: t.app.files, Turn: "test-" + rand.Text()}
	own := t.app.ownTools.Load()
	return own.source.Test(ctx, scope, trial, own.stages(scope)...)
}

// ownTools are the tools that owners wrote, with the stages that each of their calls goes through.
type ownTools struct {
	source *custom.Source
	stages func(tools.Scope) []tools.Middleware
}

// customTools offers the tools that owners wrote, as c says.
func (t toolbox) customTools(c *config.Config) *custom.Source {
	return &custom.Source{
		Library:     t.app.customTools,
		Runner:      t.app.sandbox,
		Hosts:       c.Tools.Custom.Network,
		HostNetwork: c.Tools.Custom.HostNetwork,
		MaxTimeout:  c.Tools.Custom.MaxTimeout,
		Overrides:   overridesOf(c),
		Off:         !c.Tools.Custom.Enable,
		Visit:       t.app.shell.Visit,
	}
}

// overridesOf returns what c changes of the built-in tools.
func overridesOf(c *config.Config) map[string]custom.Override {
	overrides := map[string]custom.Override{}
	for name, o := range c.Tools.Override {
		overrides[name] = custom.Override(*o)
	}
	return overrides
}

// missingTools tells owners of the built-in tools that nobody has because the custom tools in their
// places cannot be used.
func (t toolbox) missingTools() (all []string) {
	own := t.app.ownTools.Load().source
	for _, name := range own.Missing() {
		all = append(all, t.app.texts.Gateway.Report.ToolMissing.With(name, own.Overrides[name].Tool))
	}
	return all
}

// profiles are the agents that a task can be given to.
func (t toolbox) profiles() (all []agents.Profile) {
	for _, p := range t.app.knowledge.skills.Profiles() {
		if p.Fault == "" && p.Missing == "" {
			all = append(all, agents.Profile{
				Name:        p.Name,
				Description: p.Description,
				Instruction: p.Text,
				Model:       p.Model,
				Tools:       p.Tools,
				Rounds:      p.Rounds,
				Strict:      p.Strict,
			})
		}
	}
	return all
}

// groups answers the slash command /groups.
func (t toolbox) groups(ctx context.Context, m chat.Message) (string, error) {
	return t.app.policy.Command(ctx, m, t.app.texts.Tools.Groups)
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

// send sends what the message tool says. Of a channel that is not there the model
// is told: the Hub would only put the reply aside.
func (t toolbox) send() chat.Send {
	return func(ctx context.Context, r chat.Reply) error {
		known := t.channels()
		if !slices.Contains(known, r.To.Channel) {
			return fmt.Errorf("there is no channel %q; there are %s", r.To.Channel, strings.Join(known, ", "))
		}
		return t.app.hub.Send(ctx, r)
	}
}

// channels are those that messages can be sent to.
func (t toolbox) channels() []string {
	known := append([]string{"console", "api"}, t.app.Config.Networks()...)
	if t.app.browser != nil {
		known = append(known, "web")
	}
	return known
}

// ask is Hub.Ask as the tool calls it.
func (t toolbox) ask(ctx context.Context, r chat.Reply) (index int, text string, by chat.Sender, err error) {
	c, err := t.app.hub.Questions().Ask(ctx, r)
	return c.Index, c.Text, c.By, err
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

// workspaceOf returns the part of the workspace that the turns of who see.
func (t toolbox) workspaceOf(who chat.Person) *workspace.Workspace { return t.partOf(t.app.files, who) }

// partOf returns the part of w, which is the workspace or a copy, that the turns of who see.
func (t toolbox) partOf(w *workspace.Workspace, who chat.Person) *workspace.Workspace {
	var shared []files.Shared
	for _, s := range t.app.now.Load().Shared {
		shared = append(shared, files.Shared{Folder: s.Folder, Read: persons(s.Read), Write: persons(s.Write)})
	}
	return files.WorkspaceOf(w, who, shared)
}

func persons(names []string) (list []chat.Person) {
	for _, name := range names {
		list = append(list, chat.Person(name))
	}
	return list
}

// modelsOf are the names of the models that who may use there.
func (t toolbox) modelsOf(ctx context.Context, at chat.Address, who chat.Sender) ([]string, error) {
	off, err := t.app.policy.ModelsOff(ctx, tools.Scope{At: at, From: who})
	return slices.DeleteFunc(t.app.modelNames(), func(name string) bool { return slices.Contains(off, name) }), err
}
