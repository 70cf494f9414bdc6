package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/scheduler"
	"parley/web"
)

// A cronCommand is one run of parley cron, with its flags.
type cronCommand struct {
	*program
	json            bool
	order           web.Order
	every           time.Duration
	isolated, quiet bool
	args, to        string
}

// cron are the commands for what is done at its time.
func (p *program) cron() *cobra.Command {
	v, yes, no := &cronCommand{program: p}, true, false
	all := &cobra.Command{Use: "cron", Short: "List, add and change what is done at its time"}
	all.PersistentFlags().BoolVar(&v.json, "json", false, "print JSON")
	add := p.with("add [MESSAGE…]", "Put something on the clock: what the agent is to do, and when", cobra.ArbitraryArgs, v.add)
	add.Flags().StringVar(&v.to, "to", "", "the `chat` that hears of it, as telegram:42 (default where the owner can be spoken to first)")
	edit := p.with("edit ID [MESSAGE…]", "Change what is given of a job", cobra.MinimumNArgs(1), v.edit)
	v.flags(add)
	v.flags(edit)
	all.AddCommand(add, edit,
		p.with("list", "List the jobs, the next one first", cobra.NoArgs, v.list),
		p.with("history ID", "Print how a job went", cobra.ExactArgs(1), v.history),
		v.verb("run", "Run a job now", "Running job", "POST", "/run", nil),
		v.verb("remove", "Remove a job", "Removed job", "DELETE", "", nil),
		v.verb("enable", "Switch a job on", "Enabled job", "PATCH", "", web.Order{On: &yes}),
		v.verb("disable", "Switch a job off", "Disabled job", "PATCH", "", web.Order{On: &no}),
	)
	return all
}

// flags has c take what a job is like.
func (v *cronCommand) flags(c *cobra.Command) {
	f := c.Flags()
	f.DurationVar(&v.every, "every", 0, "again and again after this `time`, as 30m")
	f.StringVar(&v.order.Cron, "cron", "", "at the times of these five `fields`, as \"0 9 * * 1-5\"")
	f.StringVar(&v.order.At, "at", "", "once, at this `time`, as 2026-12-24T18:00")
	f.StringVar(&v.order.Zone, "tz", "", "the time `zone` of --cron, as Europe/Berlin")
	f.StringVar(&v.order.Name, "name", "", "a `name` for the list")
	f.BoolVar(&v.isolated, "isolated", false, "begin afresh each time, without what was said in the chat")
	f.BoolVar(&v.quiet, "quiet", false, "say nothing when there is nothing to say")
	f.StringVar(&v.order.Model, "model", "", "the `name` of the model that answers; default is the chat's")
	f.StringVar(&v.order.Missed, "missed", "", "`what` becomes of a time when no gateway runs: once or skip")
	f.StringVar(&v.order.Tool, "tool", "", "call this `tool` instead of asking a model …")
	f.StringVar(&v.args, "args", "", "… with these arguments, a `JSON` object")
	c.PreRun = func(*cobra.Command, []string) {
		if f.Changed("isolated") {
			v.order.Isolated = &v.isolated
		}
		if f.Changed("quiet") {
			v.order.Quiet = &v.quiet
		}
	}
}

// jobPath is where the job of that ID is asked for.
func jobPath(id string) string { return "/api/cron/" + url.PathEscape(id) }

// none says of an errNone which job it was.
func none(id string, err error) error {
	if errors.Is(err, errNone) {
		return fmt.Errorf("job %s not found: parley cron list shows what there is", id)
	}
	return err
}

// verb is a command that does one thing to a job.
func (v *cronCommand) verb(use, short, done, method, path string, say any) *cobra.Command {
	return v.with(use+" ID", short, cobra.ExactArgs(1), func(ctx context.Context, a *admin, args []string) error {
		err := a.ask(ctx, method, jobPath(args[0])+path, say, nil)
		if err == nil {
			_, err = fmt.Fprintln(v.stdout, done, args[0])
		}
		return none(args[0], err)
	})
}

func (v *cronCommand) add(ctx context.Context, a *admin, args []string) error {
	return v.send(ctx, a, "Created job", "POST", "/api/cron", args)
}

func (v *cronCommand) edit(ctx context.Context, a *admin, args []string) error {
	return none(args[0], v.send(ctx, a, "Changed job", "PATCH", jobPath(args[0]), args[1:]))
}

// send sends what the flags and the words of message say, and prints what became of it.
func (v *cronCommand) send(ctx context.Context, a *admin, done, method, path string, message []string) error {
	o := v.order
	o.Message, o.Every = strings.Join(message, " "), int(v.every/time.Second)
	if err := json.Unmarshal([]byte(v.args), &o.Args); v.args != "" && err != nil {
		return fmt.Errorf("--args is no JSON object: %w", err)
	}
	var j scheduler.Job
	if err := a.ask(ctx, method, path, web.NewJob{Order: o, To: v.to}, &j); err != nil {
		return err
	}
	if v.json {
		return json.NewEncoder(v.stdout).Encode(j)
	}
	_, err := fmt.Fprintln(v.stdout, done, title(j))
	return err
}

// jobs are all jobs.
func (v *cronCommand) jobs(ctx context.Context, a *admin) ([]web.Job, error) {
	var all struct{ Jobs []web.Job }
	err := a.ask(ctx, "GET", "/api/cron", nil, &all)
	return all.Jobs, err
}

func (v *cronCommand) list(ctx context.Context, a *admin, _ []string) error {
	jobs, err := v.jobs(ctx, a)
	switch {
	case err != nil:
		return err
	case v.json:
		return json.NewEncoder(v.stdout).Encode(jobs)
	}
	return v.table(func(line func(...any)) {
		for _, j := range jobs {
			line(j.ID, oneLine(j.Name), j.Schedule, nextRun(j.Job, time.Local), lastRun(j.Job, time.Local))
		}
	})
}

func (v *cronCommand) history(ctx context.Context, a *admin, args []string) error {
	jobs, err := v.jobs(ctx, a)
	i := slices.IndexFunc(jobs, func(j web.Job) bool { return j.ID == args[0] })
	switch {
	case err != nil:
		return err
	case i < 0:
		return none(args[0], errNone)
	case v.json:
		return json.NewEncoder(v.stdout).Encode(jobs[i].Runs)
	}
	_, err = fmt.Fprintln(v.stdout, history(jobs[i].Job, time.Local))
	return err
}
