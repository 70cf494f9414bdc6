package commands

import (
	"context"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"parley/admin"
)

// mcp returns the commands for MCP servers.
func (s commands) mcp() *cobra.Command {
	all := newGroup("mcp", "See, test and approve MCP servers")
	oneName := func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return errors.New("give the NAME of one server: parley mcp list shows what there is")
		}
		return nil
	}
	all.AddCommand(
		s.command("list", "List the MCP servers of the config, and how they are", cobra.NoArgs,
			func(ctx context.Context, c *admin.Client, _ []string) error { return c.PrintMCPServers(ctx) }),
		s.command("test NAME", "Connect an MCP server and list what it offers", oneName,
			func(ctx context.Context, c *admin.Client, args []string) error { return c.TestMCPServer(ctx, args[0]) }),
		s.command("approve NAME [CODE]", "Show what an MCP server has changed, and approve it", cobra.RangeArgs(1, 2),
			func(ctx context.Context, c *admin.Client, args []string) error {
				return c.ApproveMCPServer(ctx, args[0], append(args, "")[1], os.Stdin)
			}),
	)
	return all
}
