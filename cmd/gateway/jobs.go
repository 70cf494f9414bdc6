package main

import (
	"context"
	"errors"
	"fmt"

	"parley/agent"
	"parley/agent/budget"
	"parley/channels/network"
	"parley/chat"
	"parley/cmd/gateway/rehearse"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/store"
	"parley/web/schedule"
)

// A jobHost is what the scheduler and orders about jobs need of the gateway.
type jobHost struct{ app *gateway }

func jobHostOf(app *gateway) jobHost { return jobHost{app} }

// openScheduler makes the scheduler, with the jobs of Parley itself.
func (j jobHost) openScheduler() {
	c := j.app.Config
	var own []scheduler.System
	if c.Dream.Cron != "" {
		at := scheduler.Schedule{Cron: c.Dream.Cron}
		own = append(own, scheduler.System{ID: jobs.DreamID, Schedule: at, Do: j.app.knowledge.dream})
	}
	if c.Heartbeat.Every > 0 {
		beat := j.heartbeat()
		own = append(own, scheduler.System{
			ID:       jobs.HeartbeatID,
			Schedule: scheduler.Schedule{Every: c.Heartbeat.Every},
			Do: func(ctx context.Context, job scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
				upkeepOf(j.app).ForgetJobs(ctx)
				return beat.Run(ctx, job, r)
			},
		})
	}
	j.app.scheduler = scheduler.New(scheduler.Config{
		Store: j.app.store, Deliver: j.app.pool.Deliver, Role: j.roleNow, Tell: j.tellChat,
		Zone: c.Zone(), MinInterval: c.Cron.MinInterval, System: own, Texts: &j.app.texts.Scheduler, Log: j.app.Log,
		MaxJobs: func() int { return j.app.now.Load().Limits["person"].Jobs },
	})
}

// roleNow returns what from may do at a today (R-S24).
func (j jobHost) roleNow(ctx context.Context, a chat.Address, from chat.Sender) (chat.Role, error) {
	role, err := j.app.hub.Access().Role(ctx, a, from.ID)
	invited := a.Channel == "web" || a.Channel == "api" // both know people by their invitation
	if err != nil || role == chat.Unknown || !invited {
		return role, err
	}
	if may, err := j.app.web.May(ctx, from.ID); !may {
		return chat.Unknown, err
	}
	return role, nil
}

// tellChat sends text to a, or to the owners if a is empty, once for each id.
func (j jobHost) tellChat(ctx context.Context, id string, a chat.Address, text string) error {
	if a == (chat.Address{}) {
		return j.app.hub.TellOwners(ctx, id, text)
	}
	return j.app.hub.Send(ctx, chat.Reply{ID: id, To: a, Text: text})
}

// exists reports whether the scheduled job of that ID exists, or cannot be read.
func (j jobHost) exists(ctx context.Context, id string) bool {
	_, err := j.app.scheduler.Job(ctx, id)
	return !errors.Is(err, store.ErrNotFound)
}

// noteEnd tells the scheduler how a run ended.
func (j jobHost) noteEnd(ctx context.Context, e agent.End) error {
	return j.app.scheduler.Ended(ctx, e.Message, scheduler.Ended{
		Outcome: scheduler.Outcome(e.Outcome), Text: e.Text, Sent: e.Sent, Tainted: e.Tainted,
		Tokens: e.Tokens, Cost: e.Cost,
	})
}

// noteDelivery records what became of a reply that no person waits for: reason is
// "" if the network has taken it. Owners are told of the first refusal only, not
// of those of further attempts (P26).
func (j jobHost) noteDelivery(ctx context.Context, r chat.Reply, tries int, reason string) error {
	if r.Run != "" { // before anybody is told, who may ask then
		err := j.app.scheduler.NoteDelivery(ctx, r.Run, reason)
		if err := errors.Join(err, j.app.pool.Subagents().NoteDelivery(ctx, r.Run, reason)); err != nil {
			return err
		}
	}
	if reason == "" || tries > 0 {
		return nil
	}
	text := j.app.texts.Gateway.Owners.Undelivered.With(r.To.Session(), reason, chat.Clip(r.Text, 300, "…"))
	return j.app.hub.TellOwners(ctx, "undelivered:"+r.ID, text)
}

// pages are the owner's pages of scheduled jobs.
func (j jobHost) pages() *schedule.Pages {
	rehearse.Sweep(j.app.Log)
	r := rehearse.Rehearser{
		Scheduler: j.app.scheduler, Role: j.roleNow, Channels: toolboxOf(j.app).channels,
		Limits: func() budget.Limits { return limitsOf(j.app.now.Load()) }, Zone: j.app.Config.Zone(),
		Budget:    j.app.pool.Budget(),
		Workspace: j.app.files, Part: toolboxOf(j.app).partOf, Memory: j.app.knowledge.prompt(), Sandbox: j.app.sandbox,
		BuiltIn:  builtInTools,
		Confined: func() bool { return j.app.now.Load().Tools.Exec.Sandbox != "none" }, Log: j.app.Log,
		Settings: func() agent.Settings {
			c := j.app.now.Load()
			return agent.Settings{
				Models: j.app.models(c), Model: c.Agent.Model, ModelsOff: j.app.policy.ModelsOff,
				Rounds: c.Agent.MaxRounds, Kit: *j.app.kit.Load(), Price: j.app.price,
			}
		},
	}
	return &schedule.Pages{
		Jobs: j.app.scheduler.Jobs, NextTimes: j.app.scheduler.NextTimes, Preview: j.app.scheduler.Preview,
		Forecast: r.Forecast, Ask: r.Ask, Audit: j.app.auditLog.Add, Zone: j.app.Config.Zone(),
	}
}

// openManager makes what carries out orders about scheduled jobs.
func (j jobHost) openManager() {
	j.app.jobs = &jobs.Manager{
		Scheduler: j.app.scheduler,
		Zone:      j.app.Config.Zone(),
		Texts:     j.app.texts,
		Models:    j.app.modelNames,
		CheckTool: toolboxOf(j.app).checkJob,
		Audit:     j.app.auditLog.Add,
	}
}

// order does what the tool cron is asked for.
func (j jobHost) order(ctx context.Context, a jobs.Asker, key string, o jobs.Order) (jobs.Answer, error) {
	return j.app.jobs.Order(ctx, a, key, o)
}

// command answers the slash command /cron.
func (j jobHost) command(ctx context.Context, m chat.Message) (string, error) {
	return j.app.jobs.Command(ctx, m)
}

// ownerAt returns the owner for whom a job is made that tells the session to.
func (j jobHost) ownerAt(to string) (jobs.Asker, error) {
	c := j.app.now.Load()
	rules, err := c.Rules()
	if err != nil {
		return jobs.Asker{}, err
	}
	office, _ := j.app.hub.OwnerChat()
	a, err := jobs.OwnerAt(rules.Owners(), office, to)
	if err != nil || to == "" {
		return a, err
	}
	if err := network.CheckChat(c.DriverOf(a.At.Channel), a.At); err != nil {
		return jobs.Asker{}, fmt.Errorf("'%s' names no chat: %w", to, err)
	}
	return a, nil
}

// heartbeat returns the run of the job heartbeat.
func (j jobHost) heartbeat() jobs.Heartbeat {
	return jobs.Heartbeat{
		Read:      j.app.files.Names().ReadFile,
		Owner:     func() (jobs.Asker, error) { return j.ownerAt("") },
		Model:     func() string { return j.app.now.Load().Heartbeat.Model },
		Scheduler: func() *scheduler.Scheduler { return j.app.scheduler },
		Deliver:   j.app.pool.Deliver,
		Texts:     j.app.texts.Gateway.Heartbeat,
	}
}
