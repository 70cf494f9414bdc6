package admin

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"parley/chat"
	"parley/tools/mcp/manage"
	"parley/tools/mcp/signin"
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
		if s.SignIn != nil {
			note = strings.TrimPrefix(note+"; "+c.signedIn(s.SignIn), "; ")
		}
		calls := "no calls"
		if s.Calls > 0 {
			calls = fmt.Sprintf("%s, %d failed, %d ms", count(s.Calls, "call"), s.Failures, s.LatencyMS)
		}
		t.row(chat.OneLine(name), s.Phase, count(s.Tools, "tool"), calls, note)
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
		description := chat.OneLine(o.Description) // whole: it tells the model what to do
		if o.Withheld {
			description = "(withheld) " + description
		}
		t.row(o.Kind, o.Name, description)
		for _, p := range o.Parameters {
			t.row("", "", "  "+chat.OneLine(p.String()))
		}
	}
	if err := t.flush(); err != nil {
		return err
	}
	if says := r.Data.Instructions; says != "" {
		fmt.Fprintf(c.Out, "It tells the model: %s\n", chat.OneLine(says))
	}
	works := name + " works: it offers " + countOffers(r.Data.Offers)
	switch n := len(r.Data.Pending.Changes); {
	case r.Data.Pending.First:
		works += "; the first message that needs it approves exactly this"
	case n > 0:
		works += fmt.Sprintf("; withheld until it is approved: %s: parley mcp approve %s", count(n, "change"), name)
	}
	_, err := fmt.Fprintln(c.Out, works)
	return err
}

// countOffers says how many there are of each kind.
func countOffers(all []manage.Offer) string {
	counts := map[string]int{}
	for _, o := range all {
		counts[o.Kind]++
	}
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, count(counts[kind], kind))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing")
}

// ApproveMCPServer prints what an MCP server has changed, and approves exactly that if the answer that is
// read from in is yes, or the changes whose numbers it is. With a code, which was printed before, and maybe
// numbers after it, it asks nothing.
func (c *Client) ApproveMCPServer(ctx context.Context, name string, code []string, in io.Reader) error {
	var r struct{ Data manage.Report }
	path := mcpPath + "/server?" + url.Values{"name": {name}}.Encode()
	if err := c.Ask(ctx, "GET", path, nil, &r); err != nil {
		return explainNoServer(err)
	}
	p := r.Data.Pending
	if len(p.Changes) == 0 {
		return fmt.Errorf("nothing of %s waits for approval", name)
	}
	if len(code) == 0 {
		if err := c.printChanges(r.Data); err != nil {
			return err
		}
		fmt.Fprintf(c.Out, "\nLet the agent use %s as it is shown here? [y/N, or the numbers of some changes] ", name)
		line, _ := bufio.NewReader(in).ReadString('\n') // no answer is no
		code = []string{p.Code}
		answer := strings.ToLower(strings.TrimSpace(line))
		_, noNumbers := numbersOf(strings.Fields(answer))
		switch {
		case answer == "y", answer == "yes":
		case answer == "", noNumbers != nil:
			fmt.Fprintln(c.Out)
			return fmt.Errorf("nothing was approved; later: parley mcp approve %s %s", name, p.Code)
		default:
			code = append(code, strings.Fields(answer)...)
		}
	}
	numbers, err := numbersOf(code[1:])
	if err != nil {
		return err
	}
	order := map[string]any{"name": name, "code": strings.ToLower(code[0]), "numbers": numbers}
	if err := c.Ask(ctx, "POST", mcpPath+"/approve", order, nil); err != nil {
		return explainNoServer(err)
	}
	approved := "all of it"
	if len(numbers) > 0 {
		approved = strings.Join(code[1:], ", ")
	}
	_, err = fmt.Fprintf(c.Out, "Approved of %s: %s.\n", name, approved)
	return err
}

// numbersOf returns the numbers of changes that words are.
func numbersOf(words []string) (numbers []int, err error) {
	for _, word := range words {
		n, err := strconv.Atoi(word)
		if err != nil {
			return nil, fmt.Errorf("%q is not the number of a change", word)
		}
		numbers = append(numbers, n)
	}
	return numbers, nil
}

// signedIn says until when somebody is signed in.
func (c *Client) signedIn(s *manage.SignIn) string {
	text := "signed in"
	if !s.Until.IsZero() {
		text += " until " + s.Until.In(c.Zone).Format("2006-01-02 15:04")
	}
	if s.Renewed {
		text += ", renewed automatically"
	}
	return text
}

// LogInToMCPServer signs the owner in to an MCP server, with what they read from the browser at its end.
func (c *Client) LogInToMCPServer(ctx context.Context, name string, in io.Reader) error {
	var begun struct{ Data signin.Login }
	if err := c.Ask(ctx, "POST", mcpPath+"/login", map[string]string{"name": name}, &begun); err != nil {
		return explainNoServer(err)
	}
	const where = "Open this in a browser, and sign in to %s:\n\n%s\n\n"
	if c.Running() {
		fmt.Fprintf(c.Out, where, name, begun.Data.Link)
		fmt.Fprintf(c.Out, "If your browser cannot reach Parley there, open this instead:\n\n%s\n\n", begun.Data.Direct)
	} else {
		fmt.Fprintf(c.Out, where, name, begun.Data.Direct)
	}
	const what = "At the end the browser shows six digits, or a page that cannot be reached.\n" +
		"Enter the digits, or the address of that page: "
	lines := bufio.NewScanner(in)
	for {
		fmt.Fprint(c.Out, what)
		if !lines.Scan() {
			fmt.Fprintln(c.Out)
			return cmp.Or(lines.Err(), errors.New("nobody was signed in"))
		}
		answer := map[string]string{"id": begun.Data.ID, "answer": lines.Text()}
		err := c.Ask(ctx, "POST", mcpPath+"/login/finish", answer, nil)
		refusal, again := errors.AsType[Refusal](err)
		switch {
		case again && strings.HasPrefix(refusal.Error(), signin.ErrWrongCode.Error()):
			fmt.Fprintln(c.Out, refusal)
		case err != nil:
			return err
		default:
			_, err := fmt.Fprintf(c.Out, "You are signed in to %s.\n", name)
			return err
		}
	}
}

// LogOutOfMCPServer signs the owner out of an MCP server.
func (c *Client) LogOutOfMCPServer(ctx context.Context, name string) error {
	var r struct {
		Data struct {
			Was     bool `json:"was_signed_in"`
			Revoked bool `json:"revoked"`
		}
	}
	if err := c.Ask(ctx, "POST", mcpPath+"/logout", map[string]string{"name": name}, &r); err != nil {
		return explainNoServer(err)
	}
	text := "You are signed out of " + name + "."
	switch {
	case !r.Data.Was:
		return fmt.Errorf("you are not signed in to %s", name)
	case !r.Data.Revoked:
		text += " The service could not be told: remove Parley there in the settings of your account."
	}
	_, err := fmt.Fprintln(c.Out, text)
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
		fmt.Fprintf(c.Out, "%d. %s\n\n%s\n", i+1, r.Summary[i], change.Diff)
	}
	return nil
}

// explainNoServer returns err or, if it says that there is no such server, what to do.
func explainNoServer(err error) error {
	if errors.Is(err, ErrNotFound) {
		return fmt.Errorf("%w; parley mcp list shows what there is", err)
	}
	return err
}
