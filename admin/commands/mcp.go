package commands

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/tools/mcp/serve"
)

// mcp returns the commands for MCP servers, and the one that is one.
func (s commands) mcp() *cobra.Command {
	all := NewGroup("mcp", "See, test and approve MCP servers, and be one")
	errNoName := errors.New("give the NAME of one server: parley mcp list shows what there is")
	oneName := func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errNoName
		}
		return nil
	}
	nameFirst := func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return errNoName
		}
		return nil
	}
	all.AddCommand(
		s.command("list", "List the MCP servers of the config, and how they are", cobra.NoArgs,
			func(ctx context.Context, c *admin.Client, _ []string) error { return c.PrintMCPServers(ctx) }),
		s.command("test NAME", "Connect an MCP server and list what it offers", oneName,
			func(ctx context.Context, c *admin.Client, args []string) error { return c.TestMCPServer(ctx, args[0]) }),
		s.command("approve NAME [CODE [NUMBER…]]", "Show what an MCP server has changed, and approve it, or some of it",
			nameFirst, func(ctx context.Context, c *admin.Client, args []string) error {
				return c.ApproveMCPServer(ctx, args[0], args[1:], s.config.In)
			}),
		s.command("login NAME", "Sign in to an MCP server, as the owner", oneName,
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.LogInToMCPServer(ctx, args[0], s.config.In)
			}),
		s.command("logout NAME", "Sign out of an MCP server", oneName,
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.LogOutOfMCPServer(ctx, args[0])
			}),
		s.serveMCP(),
	)
	return all
}

// serveMCP returns the command that serves an MCP client.
func (s commands) serveMCP() *cobra.Command {
	channel := ""
	var c *cobra.Command
	c = s.command("serve", "Serve an MCP client on standard input and output, through the running gateway",
		cobra.NoArgs,
		func(ctx context.Context, client *admin.Client, _ []string) error {
			transport := client.Transport()
			defer transport.CloseIdleConnections()
			bridge := serve.Bridge{
				Version: s.config.Version,
				URL:     "http://localhost/mcp",
				Client:  &http.Client{Transport: transport},
				In:      io.NopCloser(s.config.In),
				Out:     keepOpen{s.config.Out},
				Log:     slog.New(slog.NewTextHandler(c.ErrOrStderr(), nil)), // clients show it, or keep it in a file
				Channel: channel,
			}
			return bridge.Run(ctx)
		})
	RequiredVar(c.Flags(), &channel, "channel", "",
		"push what is written with /code into this coding session: its `name`, such as code")
	return c
}

// keepOpen is the standard output, which is not closed.
type keepOpen struct{ io.Writer }

// Close implements [io.Closer].
func (keepOpen) Close() error { return nil }
