package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
)

type jobInput struct {
	Message  string         `json:"message,omitempty" jsonschema:"what the agent is to do each time"`
	Name     string         `json:"name,omitempty" jsonschema:"a few words for lists"`
	Every    int            `json:"every_seconds,omitempty" jsonschema:"interval in seconds"`
	Cron     string         `json:"cron_expr,omitempty" jsonschema:"five fields such as '0 9 * * 1-5', or @daily"`
	Zone     string         `json:"tz,omitempty" jsonschema:"time zone of cron_expr, such as Europe/Berlin"`
	At       string         `json:"at,omitempty" jsonschema:"once, at YYYY-MM-DDTHH:MM:SS"`
	Isolated bool           `json:"isolated,omitempty" jsonschema:"start each run without the chat's history"`
	Quiet    bool           `json:"quiet,omitempty" jsonschema:"send nothing when there is nothing to report"`
	Tool     string         `json:"tool,omitempty" jsonschema:"a tool to call each time, in place of message"`
	Args     map[string]any `json:"args,omitempty" jsonschema:"the arguments of tool"`
	Chat     string         `json:"chat,omitempty" jsonschema:"gets the answers; default: the person's own"`
	Key      string         `json:"key,omitempty" jsonschema:"your own; the same job is added once under it"`
}

type job struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Schedule string `json:"schedule"`
	Message  string `json:"message,omitempty"`
	Tool     string `json:"tool,omitempty"`
	Chat     string `json:"chat,omitempty" jsonschema:"gets the answers"`
	Enabled  bool   `json:"enabled"`
	Next     string `json:"next,omitempty" jsonschema:"when it is due next"`
	System   bool   `json:"system,omitempty" jsonschema:"built in: it cannot be changed"`
}

type jobList struct {
	Jobs []job `json:"jobs"`
}

type jobRef struct {
	ID string `json:"job_id" jsonschema:"the job's ID or name, as list_jobs has it"`
}

type jobSwitch struct {
	ID      string `json:"job_id" jsonschema:"the job's ID or name, as list_jobs has it"`
	Enabled bool   `json:"enabled"`
}

// listJobs implements list_jobs.
func (a *api) listJobs(ctx context.Context, r request, _ struct{}) (jobList, error) {
	own, err := a.own()
	if err != nil {
		return jobList{}, err
	}
	return a.jobsOf(ctx, r, own, "", map[string]any{"action": jobs.List})
}

// jobsOf carries out an order and returns the jobs that it is about.
func (a *api) jobsOf(ctx context.Context, r request, at jobs.Asker, key string, order map[string]any) (jobList, error) {
	result, err := a.run(ctx, r, at, key, "cron", order)
	if err != nil {
		return jobList{}, err
	}
	list := jobList{Jobs: []job{}}
	all, _ := result.Data.([]scheduler.Job)
	for _, j := range all {
		told := job{
			ID: j.ID, Name: j.Name, Schedule: j.Schedule.String(), Message: j.Text, Tool: j.Tool, Enabled: !j.Off,
			System: j.System,
		}
		if j.At != (chat.Address{}) {
			told.Chat = string(j.At.Session())
		}
		if !j.Next.IsZero() && !j.Off {
			told.Next = j.Next.Format(time.RFC3339)
		}
		list.Jobs = append(list.Jobs, told)
	}
	return list, nil
}

// addJob implements add_job.
func (a *api) addJob(ctx context.Context, r request, in jobInput) (job, error) {
	at, err := a.in(in.Chat)
	if err != nil {
		return job{}, err
	}
	if in.Message == "" && in.Tool == "" {
		return job{}, errors.New("a job needs message, which says what the agent is to do, or tool")
	}
	order := map[string]any{}
	if err := remarshal(in, &order); err != nil {
		return job{}, err
	}
	delete(order, "chat")
	delete(order, "key")
	order["action"] = jobs.Add
	list, err := a.jobsOf(ctx, r, at, in.Key, order)
	if err != nil || len(list.Jobs) == 0 {
		return job{}, cmp.Or(err, errors.New("the job was not added"))
	}
	return list.Jobs[0], nil
}

// change carries out an order on one job.
func (a *api) change(ctx context.Context, r request, ref, action string) (done, error) {
	own, err := a.own()
	if err != nil {
		return done{}, err
	}
	list, err := a.jobsOf(ctx, r, own, "", map[string]any{"action": jobs.List})
	if err != nil {
		return done{}, err
	}
	known := slices.ContainsFunc(list.Jobs, func(j job) bool {
		return j.ID == ref || strings.EqualFold(chat.OneLine(j.Name), chat.OneLine(ref))
	})
	if !known {
		return done{}, fmt.Errorf("there is no job %q: list_jobs has those there are", ref)
	}
	result, err := a.run(ctx, r, own, "", "cron", map[string]any{"action": action, "job_id": ref})
	return done{Text: result.Text}, err
}

// removeJob implements remove_job.
func (a *api) removeJob(ctx context.Context, r request, in jobRef) (done, error) {
	return a.change(ctx, r, in.ID, jobs.Remove)
}

// switchJob implements set_job_enabled.
func (a *api) switchJob(ctx context.Context, r request, in jobSwitch) (done, error) {
	if in.Enabled {
		return a.change(ctx, r, in.ID, jobs.Enable)
	}
	return a.change(ctx, r, in.ID, jobs.Disable)
}
