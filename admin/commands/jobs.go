package commands

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/web"
)

// A jobCommand is one run of parley cron, with its flags.
type jobCommand struct {
	asJSON bool
	order  web.Order
}

// jobs returns the commands for scheduled jobs.
func (s commands) jobs() *cobra.Command {
	j := &jobCommand{}
	all := NewGroup("cron", "Manage scheduled jobs")
	all.PersistentFlags().BoolVar(&j.asJSON, "json", false, "print JSON")
	add := s.command("add [MESSAGE…]", "Add a job: what the agent is to do, and when", j.checkAddArgs, j.add)
	RequiredVar(add.Flags(), &j.order.To, "to", "",
		"the `chat` that gets the answers, such as telegram:42 (default: where the owner can be written to)")
	edit := s.command("edit ID [MESSAGE…]", "Change what is given of a job", j.checkEditArgs, j.edit)
	j.addFlags(add)
	j.addFlags(edit)
	add.MarkFlagsOneRequired("when", "every", "cron", "at")
	all.AddCommand(add, edit, s.runJob(), s.rehearse(j),
		s.command("list", "List the jobs by their next run", cobra.NoArgs,
			func(ctx context.Context, c *admin.Client, _ []string) error { return c.PrintJobs(ctx, j.asJSON) }),
		s.command("history ID", "Show the past runs of a job", checkOneJob,
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.PrintHistory(ctx, args[0], j.asJSON)
			}),
		s.confirmed(s.command("remove ID", "Remove a job", checkOneJob,
			func(ctx context.Context, c *admin.Client, args []string) error { return c.RemoveJob(ctx, args[0]) }),
			"Remove the job %s?"),
		s.command("enable ID", "Enable a job", checkOneJob,
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.EnableJob(ctx, args[0], true)
			}),
		s.command("disable ID", "Disable a job", checkOneJob,
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.EnableJob(ctx, args[0], false)
			}),
	)
	return all
}

// runJob returns the command that runs a job besides its schedule.
func (s commands) runJob() *cobra.Command {
	force := false
	c := s.command("run ID", "Run a job now", checkOneJob,
		func(ctx context.Context, c *admin.Client, args []string) error { return c.RunJob(ctx, args[0], force) })
	c.Flags().BoolVar(&force, "force", false, "run it even if it is disabled")
	return c
}

// rehearse returns the command that looks at the coming days.
func (s commands) rehearse(j *jobCommand) *cobra.Command {
	o := admin.Rehearsal{In: s.config.In}
	c := s.command("rehearse", "Show what the jobs of the coming days would do, without doing it", cobra.NoArgs,
		func(ctx context.Context, c *admin.Client, _ []string) error {
			o.AsJSON = j.asJSON
			return o.Print(ctx, c)
		})
	c.Flags().IntVar(&o.Days, "days", 7, "look so many `days` ahead")
	c.Flags().BoolVar(&o.Ask, "ask", false, "ask the model once for each job: costs tokens")
	c.Flags().BoolVar(&o.Yes, "yes", false, "ask the model without asking you first")
	return c
}

func (j *jobCommand) add(ctx context.Context, c *admin.Client, words []string) error {
	j.order.Message = strings.Join(words, " ")
	return c.AddJob(ctx, j.order, j.asJSON)
}

func (j *jobCommand) edit(ctx context.Context, c *admin.Client, args []string) error {
	j.order.Message = strings.Join(args[1:], " ")
	return c.EditJob(ctx, args[0], j.order, j.asJSON)
}

func (j *jobCommand) checkAddArgs(c *cobra.Command, message []string) error {
	if len(message) == 0 && j.order.Tool == "" {
		return errors.New("add needs a MESSAGE, which says what the agent is to do, or a --tool")
	}
	return c.ValidateFlagGroups()
}

func (j *jobCommand) checkEditArgs(c *cobra.Command, args []string) error {
	if err := checkOneJob(c, args[:min(len(args), 1)]); err != nil {
		return err
	}
	if len(args) == 1 && reflect.ValueOf(j.order).IsZero() {
		return errors.New("edit needs what to change: a MESSAGE, --name, --when, --every, --cron, --at, --tz, " +
			"--isolated, --quiet, --model, --missed, --tool or --args")
	}
	return c.ValidateFlagGroups()
}

// checkOneJob wants the arguments of c to be one job.
func checkOneJob(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%s needs the ID or the name of one job: parley cron list shows them", c.Name())
	}
	return nil
}

// addFlags gives c the flags that say what a job is like.
func (j *jobCommand) addFlags(c *cobra.Command) {
	f := c.Flags()
	o := &j.order
	RequiredVar(f, &o.When, "when", "", "run at these times in plain `words`, such as \"every weekday at 9\"")
	f.Func("every", "run every so much `time`, such as 30m", func(text string) error {
		every, err := time.ParseDuration(text)
		o.Every = max(int(every/time.Second), 1)
		return err
	})
	RequiredVar(f, &o.Cron, "cron", "", "run at the times of these five cron `fields`, such as \"0 9 * * 1-5\"")
	RequiredVar(f, &o.At, "at", "", "run once, at this `time`, such as 2026-12-24T18:00")
	RequiredVar(f, &o.Zone, "tz", "", "the time `zone` of --cron, such as Europe/Berlin")
	RequiredVar(f, &o.Name, "name", "", "a `name` for the list")
	yesNo := func(name, help string, to **bool) {
		f.BoolFunc(name, help, func(text string) error {
			is, err := strconv.ParseBool(text)
			*to = &is
			return err
		})
	}
	yesNo("isolated", "start each run without the conversation of the chat", &o.Isolated)
	yesNo("quiet", "say nothing when there is nothing to say", &o.Quiet)
	RequiredVar(f, &o.Model, "model", "", "the `name` of the model that answers (default: the chat's)")
	RequiredVar(f, &o.Missed, "missed", "", "`what` to do about runs missed while no gateway ran: once or skip")
	RequiredVar(f, &o.Tool, "tool", "", "call this `tool` instead of asking a model …")
	f.Func("args", "… with these arguments, a `JSON` object", func(text string) error {
		if json.Unmarshal([]byte(text), &o.Args) != nil {
			return errors.New("it must be a JSON object")
		}
		return nil
	})
	c.MarkFlagsMutuallyExclusive("when", "every", "cron", "at")
}
