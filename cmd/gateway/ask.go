package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/config"
	"parley/host"
	"parley/redact"
)

// An adminTask is what a command does with the gateway.
type adminTask func(ctx context.Context, c *admin.Client, args []string) error

// gatewayCommand returns a command that asks the gateway, whether one runs or not.
func (p *program) gatewayCommand(use, short string, args cobra.PositionalArgs, do adminTask) *cobra.Command {
	run := func(c *cobra.Command, args []string) error {
		ctx, stop := host.UntilSignal(c.Context(), os.Interrupt)
		defer stop()
		client, err := p.admin(ctx)
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, client, args), client.Close())
	}
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: run}
}

// commandGroup returns a command that only has subcommands.
func commandGroup(use, short string) *cobra.Command {
	help := func(c *cobra.Command, _ []string) error { return c.Help() }
	return &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: help}
}

// gatewayCommands returns the commands that ask the gateway.
func (p *program) gatewayCommands() []*cobra.Command {
	oneCode := func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New("pair needs one CODE: the one that the bot gave to whoever wants to talk to it")
		}
		return nil
	}
	return []*cobra.Command{
		p.sessionsCommand(),
		p.cronCommand(),
		p.gatewayCommand("audit", "Show the audit log and verify it", cobra.NoArgs,
			func(ctx context.Context, c *admin.Client, _ []string) error { return c.PrintAudit(ctx) }),
		p.gatewayCommand("pair CODE", "Approve the person who was given this pairing code", oneCode,
			func(ctx context.Context, c *admin.Client, args []string) error { return c.Pair(ctx, args[0]) }),
		p.gatewayCommand("status", "Show the gateway's status", cobra.NoArgs,
			func(ctx context.Context, c *admin.Client, _ []string) error { return c.PrintStatus(ctx) }),
		p.gatewayCommand("backup FILE", "Write a backup of everything to a new file", cobra.ExactArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error { return c.Backup(ctx, args[0]) }),
		p.gatewayCommand("link [NAME]", "Create a one-time sign-in link, for the owner or to invite NAME",
			cobra.MaximumNArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error {
				person := config.WebOwner
				if len(args) > 0 {
					person = args[0]
				}
				return c.PrintLink(ctx, person)
			}),
		p.gatewayCommand("key NAME [PREFIX]", "Create an API key for a person; its sessions begin with PREFIX",
			cobra.RangeArgs(1, 2),
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.PrintKey(ctx, args[0], strings.Join(args[1:], ""))
			}),
	}
}

// sessionsCommand returns the commands for past conversations.
func (p *program) sessionsCommand() *cobra.Command {
	sessions := commandGroup("sessions", "List, read, search, export and delete past conversations")
	list := func(ctx context.Context, c *admin.Client, words []string) error { return c.PrintSessions(ctx, words) }
	sessions.AddCommand(
		p.gatewayCommand("list", "List conversations, the latest first", cobra.NoArgs, list),
		p.gatewayCommand("search WORDS…", "Search all conversations", cobra.MinimumNArgs(1), list),
		p.gatewayCommand("show SESSION", "Print a conversation with its tool calls", cobra.ExactArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error { return c.PrintSession(ctx, args[0]) }),
		p.gatewayCommand("export SESSION", "Print a conversation as Markdown, for a file", cobra.ExactArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error { return c.ExportSession(ctx, args[0]) }),
		p.gatewayCommand("delete SESSION", "Delete a conversation for good", cobra.ExactArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error { return c.DeleteSession(ctx, args[0]) }),
	)
	return sessions
}

// restoreCommand returns the command that puts a backup in the place of the data.
func (p *program) restoreCommand() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "restore FILE", Short: "Restore a backup, while no gateway runs", Args: cobra.ExactArgs(1)}
	c.Flags().BoolVar(&force, "force", false, "move existing data to another folder first")
	c.RunE = func(c *cobra.Command, args []string) error {
		cfg, err := p.load()
		if err != nil {
			return err
		}
		log := redact.NewLog(p.stderr, &p.level, &p.redact, new(redact.Recent))
		report, err := restorer(cfg, log).Restore(c.Context(), args[0], force)
		if err != nil {
			return err
		}
		report.Print(p.stdout, cfg.Zone())
		if cfg.Found {
			fmt.Fprintln(p.stdout, "kept "+cfg.File+"; the config of the backup is not put in its place")
		}
		return nil
	}
	return c
}
