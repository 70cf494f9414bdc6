// Package commands has the commands of the command line that ask a gateway:
// about its state, conversations, scheduled jobs and people.
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/host"
)

// A Config says how the commands reach a gateway, and where they print.
type Config struct {
	Version string
	In      io.Reader
	Out     io.Writer
	Owner   string // whom the command link signs in if it is given no name

	// Open returns a client, which the command closes.
	Open func(ctx context.Context) (*admin.Client, error)
}

// New returns the commands.
func New(c Config) []*cobra.Command {
	s := commands{c}
	return []*cobra.Command{
		s.sessions(), s.jobs(), s.audit(), s.pair(), s.status(), s.usage(), s.backup(),
		s.link(), s.key(), s.replay(), s.mcp(), s.version(),
	}
}

// commands makes the commands.
type commands struct{ config Config }

// A task is what a command does with the gateway.
type task func(ctx context.Context, c *admin.Client, args []string) error

// command returns a command that asks the gateway, whether one runs or not.
func (s commands) command(use, short string, args cobra.PositionalArgs, do task) *cobra.Command {
	run := func(c *cobra.Command, args []string) error {
		ctx, stop := host.UntilSignal(c.Context(), os.Interrupt)
		defer stop()
		client, err := s.config.Open(ctx)
		if err != nil {
			return err
		}
		return errors.Join(do(ctx, client, args), client.Close())
	}
	return &cobra.Command{Use: use, Short: short, Args: args, RunE: run}
}

// version returns the command version.
func (s commands) version() *cobra.Command {
	print := func(*cobra.Command, []string) error {
		_, err := fmt.Fprintln(s.config.Out, "parley", s.config.Version)
		return err
	}
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, RunE: print}
}

// NewGroup returns a command that only has subcommands.
func NewGroup(use, short string) *cobra.Command {
	help := func(c *cobra.Command, _ []string) error { return c.Help() }
	onlyHelp := func(c *cobra.Command, args []string) error {
		if slices.Equal(args, []string{"help"}) {
			return nil
		}
		return cobra.NoArgs(c, args)
	}
	return &cobra.Command{Use: use, Short: short, Args: onlyHelp, RunE: help}
}

// AddStandard adds the commands of cobra to root, which print help and scripts for shells. They refuse what they do
// not know: by themselves they would print help, and succeed.
func AddStandard(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		switch c.Name() {
		case "completion":
			group := NewGroup("completion", "")
			c.Args = group.Args
			c.RunE = group.RunE
		case "help":
			c.Args = func(_ *cobra.Command, args []string) error {
				of, rest, err := root.Find(args)
				if err != nil {
					return err
				}
				return cobra.NoArgs(of, rest)
			}
		}
	}
}

// sessions returns the commands for past conversations.
func (s commands) sessions() *cobra.Command {
	all := NewGroup("sessions", "List, read, search, export and delete past conversations")
	asJSON := false
	all.PersistentFlags().BoolVar(&asJSON, "json", false, "print JSON")
	list := func(ctx context.Context, c *admin.Client, words []string) error {
		if asJSON {
			return c.PrintAnswer(ctx, admin.SessionsPath(words))
		}
		return c.PrintSessions(ctx, words)
	}
	show := func(ctx context.Context, c *admin.Client, args []string) error {
		return c.PrintSession(ctx, args[0], asJSON)
	}
	all.AddCommand(
		s.command("list", "List conversations, the latest first", cobra.NoArgs, list),
		s.command("search WORDS…", "Search all conversations", cobra.MinimumNArgs(1), list),
		s.command("show SESSION", "Print a conversation with its tool calls", cobra.ExactArgs(1), show),
		s.command("export SESSION", "Print a conversation as Markdown, for a file", cobra.ExactArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error { return c.ExportSession(ctx, args[0]) }),
		s.confirmed(s.command("delete SESSION", "Delete a conversation for good", cobra.ExactArgs(1),
			func(ctx context.Context, c *admin.Client, args []string) error { return c.DeleteSession(ctx, args[0]) }),
			"Delete the conversation %s for good?"),
	)
	return all
}

func (s commands) audit() *cobra.Command {
	asJSON := false
	cmd := s.command("audit", "Show the audit log and verify it", cobra.NoArgs,
		func(ctx context.Context, c *admin.Client, _ []string) error { return c.PrintAudit(ctx, asJSON) })
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s commands) pair() *cobra.Command {
	oneCode := func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New("pair needs one CODE: the one that the bot gave to whoever wants to talk to it")
		}
		return nil
	}
	return s.command("pair CODE", "Approve the person who was given this pairing code", oneCode,
		func(ctx context.Context, c *admin.Client, args []string) error { return c.Pair(ctx, args[0]) })
}

func (s commands) status() *cobra.Command {
	return s.printing("status", "Show the gateway's status", "/api/status", (*admin.Client).PrintStatus)
}

func (s commands) usage() *cobra.Command {
	return s.printing("usage", "Show the tokens used and their cost, by person, model and day", "/api/usage",
		(*admin.Client).PrintUsage)
}

// printing returns a command that prints something, or with --json what the owner's API says of it at path.
func (s commands) printing(use, short, path string, show func(*admin.Client, context.Context) error) *cobra.Command {
	asJSON := false
	cmd := s.command(use, short, cobra.NoArgs, func(ctx context.Context, c *admin.Client, _ []string) error {
		if asJSON {
			return c.PrintAnswer(ctx, path)
		}
		return show(c, ctx)
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (s commands) backup() *cobra.Command {
	return s.command("backup FILE", "Write a backup of everything to a new file", cobra.ExactArgs(1),
		func(ctx context.Context, c *admin.Client, args []string) error { return c.Backup(ctx, args[0]) })
}

func (s commands) link() *cobra.Command {
	return s.command("link [NAME]", "Create a one-time sign-in link, for the owner or to invite NAME",
		cobra.MaximumNArgs(1),
		func(ctx context.Context, c *admin.Client, args []string) error {
			person := s.config.Owner
			if len(args) > 0 {
				person = args[0]
			}
			return c.PrintLink(ctx, person)
		})
}

func (s commands) key() *cobra.Command {
	key := s.command("key NAME [PREFIX]", "Create an API key for a person", cobra.RangeArgs(1, 2),
		func(ctx context.Context, c *admin.Client, args []string) error {
			return c.PrintKey(ctx, args[0], strings.Join(args[1:], ""))
		})
	key.Long = "Create an API key for a person who was invited with parley link NAME.\n" +
		"A key with a PREFIX sees only the conversations that begin with it, so that two programs of one person,\n" +
		"such as tablet and desk, do not mix theirs."
	return key
}
