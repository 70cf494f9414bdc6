package web

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
)

// A Clock is what is done at its time. What whoever asks got wrong, the functions
// say with [Wrong].
type Clock struct {
	Jobs func(context.Context) ([]scheduler.Job, error) // the next one first
	Soon func(j scheduler.Job, n int) []time.Time       // when it is due next
	// Order changes the job of that ID, or makes one if it is "".
	Order  func(ctx context.Context, id string, o Order) (scheduler.Job, error)
	Fire   func(ctx context.Context, id string, force bool) error
	Remove func(ctx context.Context, id string) error
}

// An Order makes a job, or changes one.
type Order struct {
	jobs.Change
	Enabled *bool `json:"enabled,omitempty"`

	// To is the session that is told; "" is the first one in which an owner can be written to.
	To string `json:"to,omitempty"`
}

// A Job is a job as it is told: all that was asked of it, and what nobody can ask.
type Job struct {
	Order
	ID      string          `json:"id"`
	System  bool            `json:"system,omitempty"` // the house's own
	Created time.Time       `json:"created"`
	Next    time.Time       `json:"next,omitzero"` // when it is due, and Soon up to three such times
	Soon    []time.Time     `json:"soon"`
	Why     string          `json:"why,omitempty"` // it is off, if nobody switched it off
	Runs    []scheduler.Run `json:"runs"`          // latest last
	Record  scheduler.Job   `json:"-"`
}

// job tells of j.
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
		Record:  j,
		Soon:    append([]time.Time{}, a.cfg.Gateway.Clock.Soon(j, 3)...), // not nil, which JSON writes as null
		Runs:    append([]scheduler.Run{}, j.Runs...),
	}
	if !j.Schedule.At.IsZero() {
		told.At = j.Schedule.At.Format(time.RFC3339)
	}
	if j.At != (chat.Address{}) {
		told.To = string(j.At.Session())
	}
	if j.Args != "" {
		_ = json.Unmarshal([]byte(j.Args), &told.Args) // the scheduler has seen that it is an object
	}
	return told
}

// Latest are its runs, the latest first.
func (j Job) Latest() []scheduler.Run {
	runs := slices.Clone(j.Runs)
	slices.Reverse(runs)
	return runs
}

func (a *admin) jobs(r *http.Request) (any, error) {
	all, err := a.cfg.Gateway.Clock.Jobs(r.Context())
	told := make([]Job, len(all))
	for i, j := range all {
		told[i] = a.job(j)
	}
	return struct {
		Jobs []Job `json:"jobs"`
	}{told}, err
}

// order puts a job on the clock, or changes one.
func (a *admin) order(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var o Order
	if err := body(w, r, &o); err != nil {
		return nil, "", err
	}
	id, done := r.PathValue("id"), "changed: "
	if id == "" {
		done = "added: "
	}
	j, err := a.cfg.Gateway.Clock.Order(r.Context(), id, o)
	return a.job(j), done + j.ID, err
}
