package main

import (
	"context"
	"errors"
	"io"
	"slices"

	"parley/backup"
	"parley/chat"
	"parley/cmd/gateway/control"
	"parley/host"
	"parley/response"
	"parley/scheduler"
	"parley/tools"
	"parley/web"
	"parley/web/dashboard"
	"parley/web/layout"
	"parley/web/mcppages"
	"parley/web/toolpages"
)

// An ownerAPI is what the owner's pages and the command line see and do.
type ownerAPI struct{ app *gateway }

// view returns what the owner's pages show and do.
func (o ownerAPI) view() web.Gateway {
	board, pages := o.pages()
	return web.Gateway{
		Conversations: web.Conversations{
			List:       o.app.pool.Sessions().Talks,
			Transcript: o.app.pool.Sessions().Transcript,
			Search:     o.app.pool.Sessions().Search,
			Forget:     o.app.forgetSession,
			Recording:  o.app.pool.Recording,
		},
		DeadLetters: web.DeadLetters{
			Replies: o.app.hub.DeadLetters(), Messages: o.app.pool.DeadLetters(), Redact: o.app.redact,
		},
		Toolbox:   web.Toolbox{Tools: o.tools, Stats: o.app.stats, Calls: o.calls},
		Dashboard: board,
		ToolAdmin: o.toolAdmin(),
		MCP:       mcppages.Admin{Manager: o.app.mcp.Manager, Zone: o.app.Config.Zone()},
		Scheduler: o.jobs(),
		Notes:     o.app.knowledge.notes,
		Pages:     pages,
		Model:     func() string { return o.app.now.Load().Agent.Model },
		Reasons:   o.reasons,
		Warnings:  o.warnings,
		Damaged:   o.app.verifier.Damaged,
		Instances: o.app.servers.Instances,
		Disk:      o.disk,
		Channels:  control.Watch{Hub: o.app.hub, Redact: o.app.redact}.Channels,
		Pairings:  o.app.hub.Access().Pairings, Approve: o.app.hub.Access().Approve,
		Usage: o.app.pool.Budget().Usage, Errors: o.app.Recent.Lines, Events: o.app.auditLog.Chain(), Backup: o.backup,
	}
}

// pages returns the dashboard, and the pages that are packages of their own.
func (o ownerAPI) pages() (*dashboard.Dashboard, []layout.Pages) {
	zone := o.app.Config.Zone()
	board, log := control.Pages(control.Config{
		Pool: o.app.pool, Scheduler: o.app.scheduler, Traffic: o.app.observer.Traffic(), Recent: o.app.Recent,
		Store: o.app.store, DataDir: o.app.Config.DataDir, Zone: zone,
		Models: func() (string, []string) { return o.app.now.Load().ModelNames() },
	})
	people := control.People{
		Hub: o.app.hub, Pool: o.app.pool, Notes: o.app.knowledge.notes, Steps: o.app.texts.Agent.Steps,
		Price: o.app.price, Zone: zone, Audit: o.app.auditLog.Add, Web: func() *web.Server { return o.app.web },
		Limit: func() (int, float64) { l := o.app.now.Load().Limits["person"]; return l.Tokens, l.Money },
	}
	return board, append(people.Pages(), log, jobHostOf(o.app).pages(), o.configPages())
}

// toolAdmin returns what the pages of policy, custom tools and approvals show and do.
func (o ownerAPI) toolAdmin() toolpages.Admin {
	pool := o.app.pool
	view := control.View{Events: o.app.auditLog.Chain(), Usage: pool.Budget().Usage, Talks: pool.Sessions().Talks}
	return toolpages.Admin{
		Policy:    o.app.policy,
		Custom:    o.app.customTools,
		CustomOff: func() bool { return !o.app.now.Load().Tools.Custom.Enable },
		Test:      toolboxOf(o.app).tryCustom,
		People:    view.People,
		RoleOf:    o.app.hub.Access().Role,
		Approvals: o.app.pool.Sessions().Approvals,
		Revoke:    o.app.pool.Sessions().Revoke,
		Audit:     o.app.auditLog.Add,
		Changes:   view.Changes,
		Zone:      o.app.Config.Zone(),
	}
}

// warnings are what an owner should look after, of the gateway and its config.
func (o ownerAPI) warnings() []string {
	all := slices.Concat(o.notices(), o.app.now.Load().Warnings(), toolboxOf(o.app).missingTools())
	if o.app.otherPort != "" {
		all = append(all, o.app.otherPort)
	}
	return all
}

// tools lists what an owner may use.
func (o ownerAPI) tools(ctx context.Context) ([]tools.Tool, error) {
	scope := tools.Scope{From: chat.Sender{Role: chat.Owner}, Model: o.app.now.Load().Agent.Model}
	own, err := (*o.app.kit.Load())(ctx, scope)
	if err != nil {
		return nil, err
	}
	return own.Tools(), nil
}

// reasons returns why the gateway does not work as it should.
func (o ownerAPI) reasons(ctx context.Context) (why []string) {
	states, err := o.app.hub.Status(ctx)
	if err != nil {
		return []string{"the store does not answer: " + o.app.redact(err.Error())}
	}
	if o.app.full.Load() || o.app.space.Check() != nil {
		why = append(why, "the disk is full: nothing is accepted until there is space")
	}
	for _, s := range states {
		if s.Err != nil {
			why = append(why, s.Channel+": "+o.app.redact(s.Err.Error()))
		}
	}
	return why
}

// copies makes copies of the store.
func (g *gateway) copies() backup.Keeper {
	return backup.Keeper{DataDir: g.Config.DataDir, Store: g.store, Room: g.space.CheckFor, Log: g.Log}
}

// backup sends an archive of everything that is kept (P20).
func (o ownerAPI) backup(ctx context.Context, send func(io.Reader)) error {
	contents := backup.Contents{
		Config: o.app.Config.File, Files: o.app.files, Tools: o.app.customTools.Files(), Version: host.Version(),
	}
	err := o.app.copies().Send(ctx, contents, send)
	if errors.Is(err, backup.ErrNoFile) {
		return response.BadRequest(backup.ErrNoFile.Error())
	}
	return err
}

// jobs is how the owner's page and the command line reach scheduled jobs.
func (o ownerAPI) jobs() web.Scheduler {
	return web.Scheduler{
		Jobs:      o.app.scheduler.Jobs,
		NextTimes: o.app.scheduler.NextTimes,
		Order:     o.orderJob,
		Fire:      o.app.scheduler.Fire,
		Remove:    o.app.scheduler.Remove,
	}
}

// orderJob changes the job of that ID, or makes one if it is "".
func (o ownerAPI) orderJob(ctx context.Context, id string, ask web.Order) (scheduler.Job, error) {
	if id != "" {
		return o.app.jobs.Edit(ctx, id, ask.To, ask.Change, ask.Enabled)
	}
	a, err := jobHostOf(o.app).ownerAt(ask.To)
	if err != nil {
		return scheduler.Job{}, err
	}
	return o.app.jobs.Add(ctx, a, "", ask.Change)
}

// calls returns what became of each call that was ever made in a session.
func (o ownerAPI) calls(ctx context.Context, id chat.SessionID) ([]tools.Record, error) {
	return o.app.pool.Sessions().Calls(ctx, id, o.app.pool.Tools(ctx, id))
}
