package catalog

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/tools"
)

const (
	findDescription = "Finds tools of MCP servers by what they do, or by name, and returns their descriptions and " +
		"arguments. There are too many to list them all. Look here before you say that you cannot do something, and " +
		"call what you find with " + CallName + ".\n\n" +
		"The servers, with how many tools they have and the names of these; the whole name of a tool is " +
		"mcp_SERVER_NAME:\n"

	// maxFoundText is how long what is found may be, in bytes, unless the first tool is longer.
	maxFoundText = 12_000

	// maxSummary is how much of a description is shown in lists, in characters.
	maxSummary = 100
)

// findArgs are the arguments of mcp_find.
type findArgs struct {
	Query  string `json:"query,omitempty" jsonschema:"words for what the tool does, or names; empty: list all"`
	Server string `json:"server,omitempty" jsonschema:"only tools of this server"`
	Limit  int    `json:"limit,omitempty" jsonschema:"how many tools" limit:"min=1 max=20 default=5"`
}

// findTool returns mcp_find, which finds those of offered that a person may use. What it returns is no
// more untrusted than a list of all tools would be: a server's changes are approved before any of it is
// offered.
func (c *Catalog) findTool(offered []tools.Tool) tools.Tool {
	t := tools.New(FindName, findDescription+indexOf(offered),
		func(_ context.Context, call tools.Call, in findArgs) (tools.Result, error) {
			return c.find(offered, call, in), nil
		})
	t.Category = category
	t.ReadOnly = true
	t.Repeatable = true
	return t
}

// find answers a call of mcp_find.
func (c *Catalog) find(offered []tools.Tool, call tools.Call, in findArgs) tools.Result {
	server := strings.TrimPrefix(strings.TrimSpace(in.Server), prefix)
	servers := map[string]bool{}
	total := 0
	usable := func(t tools.Tool) bool {
		return t.May(call.From) && (server == "" || tools.Letters(serverOf(t)) == tools.Letters(server))
	}
	for _, t := range offered {
		if t.May(call.From) {
			servers[serverOf(t)] = true
		}
		if usable(t) {
			total++
		}
	}
	if total == 0 {
		return tools.Failf(tools.CodeInvalid, "there is no server %q; there are: %s",
			chat.Clip(server, 100, "…"), strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
	}
	if strings.TrimSpace(in.Query) == "" {
		return tools.Result{Text: listOf(offered, usable)}
	}
	found := c.searchableOf(offered).search(in.Query, offered, usable)
	if len(found) == 0 {
		const text = "None of %d tools has these words. Try others, or leave the query out for a list."
		return tools.Result{Text: fmt.Sprintf(text, total)}
	}
	rest := max(len(found)-max(in.Limit, 1), 0)
	return tools.Result{Text: describe(found[:len(found)-rest])}
}

// describe tells the model what there is to know of tools, the best first.
func describe(found []tools.Tool) string {
	var b strings.Builder
	var others []string
	for i, t := range found {
		text := fmt.Sprintf("## %s\n\n%s\n\nArguments: %s\n\n", t.Name, t.Description, t.Schema)
		if i > 0 && b.Len()+len(text) > maxFoundText {
			others = append(others, t.Name)
			continue
		}
		b.WriteString(text)
	}
	if len(others) > 0 {
		fmt.Fprintf(&b, "Found as well, and too long to be shown here: %s. Find each by its name alone.",
			strings.Join(others, ", "))
	}
	return strings.TrimSpace(b.String())
}

// listOf lists the names of tools, with what they do.
func listOf(offered []tools.Tool, usable func(tools.Tool) bool) string {
	var b strings.Builder
	left := 0
	for _, t := range offered {
		if !usable(t) {
			continue
		}
		what, _, _ := strings.Cut(chat.Inline(t.Description, maxSummary), ". ")
		line := fmt.Sprintf("- %s: %s\n", t.Name, what)
		if left > 0 || b.Len()+len(line) > maxFoundText {
			left++
			continue
		}
		b.WriteString(line)
	}
	if left > 0 {
		fmt.Fprintf(&b, "- and %d more: find them by what they do", left)
	}
	return strings.TrimSpace(b.String())
}
