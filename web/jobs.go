package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
)

// A Scheduler lists and changes scheduled jobs.
type Scheduler struct {
	Jobs      func(context.Context) ([]scheduler.Job, error) // the next one first
	NextTimes func(j scheduler.Job, n int) []time.Time       // when it is due next
	// Order changes the job of that ID, or makes one if it is "".
	Order func(ctx context.Context, id string, o Order) (scheduler.Job, error)
	// Fire runs a job now, once for each key.
	Fire   func(ctx context.Context, id, key string, force bool) error
	Remove func(ctx context.Context, id string) error
}

// An Order makes a job, or changes one.
type Order struct {
	jobs.Change
	When    string `json:"when,omitempty"` // in plain words, in place of every_seconds, cron_expr and at
	Enabled *bool  `json:"enabled,omitempty"`

	// To is the session that gets the output; "" is the first one in which an owner can be reached.
	To string `json:"to,omitempty"`
}

// A Job is a job as programs see it: what can be set, and what the scheduler adds.
type Job struct {
	Order
	ID      string          `json:"id"`
	System  bool            `json:"system,omitempty"` // built in
	Created time.Time       `json:"created"`
	Next    time.Time       `json:"next,omitzero"` // when it is due, and Soon up to three such times
	Soon    []time.Time     `json:"soon"`
	Why     string          `json:"why,omitempty"` // it is off, if nobody switched it off
	Runs    []scheduler.Run `json:"runs"`          // latest last
}

// job returns j as programs see it.
func (a *admin) job(j scheduler.Job) Job {
	on := !j.Off
	told := Job{
		Order: Order{Enabled: &on, Change: jobs.Change{
			Name:     j.Name,
			Message:  j.Text,
			Every:    int(j.Schedule.Every / time.Second),
			Cron:     j.Schedule.Cron,
			Zone:     j.Schedule.Zone,
			Isolated: &j.Isolated,
			Quiet:    &j.Quiet,
			Model:    j.Model,
			Missed:   cmp.Or(string(j.Missed), "once"),
			Tool:     j.Tool,
		}},
		ID:      j.ID,
		System:  j.System,
		Created: j.Created,
		Next:    j.Next,
		Why:     j.Why,
		Soon:    append([]time.Time{}, a.cfg.Gateway.Scheduler.NextTimes(j, 3)...), // JSON writes nil as null
		Runs:    append([]scheduler.Run{}, j.Runs...),
	}
	if !j.Schedule.At.IsZero() {
		told.At = j.Schedule.At.Format(time.RFC3339)
	}
	if j.At != (chat.Address{}) {
		told.To = string(j.At.Session())
	}
	if j.Args != "" {
		_ = json.Unmarshal([]byte(j.Args), &told.Args) // the scheduler accepts objects only
	}
	return told
}

// A jobList is all jobs, the next one first.
type jobList struct {
	Jobs []Job `json:"jobs"`
}

func (a *admin) jobs(r *http.Request) (jobList, error) {
	all, err := a.cfg.Gateway.Scheduler.Jobs(r.Context())
	told := make([]Job, len(all))
	for i, j := range all {
		told[i] = a.job(j)
	}
	return jobList{told}, err
}

// order adds a job, or changes the one that the path names.
func (a *admin) order(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var o Order
	if err := body(w, r, &o); err != nil {
		return nil, "", err
	}
	if o.When != "" {
		if err := o.SetWhen(o.When, time.Now().In(a.pages.zone)); err != nil {
			return nil, "", markUserError(err)
		}
	}
	id, done := r.PathValue("id"), "changed: "
	if id == "" {
		done = "added: "
	}
	j, err := a.cfg.Gateway.Scheduler.Order(r.Context(), id, o)
	return a.job(j), done + j.ID, markUserError(err)
}
