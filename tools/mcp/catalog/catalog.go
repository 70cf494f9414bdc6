// Package catalog keeps the list of tools short that models are given. When the tools of a turn take a tenth
// of the model's window or more, those of MCP servers are left out of the list. In their place stand
// mcp_find, which finds them, and mcp_call, which stands for calls of them.
//
// Nothing but the list changes: rules, policy, approval, statistics and people see the call of the inner
// tool (see [tools.Kit.Inner]), which the model may also call by its name.
package catalog

import (
	"strings"
	"sync"

	"parley/tools"
)

// The tools that stand for the others.
const (
	FindName = "mcp_find"
	CallName = "mcp_call"
)

const (
	// windowShare is which part of a model's window the list of tools may take.
	windowShare = 10

	// prefix begins the categories of the tools of MCP servers.
	prefix = "mcp_"

	category = "mcp" // of mcp_find and mcp_call
)

// A Catalog makes Kits short. It keeps what was last searched, so that it need not be read in each turn.
// The zero Catalog is ready for use, also by several turns at once.
type Catalog struct {
	mu   sync.Mutex
	kept []*searchable // last used first
}

// Shorten returns k or, if it has tools of MCP servers, a Kit with mcp_find and mcp_call besides. These
// are listed instead of the tools of MCP servers if all tools together take too much of the window that
// s tells of, or earlier requests had a short list. k must not be used any more.
func (c *Catalog) Shorten(k *tools.Kit, s tools.Scope) *tools.Kit {
	all := k.Tools()
	var offered []tools.Tool
	for _, t := range all {
		if isOffered(t) {
			offered = append(offered, t)
		}
	}
	if len(offered) == 0 {
		return k
	}
	find := c.findTool(offered)
	call := callTool()
	if isShort(s, all, offered, find, call) {
		for i := range all {
			if isOffered(all[i]) {
				all[i].Through = CallName
			}
		}
	} else {
		find.Hidden = true // models that had a short list go on with it
		call.Hidden = true
	}
	return k.With(append(all, find, call))
}

// isOffered reports whether t is a tool of an MCP server that models are told of.
func isOffered(t tools.Tool) bool {
	return strings.HasPrefix(t.Category, prefix) && t.AliasOf == "" && !t.Hidden
}

// isShort reports whether offered are to be left out of the list, with find and call in their place.
func isShort(s tools.Scope, all, offered []tools.Tool, find, call tools.Tool) bool {
	switch {
	case s.Window <= 0:
		return false
	case s.Short:
		return true
	}
	var listed []tools.Tool
	for _, t := range all {
		if t.AliasOf == "" && !t.Hidden {
			listed = append(listed, t)
		}
	}
	return sizeOf(listed...) >= s.Window/windowShare && sizeOf(offered...) > sizeOf(find, call)
}

// sizeOf returns the estimated tokens of tools in a request, a quarter of their bytes. What a model's tokens
// really are is learned by and by, and the list must not change because of that.
func sizeOf(list ...tools.Tool) int {
	bytes := 0
	for _, t := range list {
		bytes += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	return bytes / 4
}

// serverOf returns the server of a tool, as models know it.
func serverOf(t tools.Tool) string { return strings.TrimPrefix(t.Category, prefix) }

// shortName returns the name of a tool without its server.
func shortName(t tools.Tool) string { return strings.TrimPrefix(t.Name, t.Category+"_") }
