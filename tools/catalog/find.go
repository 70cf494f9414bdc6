package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/arguments"
)

const (
	findDescription = "Finds more tools, with their arguments, to be called with " + CallName + ". Look here before " +
		"you say that you cannot do something. There are:\n"

	// serversNote follows if some of the tools are those of MCP servers.
	serversNote = "\nThe tools of MCP servers, whose whole names are mcp_SERVER_NAME:\n"

	findSchema = `{"type":"object","properties":{` +
		`"query":{"type":"string","description":"what it does, or its name; empty: list all"}`

	// serversSchema follows in the schema if some of the tools are those of MCP servers.
	serversSchema = `,"server":{"type":"string","description":"only tools of this MCP server"},` +
		`"limit":{"type":"integer","minimum":1,"maximum":20,"default":5}`

	defaultLimit = 5

	// maxFoundText is how long what is found may be, in bytes, unless the first tool is longer.
	maxFoundText = 12_000

	// maxSummary is how much of a description is shown in lists, in characters.
	maxSummary = 100
)

// findArgs are the arguments of find_tool.
type findArgs struct {
	Query  string `json:"query"`
	Server string `json:"server"`
	Limit  int    `json:"limit"`
}

// findTool returns find_tool, which says which tools are left out of the list, and can not be run yet.
func findTool(out []*tools.Tool) tools.Tool {
	schema := findSchema
	if slices.ContainsFunc(out, func(t *tools.Tool) bool { return serverOf(t) != "" }) {
		schema += serversSchema
	}
	return tools.Tool{
		ToolSpec: llm.ToolSpec{
			Name:        FindName,
			Description: findDescription + indexOf(out),
			Schema:      json.RawMessage(schema + "}}"),
		},
		Hints: tools.Hints{Category: category, Use: tools.Basic, ReadOnly: true, Repeatable: true},
	}
}

// find answers a call of find_tool with those of findable that the person may use. What it returns of MCP
// servers is no more untrusted than a list of all tools would be: a server's changes are approved before any
// of it is offered.
func (c *Catalog) find(findable []tools.Tool, call tools.Call) tools.Result {
	in := findArgs{Limit: defaultLimit}
	if problem := arguments.Fill(FindName, call.Input, &in); problem != "" {
		return tools.Failf(tools.CodeInvalid, "%s", problem)
	}
	server := strings.TrimPrefix(strings.TrimSpace(in.Server), prefix)
	servers := map[string]bool{}
	total := 0
	usable := func(t tools.Tool) bool {
		return t.May(call.From) && (server == "" || tools.Letters(serverOf(&t)) == tools.Letters(server))
	}
	for _, t := range findable {
		if serverOf(&t) != "" && t.May(call.From) {
			servers[serverOf(&t)] = true
		}
		if usable(t) {
			total++
		}
	}
	if total == 0 && len(servers) == 0 {
		return tools.Failf(tools.CodeInvalid, "there are no more tools than those that you were given")
	}
	if total == 0 {
		return tools.Failf(tools.CodeInvalid, "there is no server %q; there are: %s",
			chat.Clip(server, 100, "…"), strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
	}
	if strings.TrimSpace(in.Query) == "" {
		return tools.Result{Text: listOf(findable, usable)}
	}
	found := c.searchableOf(findable).search(in.Query, findable, usable)
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
		text := fmt.Sprintf("## %s\n\n%s\n\nArguments: %s\n\n", t.Name, t.Description, t.Spec().Schema)
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
func listOf(findable []tools.Tool, usable func(tools.Tool) bool) string {
	var b strings.Builder
	left := 0
	for _, t := range findable {
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
