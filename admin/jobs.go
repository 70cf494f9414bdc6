package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/web"
)

// jobPath is where the job of that ID is asked for.
func jobPath(id string) string { return "/api/cron/" + url.PathEscape(id) }

// jobs returns all jobs, and the same as records of the scheduler.
func (c *Client) jobs(ctx context.Context) (all []web.Job, records []scheduler.Job, err error) {
	var listed struct{ Jobs []web.Job }
	if err := c.Ask(ctx, "GET", "/api/cron", nil, &listed); err != nil {
		return nil, nil, err
	}
	for _, j := range listed.Jobs {
		records = append(records, JobRecord(j))
	}
	return listed.Jobs, records, nil
}

// JobRecord returns what [jobs.Texts] tells of j.
func JobRecord(j web.Job) scheduler.Job {
	at, _ := time.Parse(time.RFC3339, j.At) // "" is the zero time
	return scheduler.Job{
		ID:   j.ID,
		Name: j.Name,
		Off:  !*j.Enabled,
		Why:  j.Why,
		Next: j.Next,
		Runs: j.Runs,
		Schedule: scheduler.Schedule{
			Every: time.Duration(j.Every) * time.Second,
			Cron:  j.Cron,
			At:    at,
			Zone:  j.Zone,
		},
	}
}

// findJob returns the ID of the job that ref means: an ID, or a name.
func (c *Client) findJob(ctx context.Context, ref string) (id string, err error) {
	_, records, err := c.jobs(ctx)
	if err != nil {
		return "", err
	}
	return jobs.Find(records, ref)
}

// askOfJob sends a request about the job that ref means. It returns the job's ID.
func (c *Client) askOfJob(ctx context.Context, ref, method, path string, in, out any) (id string, err error) {
	id, err = c.findJob(ctx, ref)
	if err != nil {
		return "", explainNotFound(ref, err)
	}
	return id, explainNotFound(ref, c.Ask(ctx, method, jobPath(id)+path, in, out))
}

// explainNotFound returns err or, if it says that the job ref does not exist, what to do.
func explainNotFound(ref string, err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("job %s not found: parley cron list shows what there is", ref)
	}
	return err
}

// PrintJobs prints all jobs, the next one first.
func (c *Client) PrintJobs(ctx context.Context, asJSON bool) error {
	all, records, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(c.Out).Encode(all)
	}
	texts := jobs.English(c.Zone)
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.Out, texts.List(nil, chat.Address{}))
		return err
	}
	t := c.newTable()
	for i, r := range records {
		to := chat.OneLine(all[i].To)
		t.row(r.ID, chat.OneLine(r.Name), texts.Schedule(r), to, texts.NextRun(r), texts.LastRun(r))
	}
	return t.flush()
}

// PrintHistory prints the past runs of the job that ref means.
func (c *Client) PrintHistory(ctx context.Context, ref string, asJSON bool) error {
	all, records, err := c.jobs(ctx)
	if err != nil {
		return err
	}
	id, err := jobs.Find(records, ref)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(records, func(r scheduler.Job) bool { return r.ID == id })
	switch {
	case i < 0:
		return fmt.Errorf("job %s not found: parley cron list shows what there is", ref)
	case asJSON:
		return json.NewEncoder(c.Out).Encode(all[i : i+1])
	}
	_, err = fmt.Fprintln(c.Out, jobs.English(c.Zone).History(records[i]))
	return err
}

// AddJob adds a job and prints it.
func (c *Client) AddJob(ctx context.Context, o web.Order, asJSON bool) error {
	var j web.Job
	if err := c.Ask(ctx, "POST", "/api/cron", o, &j); err != nil {
		return nameFlags(err)
	}
	return c.printJob("Created job", j, "; its answers go to "+placeOfAnswers(j.To), asJSON)
}

// placeOfAnswers names the conversation of a job for people. That of the web page for what
// answers nothing is listed there only when something was said in it.
func placeOfAnswers(to string) string {
	if strings.HasPrefix(to, "web:") && strings.HasSuffix(to, "/notices") {
		return "the conversation Notices on the web page, which is listed there from the first one on"
	}
	return chat.OneLine(to)
}

// EditJob changes the job that ref means and prints it.
func (c *Client) EditJob(ctx context.Context, ref string, o web.Order, asJSON bool) error {
	var j web.Job
	if _, err := c.askOfJob(ctx, ref, "PATCH", "", o, &j); err != nil {
		return nameFlags(err)
	}
	return c.printJob("Changed job", j, "", asJSON)
}

func (c *Client) printJob(done string, j web.Job, note string, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(c.Out).Encode(j)
	}
	_, err := fmt.Fprintf(c.Out, "%s %s%s\n", done, jobs.English(c.Zone).Title(JobRecord(j)), note)
	return err
}

// RunJob runs the job that ref means besides its schedule, with force even if it is
// disabled.
func (c *Client) RunJob(ctx context.Context, ref string, force bool) error {
	path := "/run"
	if force {
		path += "?force=1"
	}
	id, err := c.askOfJob(ctx, ref, "POST", path, nil, nil)
	if err != nil {
		return err
	}
	done := "Running job"
	if !c.Running() {
		done = "A gateway will run job"
	}
	_, err = fmt.Fprintln(c.Out, done, id)
	return err
}

// RemoveJob removes the job that ref means.
func (c *Client) RemoveJob(ctx context.Context, ref string) error {
	id, err := c.askOfJob(ctx, ref, "DELETE", "", nil, nil)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.Out, "Removed job", id)
	return err
}

// EnableJob enables or disables the job that ref means.
func (c *Client) EnableJob(ctx context.Context, ref string, enabled bool) error {
	id, err := c.askOfJob(ctx, ref, "PATCH", "", web.Order{Enabled: &enabled}, nil)
	if err != nil {
		return err
	}
	done := "Enabled job"
	if !enabled {
		done = "Disabled job"
	}
	_, err = fmt.Fprintln(c.Out, done, id)
	return err
}

// nameFlags names flags in a refusal of the gateway, which names the fields that the
// flags become.
func nameFlags(err error) error {
	refusal, ok := errors.AsType[Refusal](err)
	if !ok {
		return err
	}
	return Refusal(strings.NewReplacer(
		"every_seconds must", "--every, in seconds, must",
		"every_seconds", "--every",
		"cron_expr", "--cron",
		"tz can", "--tz can",
		"into tz", "into --tz",
		"at is in", "--at is in",
		"missed must", "--missed must",
		"args can", "--args can",
		"with tool", "with --tool",
		"with force", "with --force",
	).Replace(string(refusal)))
}
