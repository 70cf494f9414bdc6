package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
	"parley/web"
)

// A cronCommand is one run of parley cron, with its flags.
type cronCommand struct {
	program *program
	json    bool
	ask     web.Order
}

// cron are the commands for what is done at its time.
func (p *program) cron() *cobra.Command {
	v, yes, no := &cronCommand{program: p}, true, false
	all := bundle("cron", "Manage scheduled jobs")
	all.PersistentFlags().BoolVar(&v.json, "json", false, "print JSON")
	add := p.with("add [MESSAGE…]", "Add a job: what the agent is to do, and when", v.addArgs, func(ctx context.Context, a *admin, words []string) error {
		return v.send(ctx, a, "Created job", "POST", "/api/cron", words)
	})
	add.Flags().StringVar(&v.ask.To, "to", "", "the `chat` that gets the answers, such as telegram:42 (default: where the owner can be written to)")
	edit := p.with("edit ID [MESSAGE…]", "Change a job; what is not given stays as it is", v.editArgs, func(ctx context.Context, a *admin, args []string) error {
		id, err := a.findJob(ctx, args[0])
		if err != nil {
			return err
		}
		return none(args[0], v.send(ctx, a, "Changed job", "PATCH", jobPath(id), args[1:]))
	})
	v.flags(add)
	v.flags(edit)
	add.MarkFlagsOneRequired("every", "cron", "at")
	all.AddCommand(add, edit,
		p.with("list", "List the jobs by their next run", cobra.NoArgs, v.list),
		p.with("history ID", "Show the past runs of a job", oneJob, v.list),
		v.runNow(),
		v.verb("remove", "Remove a job", "Removed job", "DELETE", "", nil),
		v.verb("enable", "Enable a job", "Enabled job", "PATCH", "", web.Order{Enabled: &yes}),
		v.verb("disable", "Disable a job", "Disabled job", "PATCH", "", web.Order{Enabled: &no}),
	)
	return all
}

// addArgs says what add lacks.
func (v *cronCommand) addArgs(c *cobra.Command, message []string) error {
	if len(message) == 0 && v.ask.Tool == "" {
		return errors.New("add needs a MESSAGE, which says what the agent is to do, or a --tool")
	}
	return c.ValidateFlagGroups()
}

// editArgs says what edit lacks.
func (v *cronCommand) editArgs(c *cobra.Command, args []string) error {
	if err := oneJob(c, args[:min(len(args), 1)]); err != nil {
		return err
	}
	if len(args) == 1 && reflect.ValueOf(v.ask).IsZero() {
		return errors.New("edit needs what to change: a MESSAGE, --name, --every, --cron, --at, --tz, --isolated, --quiet, --model, --missed, --tool or --args")
	}
	return c.ValidateFlagGroups()
}

// oneJob says that c needs the ID of one job.
func oneJob(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs the ID or the name of one job: parley cron list shows them", c.Name())
	}
	return nil
}

// flags has c take what a job is like.
func (v *cronCommand) flags(c *cobra.Command) {
	f := c.Flags()
	f.Func("every", "run every so much `time`, such as 30m", func(text string) error {
		every, err := time.ParseDuration(text)
		v.ask.Every = max(int(every/time.Second), 1)
		return err
	})
	f.StringVar(&v.ask.Cron, "cron", "", "run at the times of these five cron `fields`, such as \"0 9 * * 1-5\"")
	f.StringVar(&v.ask.At, "at", "", "run once, at this `time`, such as 2026-12-24T18:00")
	f.StringVar(&v.ask.Zone, "tz", "", "the time `zone` of --cron, such as Europe/Berlin")
	f.StringVar(&v.ask.Name, "name", "", "a `name` for the list")
	yesNo := func(name, help string, to **bool) {
		f.BoolFunc(name, help, func(text string) error {
			is, err := strconv.ParseBool(text)
			*to = &is
			return err
		})
	}
	yesNo("isolated", "start each run without the conversation of the chat", &v.ask.Isolated)
	yesNo("quiet", "say nothing when there is nothing to say", &v.ask.Quiet)
	f.StringVar(&v.ask.Model, "model", "", "the `name` of the model that answers (default: the chat's)")
	f.StringVar(&v.ask.Missed, "missed", "", "`what` to do about runs missed while no gateway ran: once or skip")
	f.StringVar(&v.ask.Tool, "tool", "", "call this `tool` instead of asking a model …")
	f.Func("args", "… with these arguments, a `JSON` object", func(text string) error {
		if json.Unmarshal([]byte(text), &v.ask.Args) != nil {
			return errors.New("it must be a JSON object")
		}
		return nil
	})
	c.MarkFlagsMutuallyExclusive("every", "cron", "at")
}

// asFlags names flags in an error of the gateway, which names the fields they become.
var asFlags = strings.NewReplacer("every_seconds must", "--every, in seconds, must", "every_seconds", "--every", "cron_expr", "--cron", "tz can", "--tz can",
	"into tz", "into --tz", "at is in", "--at is in", "missed must", "--missed must", "args can", "--args can", "with tool", "with --tool", "with force", "with --force")

// jobPath is where the job of that ID is asked for.
func jobPath(id string) string { return "/api/cron/" + url.PathEscape(id) }

// findJob returns the ID of the job that ref means.
func (a *admin) findJob(ctx context.Context, ref string) (string, error) {
	var all struct{ Jobs []web.Job }
	if err := a.ask(ctx, "GET", "/api/cron", nil, &all); err != nil {
		return "", err
	}
	return jobs.Find(records(all.Jobs), ref)
}

// none says of an errNone which job it was.
func none(id string, err error) error {
	if errors.Is(err, errNone) {
		return fmt.Errorf("job %s not found: parley cron list shows what there is", id)
	}
	return err
}

// runNow is the command that runs a job besides its schedule.
func (v *cronCommand) runNow() *cobra.Command {
	force := false
	c := v.program.with("run ID", "Run a job now", oneJob, func(ctx context.Context, a *admin, args []string) error {
		id, err := a.findJob(ctx, args[0])
		if err != nil {
			return err
		}
		path, done := jobPath(id)+"/run", "Running job"
		if force {
			path += "?force=1"
		}
		if err := a.ask(ctx, "POST", path, nil, nil); err != nil {
			return none(args[0], err)
		}
		if !a.running {
			done = "A gateway will run job"
		}
		_, err = fmt.Fprintln(v.program.stdout, done, id)
		return err
	})
	c.Flags().BoolVar(&force, "force", false, "run it even if it is disabled")
	return c
}

// verb is a command that does one thing to a job.
func (v *cronCommand) verb(use, short, done, method, path string, say any) *cobra.Command {
	return v.program.with(use+" ID", short, oneJob, func(ctx context.Context, a *admin, args []string) error {
		id, err := a.findJob(ctx, args[0])
		if err != nil {
			return err
		}
		if err = a.ask(ctx, method, jobPath(id)+path, say, nil); err == nil {
			_, err = fmt.Fprintln(v.program.stdout, done, id)
		}
		return none(args[0], err)
	})
}

// send sends what the flags and the words of message say, and prints what became of it.
func (v *cronCommand) send(ctx context.Context, a *admin, done, method, path string, message []string) error {
	v.ask.Message = strings.Join(message, " ")
	var j web.Job
	if err := a.ask(ctx, method, path, v.ask, &j); errors.Is(err, errNone) {
		return err
	} else if err != nil {
		return errors.New(asFlags.Replace(err.Error()))
	}
	if v.json {
		return json.NewEncoder(v.program.stdout).Encode(j)
	}
	where := ""
	if method == http.MethodPost {
		where = "; its answers go to " + chat.OneLine(j.To)
	}
	_, err := fmt.Fprintf(v.program.stdout, "%s %s%s\n", done, jobs.English(a.zone).Title(record(j)), where)
	return err
}

// record returns of j what [jobs.Texts] tells.
func record(j web.Job) scheduler.Job {
	at, _ := time.Parse(time.RFC3339, j.At) // "" is never
	return scheduler.Job{
		ID: j.ID, Name: j.Name, Off: !*j.Enabled, Why: j.Why, Next: j.Next, Runs: j.Runs,
		Schedule: scheduler.Schedule{Every: time.Duration(j.Every) * time.Second, Cron: j.Cron, At: at, Zone: j.Zone},
	}
}

// records is record of each.
func records(listed []web.Job) []scheduler.Job {
	var all []scheduler.Job
	for _, j := range listed {
		all = append(all, record(j))
	}
	return all
}

// list prints all jobs, or how the one that id means went.
func (v *cronCommand) list(ctx context.Context, a *admin, id []string) error {
	var all struct{ Jobs []web.Job }
	if err := a.ask(ctx, "GET", "/api/cron", nil, &all); err != nil {
		return err
	}
	if len(id) > 0 {
		only, err := jobs.Find(records(all.Jobs), id[0])
		if err != nil {
			return err
		}
		all.Jobs = slices.DeleteFunc(all.Jobs, func(j web.Job) bool { return j.ID != only })
	}
	say := jobs.English(a.zone)
	switch {
	case len(id) > 0 && len(all.Jobs) == 0:
		return none(id[0], errNone)
	case v.json:
		return json.NewEncoder(v.program.stdout).Encode(all.Jobs)
	case len(id) > 0:
		_, err := fmt.Fprintln(v.program.stdout, say.History(record(all.Jobs[0])))
		return err
	case len(all.Jobs) == 0:
		_, err := fmt.Fprintln(v.program.stdout, say.List(nil, chat.Address{}))
		return err
	}
	return v.program.table(func(line func(...any)) {
		for _, j := range all.Jobs {
			r := record(j)
			line(j.ID, chat.OneLine(j.Name), r.Schedule, chat.OneLine(j.To), say.NextRun(r), say.LastRun(r))
		}
	})
}
