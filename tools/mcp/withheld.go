package mcp

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"parley/llm"
	"parley/tools"
)

// msgWithheld is what the model reads of a tool that Config.Review withholds.
const msgWithheld = "the server has changed this tool, or added it, since an owner approved what the server offers. " +
	"An owner must look at the change and approve it first: with the command /mcp, or on the page MCP servers"

// addWithheld adds to offered what l has besides: tools that are not listed, and whose calls answer that
// an owner must approve them (R-S22). Nothing that the server says of them is shown to models.
func (v *supervisor) addWithheld(offered []tools.Tool, l Listing) []tools.Tool {
	names := map[string]bool{}
	for _, t := range offered {
		names[t.Name] = true
	}
	for _, t := range v.makeTools(l) {
		if names[t.Name] {
			continue
		}
		offered = append(offered, tools.Tool{
			ToolSpec: llm.ToolSpec{
				Name:        t.Name,
				Description: "It is withheld.",
				Schema:      json.RawMessage(`{"type":"object"}`),
			},
			Hints: tools.Hints{Category: t.Category, Who: t.Who, Hidden: true, ReadOnly: true},
			Run: func(context.Context, tools.Call) (tools.Result, error) {
				return failure("tool call", "Withheld", msgWithheld), nil
			},
		})
	}
	return offered
}

// countListed returns how many of all are offered, and how many are withheld.
func countListed(all []tools.Tool) (listed, withheld int) {
	for _, t := range all {
		if t.Hidden {
			withheld++
		}
	}
	return len(all) - withheld, withheld
}

// Usable returns the names of the servers whose tools exist in scope, sorted.
func (s *Servers) Usable(scope tools.Scope) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.used)) {
		server := s.used[name]
		if server.Enabled && server.isFor(scope, scope.From) && (!scope.Group || !s.personal(name, server)) {
			names = append(names, name)
		}
	}
	return names
}

// Server returns the entry of the config for a server, nil if there is none.
func (s *Servers) Server(name string) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[name]
}
