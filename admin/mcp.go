package admin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"

	"parley/chat"
	"parley/tools/mcp/manage"
)

// mcpPath is where the gateway is asked about MCP servers.
const mcpPath = "/api/admin/mcp-servers"

// MCPServers returns the states of all MCP servers.
func (c *Client) MCPServers(ctx context.Context) ([]manage.Status, error) {
	var all struct{ Data []manage.Status }
	err := c.Ask(ctx, "GET", mcpPath, nil, &all)
	return all.Data, err
}

// PrintMCPServers prints the states of all MCP servers.
func (c *Client) PrintMCPServers(ctx context.Context) error {
	all, err := c.MCPServers(ctx)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		_, err := fmt.Fprintln(c.Out, "There are none: tools.mcpServers in the config names them.")
		return err
	}
	t := c.newTable()
	for _, s := range all {
		name := s.Name
		if s.Person != "" {
			name += " (" + string(s.Person) + ")"
		}
		note := chat.OneLine(s.LastError)
		if s.Changes > 0 {
			note = fmt.Sprintf("%d to approve: parley mcp approve %s", s.Changes, s.Name)
		}
		calls := fmt.Sprintf("%d calls, %d failed, %d ms", s.Calls, s.Failures, s.LatencyMS)
		t.row(chat.OneLine(name), s.Phase, fmt.Sprintf("%d tools", s.Tools), calls, note)
	}
	return t.flush()
}

// TestMCPServer connects an MCP server, and prints what it offers. The error says why it could not.
func (c *Client) TestMCPServer(ctx context.Context, name string) error {
	var r struct{ Data manage.Report }
	if err := c.Ask(ctx, "POST", mcpPath+"/test", map[string]string{"name": name}, &r); err != nil {
		return explainNoServer(err)
	}
	for _, s := range r.Data.Status {
		if s.LastError != "" {
			return fmt.Errorf("%s is not connected: %s", name, chat.OneLine(s.LastError))
		}
	}
	t := c.newTable()
	for _, o := range r.Data.Offers {
		const most = 100 // characters
		t.row(o.Kind, o.Name, chat.Clip(chat.OneLine(o.Description), most, "…"))
	}
	if err := t.flush(); err != nil {
		return err
	}
	works := fmt.Sprintf("%s works: it offers %d tools, resources and prompts", name, len(r.Data.Offers))
	if n := len(r.Data.Pending.Changes); n > 0 {
		works += fmt.Sprintf("; %d changes are withheld until they are approved: parley mcp approve %s", n, name)
	}
	_, err := fmt.Fprintln(c.Out, works)
	return err
}

// ApproveMCPServer prints what an MCP server has changed, and approves exactly that if the answer that is
// read from in is yes. With a code, which was printed before, it asks nothing.
func (c *Client) ApproveMCPServer(ctx context.Context, name, code string, in io.Reader) error {
	var r struct{ Data manage.Report }
	path := mcpPath + "/server?" + url.Values{"name": {name}}.Encode()
	if err := c.Ask(ctx, "GET", path, nil, &r); err != nil {
		return explainNoServer(err)
	}
	p := r.Data.Pending
	if len(p.Changes) == 0 {
		return fmt.Errorf("nothing of %s waits for approval", name)
	}
	if code == "" {
		if err := c.printChanges(r.Data); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "\nLet the agent use %s as it is shown here? [y/N] ", name)
		line, _ := bufio.NewReader(in).ReadString('\n') // no answer is no
		if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
			fmt.Fprintln(c.Out)
			return fmt.Errorf("nothing was approved; later: parley mcp approve %s %s", name, p.Code)
		}
		code = p.Code
	}
	order := map[string]string{"name": name, "code": strings.ToLower(code)}
	if err := c.Ask(ctx, "POST", mcpPath+"/approve", order, nil); err != nil {
		return explainNoServer(err)
	}
	_, err := fmt.Fprintf(c.Out, "Approved: %s is used as it is now.\n", name)
	return err
}

// printChanges prints what waits for approval.
func (c *Client) printChanges(r manage.Report) error {
	if r.Pending.Damaged {
		fmt.Fprintln(c.Out, "What was approved earlier cannot be read any more: all of it waits.")
	}
	if r.Pending.Before != "" {
		const text = "The entry in the config was changed since the last approval. Before, and now:"
		fmt.Fprintf(c.Out, "%s\n\n%s\n%s\n", text, r.Pending.Before, r.Pending.Command)
	}
	for i, change := range r.Pending.Changes {
		fmt.Fprintf(c.Out, "%s\n\n%s\n", r.Summary[i], change.Diff)
	}
	return nil
}

// explainNoServer returns err or, if it says that there is no such server, what to do.
func explainNoServer(err error) error {
	if errors.Is(err, ErrNotFound) {
		return errors.New(cmp.Or(strings.TrimPrefix(err.Error(), ErrNotFound.Error()+": "), err.Error()) +
			"; parley mcp list shows what there is")
	}
	return err
}
