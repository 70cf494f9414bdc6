package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/tools"
	"parley/tools/cron"
)

// mayChange says whether who asks in s may know of j and change it: it is
// theirs, or they are an owner and nobody else reads along (D-098).
func mayChange(s tools.Scope, j scheduler.Job) bool {
	return !j.System && j.Whose() == s.Whose() || s.From.Role == chat.Owner && !s.Group
}

// jobOf returns the job of that ID, store.ErrNotFound if it is not for s.
func (h *house) jobOf(ctx context.Context, s tools.Scope, id string) (scheduler.Job, error) {
	j, err := h.clock.Job(ctx, id)
	if errors.Is(err, store.ErrDamaged) {
		j, err = scheduler.Job{ID: id}, nil // nobody's, so that an owner can remove it
	}
	if err == nil && !mayChange(s, j) {
		err = store.ErrNotFound
	}
	return j, err
}

// jobsOf returns the jobs that are for s, the next one first.
func (h *house) jobsOf(ctx context.Context, s tools.Scope) ([]scheduler.Job, error) {
	all, err := h.clock.Jobs(ctx)
	return slices.DeleteFunc(all, func(j scheduler.Job) bool { return !mayChange(s, j) }), err
}

// addJob makes a job of o for who asks in s, in their chat.
func (h *house) addJob(ctx context.Context, s tools.Scope, o cron.Order) (scheduler.Job, error) {
	j := scheduler.Job{ID: o.ID, At: s.At, Group: s.Group, By: s.From}
	if err := h.alter(ctx, &j, o); err != nil {
		return j, err
	}
	return h.clock.Add(ctx, j)
}

// editJob changes the job of that ID as o says.
func (h *house) editJob(ctx context.Context, id string, o cron.Order) (scheduler.Job, error) {
	return h.clock.Edit(ctx, id, func(j *scheduler.Job) error { return h.alter(ctx, j, o) })
}

// alter makes of j what o says of it. What is wrong with its times the
// scheduler says.
func (h *house) alter(ctx context.Context, j *scheduler.Job, o cron.Order) (err error) {
	if o.Every != 0 || o.Cron != "" || o.At != "" {
		j.Schedule = scheduler.Schedule{Every: time.Duration(o.Every) * time.Second, Cron: o.Cron}
	}
	if o.At != "" {
		j.Schedule.At, err = scheduler.ParseAt(o.At, h.Config.zone())
	}
	if err != nil {
		return err
	}
	j.Schedule.Zone = cmp.Or(o.Zone, j.Schedule.Zone)
	if o.Message != "" {
		j.Text, j.Tool, j.Args = o.Message, "", ""
	}
	if o.Tool != "" {
		j.Tool, j.Args = o.Tool, "{}"
	}
	if len(o.Args) > 0 {
		args, err := json.Marshal(o.Args)
		if err != nil {
			return err
		}
		j.Args = string(args)
	}
	j.Name, j.Model, j.Missed = cmp.Or(o.Name, j.Name), cmp.Or(o.Model, j.Model), cmp.Or(scheduler.Missed(o.Missed), j.Missed)
	if o.Isolated != nil {
		j.Isolated = *o.Isolated
	}
	if o.Quiet != nil {
		j.Quiet = *o.Quiet
	}
	if o.On != nil {
		j.Off = !*o.On
	}
	return h.proper(ctx, j)
}

// proper returns an error if j names what is not there for the person whose it
// is, and has what it names by its right name.
func (h *house) proper(ctx context.Context, j *scheduler.Job) error {
	if j.Model == "default" {
		j.Model = ""
	}
	if names := h.modelNames(); j.Model != "" && !slices.Contains(names, j.Model) {
		return fmt.Errorf("there is no model '%s'; there are %s", j.Model, strings.Join(names, ", "))
	}
	switch j.Missed {
	case "once":
		j.Missed = scheduler.Once
	case scheduler.Once, scheduler.Skip:
	default:
		return fmt.Errorf("missed is once or skip, not '%s'", j.Missed)
	}
	if j.Tool == "" {
		return nil
	}
	kit, err := (*h.kit.Load())(ctx, tools.Scope{Session: j.At.Session(), At: j.At, From: j.By, Group: j.Group, Origin: chat.FromSchedule})
	if err != nil {
		return err
	}
	t, ok := kit.Tool(j.Tool)
	if !ok {
		return fmt.Errorf("there is no tool '%s'", j.Tool)
	}
	j.Tool = t.Name
	return nil
}

// onClock does what the tool is told to: it is its cron.Clock.
func (h *house) onClock(ctx context.Context, c tools.Call, o cron.Order) (r tools.Result, err error) {
	switch o.Action {
	case "add":
		j, err := h.addJob(ctx, c.Scope, o)
		return tools.Result{Text: fmt.Sprintf("Created job '%s' (id: %s)", j.Name, j.ID)}, err
	case "list":
		jobs, err := h.jobsOf(ctx, c.Scope)
		for _, j := range jobs { // the words of others
			r.Tainted = r.Tainted || !j.System && j.Whose() != c.Whose()
		}
		r.Text = listed(jobs, h.Config.zone())
		return r, err
	}
	r.Text, err = h.tend(ctx, c.Scope, o)
	return r, err
}

// tend does what o says to a job that there is, and returns what to tell who
// asked for it in s. What they got wrong is no error.
func (h *house) tend(ctx context.Context, s tools.Scope, o cron.Order) (text string, err error) {
	j, err := h.jobOf(ctx, s, o.ID)
	if err == nil {
		text, err = h.deed(ctx, j, o)
	}
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Sprintf("Job %s not found", o.ID), nil
	case errors.Is(err, scheduler.ErrProtected):
		return protected(o.Action, o.ID), nil
	}
	return text, err
}

// deed does what o says to j.
func (h *house) deed(ctx context.Context, j scheduler.Job, o cron.Order) (text string, err error) {
	switch o.Action {
	case "remove":
		return "Removed job " + j.ID, h.clock.Remove(ctx, j.ID)
	case "run":
		return fmt.Sprintf("Job %s runs now", j.ID), h.clock.Fire(ctx, j.ID)
	case "history":
		return history(j, h.Config.zone()), nil
	case "enable", "disable":
		on := o.Action == "enable"
		o = cron.Order{On: &on}
		text = map[bool]string{true: "Enabled job ", false: "Disabled job "}[on] + j.ID
	}
	j, err = h.editJob(ctx, j.ID, o)
	return cmp.Or(text, "Changed job "+title(j)), err
}

// cronHelp is what /cron can do.
const cronHelp = "/cron lists what is on the clock. Then, with the ID of a job:\n" +
	"/cron history ID – how it went\n/cron run ID – now\n/cron off ID, /cron on ID\n/cron remove ID\n" +
	"To put something on the clock, tell me what and when."

// cmdCron answers /cron.
func (h *house) cmdCron(ctx context.Context, m chat.Message) (string, error) {
	s := tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group}
	words := strings.Fields(m.Text)[1:]
	if len(words) == 0 {
		jobs, err := h.jobsOf(ctx, s)
		return listed(jobs, h.Config.zone()), err
	}
	action, known := map[string]string{
		"history": "history", "run": "run", "remove": "remove", "off": "disable", "disable": "disable", "on": "enable", "enable": "enable",
	}[strings.ToLower(words[0])]
	if !known || len(words) != 2 {
		return cronHelp, nil
	}
	text, err := h.tend(ctx, s, cron.Order{Action: action, ID: words[1]})
	if action != "history" {
		h.audit("cron", m.At.Channel+":"+m.From.ID, action+" "+words[1]+": "+text)
	}
	return text, err
}
