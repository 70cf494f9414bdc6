package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/tools"
	"parley/web"
)

// openJobs makes what carries out orders about scheduled jobs.
func (h *house) openJobs() {
	h.jobs = &jobs.Manager{
		Scheduler: h.clock,
		Zone:      h.Config.Zone(),
		Texts:     h.texts,
		Models:    h.modelNames,
		CheckTool: h.checkJobsTool,
		Audit:     h.auditLog.Add,
	}
}

// checkJobsTool returns the name of the tool that j is to call, or why the
// person whose job it is could not make that call.
func (h *house) checkJobsTool(ctx context.Context, j scheduler.Job) (string, error) {
	s := tools.Scope{Session: j.At.Session(), At: j.At, From: j.By, Group: j.Group, Origin: chat.FromSchedule}
	kit, err := (*h.kit.Load())(ctx, s)
	if err != nil {
		return j.Tool, err
	}
	c, err := kit.Check(tools.Call{ToolCall: llm.ToolCall{Name: j.Tool, Args: j.Args}, Scope: s})
	return c.Name, err
}

// orderJob does what the tool cron is asked for.
func (h *house) orderJob(ctx context.Context, a jobs.Asker, key string, o jobs.Order) (jobs.Answer, error) {
	return h.jobs.Order(ctx, a, key, o)
}

// cronCommand answers the slash command /cron.
func (h *house) cronCommand(ctx context.Context, m chat.Message) (string, error) {
	return h.jobs.Command(ctx, m)
}

// jobsAPI is how the owner's page and the command line reach scheduled jobs.
func (h *house) jobsAPI() web.Clock {
	return web.Clock{
		Jobs: h.clock.Jobs,
		Soon: h.clock.Soon,
		Order: func(ctx context.Context, id string, o web.Order) (scheduler.Job, error) {
			j, err := h.ownersOrder(ctx, id, o)
			return j, asWebError(err)
		},
		Fire: func(ctx context.Context, id string, force bool) error { // each request is another one
			key := "press/" + time.Now().UTC().Format(time.RFC3339Nano)
			return asWebError(h.clock.Fire(ctx, id, key, force))
		},
		Remove: h.clock.Remove,
	}
}

// ownersOrder changes the job of that ID, or makes one if it is "".
func (h *house) ownersOrder(ctx context.Context, id string, o web.Order) (scheduler.Job, error) {
	if id != "" {
		return h.jobs.Edit(ctx, id, o.To, o.Change, o.Enabled)
	}
	a, err := h.ownerAt(o.To)
	if err != nil {
		return scheduler.Job{}, err
	}
	return h.jobs.Add(ctx, a, "", o.Change)
}

// asWebError marks err for the page and the API if it is about what was asked for.
func asWebError(err error) error {
	if jobs.IsUserError(err) {
		return web.Wrong(err)
	}
	return err
}

// ownerAt is the owner who has a job made for the session to: the one whose chat
// it is, or else one of its channel, who is among others there. They are who they
// are on the channel, so that their rights there count (R-S24).
func (h *house) ownerAt(to string) (jobs.Asker, error) {
	at, _ := h.hub.Office()
	if i := strings.LastIndex(to, ":"); to != "" {
		at = chat.Address{Channel: to[:max(i, 0)]}
		at.Chat, at.Thread, _ = strings.Cut(to[i+1:], "/")
	}
	a := jobs.Asker{At: at, Group: true}
	access, err := accessOf(h.now.Load())
	for _, owner := range access.Owners() {
		channel, id := owner, "" // of somebody who is alone there
		if i := strings.LastIndex(owner, ":"); i >= 0 {
			channel, id = owner[:i], owner[i+1:]
		}
		if own := id == "" || strings.TrimPrefix(at.Chat, "@") == id; channel == at.Channel && (own || a.From.Role == "") {
			a.Group = !own
			a.From = chat.Sender{ID: id, Role: chat.Owner}
		}
	}
	if a.From.Role == "" || at.Chat == "" || at.Channel == "api" {
		return jobs.Asker{}, errors.Join(err, fmt.Errorf("no owner is at '%s': name a chat that an owner is in, such as telegram:ID for an ID in owners, or console:local", to))
	}
	return a, nil
}
