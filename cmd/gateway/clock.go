package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/scheduler"
	"parley/store"
	"parley/tools"
	"parley/tools/cron"
)

// mayChange says whether who asks in s may know of j and change it (D-098).
// Owners may in private, and in a group, where others read along, if it was made
// there. Others may if they have made it: it runs with the rights of who did (R-S24).
func mayChange(s tools.Scope, j scheduler.Job) bool {
	if s.From.Role == chat.Owner && !s.Group {
		return true
	}
	return !j.System && j.Whose() == s.Whose() && (s.From.Role == chat.Owner || j.By.ID == s.From.ID)
}

// addJob makes a job of o for who asks in s, in their chat.
func (h *house) addJob(ctx context.Context, s tools.Scope, o cron.Order) (scheduler.Job, error) {
	j := scheduler.Job{ID: o.ID, At: s.At, Group: s.Group, By: s.From}
	if err := h.alter(ctx, &j, o); err != nil {
		return j, err
	}
	return h.clock.Add(ctx, j)
}

// alter makes of j what o says of it. What is wrong with its times the
// scheduler says.
func (h *house) alter(ctx context.Context, j *scheduler.Job, o cron.Order) (err error) {
	if o.Every != 0 || o.Cron != "" || o.At != "" {
		j.Schedule = scheduler.Schedule{Every: time.Duration(min(max(o.Every, -1), math.MaxInt32)) * time.Second, Cron: o.Cron}
	}
	if o.At != "" {
		if j.Schedule.At, err = scheduler.ParseAt(o.At, h.Config.Zone()); err != nil {
			return err
		}
	}
	if o.Isolated != nil {
		j.Isolated = *o.Isolated
	}
	if o.Quiet != nil {
		j.Quiet = *o.Quiet
	}
	if o.Message != "" {
		j.Text, j.Tool, j.Args = o.Message, "", ""
	}
	j.Schedule.Zone, j.Name = cmp.Or(o.Zone, j.Schedule.Zone), cmp.Or(o.Name, j.Name)
	if j.Missed = cmp.Or(scheduler.Missed(o.Missed), j.Missed); j.Missed == "once" {
		j.Missed = scheduler.Once
	}
	if o.Action == "enable" || o.Action == "disable" {
		j.Off = o.Action == "disable"
	}
	return errors.Join(h.setModel(j, o.Model), h.setTool(ctx, j, o))
}

// setModel has the model of that name answer j.
func (h *house) setModel(j *scheduler.Job, name string) error {
	switch names := h.modelNames(); {
	case name == "":
	case name == "default":
		j.Model = ""
	case !slices.Contains(names, name):
		return fmt.Errorf("there is no model '%s'; there are %s", name, strings.Join(names, ", "))
	default:
		j.Model = name
	}
	return nil
}

// setTool has j call the tool of o, if it is a call that the person whose job it
// is could make.
func (h *house) setTool(ctx context.Context, j *scheduler.Job, o cron.Order) error {
	if o.Tool != "" {
		j.Tool, j.Args = o.Tool, "{}"
	}
	if len(o.Args) > 0 {
		args, _ := json.Marshal(o.Args) // they came as JSON
		j.Args = string(args)
	}
	if j.Tool == "" || o.Tool == "" && len(o.Args) == 0 {
		return nil
	}
	s := tools.Scope{Session: j.At.Session(), At: j.At, From: j.By, Group: j.Group, Origin: chat.FromSchedule}
	kit, err := (*h.kit.Load())(ctx, s)
	if err != nil {
		return err
	}
	c, err := kit.Check(tools.Call{ToolCall: llm.ToolCall{Name: j.Tool, Args: j.Args}, Scope: s})
	j.Tool = c.Name
	return err
}

// onClock is the cron.Clock of the tool, which models read: it answers in English
// whatever people are told.
func (h *house) onClock(ctx context.Context, s tools.Scope, key string, o cron.Order) (tools.Result, error) {
	return h.orderJob(ctx, s, key, o, inEnglish(h.Config.Zone()))
}

// orderJob does what o says and tells of it as say does.
func (h *house) orderJob(ctx context.Context, s tools.Scope, key string, o cron.Order, say jobTexts) (tools.Result, error) {
	switch o.Action {
	case "add":
		j, err := h.addJob(ctx, s, o)
		return tools.Result{Text: say.texts.Created.With(j.Name, j.ID)}, err
	case "list":
		jobs, err := h.clock.Jobs(ctx)
		jobs = slices.DeleteFunc(jobs, func(j scheduler.Job) bool { return !mayChange(s, j) })
		strange := func(j scheduler.Job) bool { return strange(j, s.Whose()) }
		return tools.Result{Text: say.list(jobs, s.At), Tainted: slices.ContainsFunc(jobs, strange)}, err
	}
	return h.tend(ctx, s, key, o, say)
}

// strange says whether what is told of j may hold words of others than who.
func strange(j scheduler.Job, who chat.Person) bool {
	return !j.System && j.Whose() != who || slices.ContainsFunc(j.Runs, func(r scheduler.Run) bool { return r.Tainted })
}

// findJob returns the ID of the job that ref means among those that s may change.
func (h *house) findJob(ctx context.Context, s tools.Scope, ref string) (string, error) {
	jobs, err := h.clock.Jobs(ctx)
	if err != nil {
		return "", err
	}
	return jobNamed(slices.DeleteFunc(jobs, func(j scheduler.Job) bool { return !mayChange(s, j) }), ref)
}

// jobNamed returns the ID of the job that ref means: its ID, or its name in
// capitals or not. If no job is meant it returns ref. A name that several jobs
// have is an error.
func jobNamed(jobs []scheduler.Job, ref string) (id string, err error) {
	var ids []string
	for _, j := range jobs {
		if j.ID == ref {
			return ref, nil
		}
		if strings.EqualFold(oneLine(j.Name), oneLine(ref)) {
			ids = append(ids, j.ID)
		}
	}
	switch len(ids) {
	case 0:
		return ref, nil
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("several jobs are named %s: %s; name one by its ID", oneLine(ref), strings.Join(ids, ", "))
}

// tend does what o says to a job that there is.
func (h *house) tend(ctx context.Context, s tools.Scope, key string, o cron.Order, say jobTexts) (r tools.Result, err error) {
	id, err := h.findJob(ctx, s, o.ID)
	if err != nil {
		return r, err
	}
	j, err := h.clock.Job(ctx, id)
	if errors.Is(err, store.ErrDamaged) { // owners can remove it
		j, err = scheduler.Job{ID: id}, nil
	}
	switch {
	case err != nil:
	case !mayChange(s, j):
		err = store.ErrNotFound
	case o.Action == "remove":
		r.Text, err = say.texts.Removed.With(j.ID), h.clock.Remove(ctx, j.ID)
	case o.Action == "run":
		r.Text, err = say.texts.RunsNow.With(j.ID), h.clock.Fire(ctx, j.ID, key, o.Force)
	case o.Action == "history":
		r.Text, r.Tainted = say.history(j), strange(j, s.Whose())
	default:
		r.Text = say.changed(o.Action, j.ID)
		_, err = h.clock.Edit(ctx, j.ID, func(j *scheduler.Job) error { return h.alter(ctx, j, o) })
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return tools.Result{Text: say.texts.NotFound.With(o.ID)}, nil
	case errors.Is(err, scheduler.ErrProtected):
		return tools.Result{Text: say.protected(o.Action, o.ID)}, nil
	}
	return r, err
}

// cronVerbs are what /cron does, as an Order calls it.
var cronVerbs = map[string]string{"list": "list", "history": "history", "run": "run", "remove": "remove", "on": "enable", "off": "disable"}

// cmdCron answers /cron.
func (h *house) cmdCron(ctx context.Context, m chat.Message) (string, error) {
	o, words := cron.Order{Action: "list"}, strings.Fields(m.Text)[1:]
	if len(words) > 0 {
		o.Action = cronVerbs[strings.ToLower(words[0])]
		if n := len(words); o.Action == "run" && n > 2 && words[n-1] == "force" {
			o.Force, words = true, words[:n-1]
		}
		o.ID = strings.Join(words[1:], " ")
	}
	if o.Action == "" || (o.Action == "list") != (o.ID == "") {
		return h.texts.Gateway.Jobs.Usage, nil
	}
	say := jobTexts{texts: h.texts.Gateway.Jobs, zone: h.Config.Zone()}
	r, err := h.orderJob(ctx, tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group}, m.Key(), o, say)
	if why := scheduler.Say(h.texts.Scheduler.Refusals, err); why != "" {
		return h.texts.Gateway.Commands.NotDone.With(why), nil
	}
	if o.Action != "list" && o.Action != "history" {
		h.auditLog.Add("cron", m.At.Channel+":"+m.From.ID, r.Text)
	}
	return r.Text, err
}
