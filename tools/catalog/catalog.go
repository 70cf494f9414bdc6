// Package catalog keeps the list of tools short that models are given, because every request has it. Left out
// are tools that are rarely used, with a lean prompt all but the basic ones, and the tools of MCP servers when
// all tools take a tenth of the model's window or more. In their place stand find_tool, which finds them, and
// call_tool, which stands for calls of them.
//
// Nothing but the list changes: rules, policy, approval, statistics and people see the call of the inner
// tool (see [tools.Kit.Inner]), which the model may also call by its name.
package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"parley/tools"
)

// The tools that stand for the others.
const (
	FindName = "find_tool"
	CallName = "call_tool"
)

const (
	// windowShare is which part of a model's window the list may take with the tools of MCP servers.
	windowShare = 10

	// prefix begins the categories of the tools of MCP servers.
	prefix = "mcp_"

	category = "tools" // of find_tool and call_tool
)

// A Catalog makes Kits short. It keeps what it made of the lists and searches that came last, so that this need
// not be done in each turn. The zero Catalog is ready for use, also by several turns at once.
type Catalog struct {
	plans atomic.Pointer[[]*plan] // of the lists that came last, newest first; the slice is never changed

	mu   sync.Mutex
	kept []*searchable // last used first
}

// Shorten returns k or, if it has tools that a model may have to find, a Kit with find_tool and call_tool
// besides. They are listed in the place of the tools that are left out. The tools of MCP servers are left out
// if the list would take too much of the window that s tells of, or if earlier requests had a list without
// them. k must not be used any more.
func (c *Catalog) Shorten(k *tools.Kit, s tools.Scope) *tools.Kit {
	all := k.Take()
	p := c.planOf(all, s)
	if p.keepsAll {
		return k
	}
	for i := range all {
		if t := &all[i]; p.leavesOut[classOf(t, s.Lean)] {
			t.Through = CallName
		}
	}
	find := p.find
	find.Run = func(_ context.Context, call tools.Call) (tools.Result, error) {
		isFixed := func(t tools.Tool) bool { return classOf(&t, s.Lean) < rare }
		return c.find(slices.DeleteFunc(slices.Clone(all), isFixed), call), nil
	}
	all = append(all, find, p.call)
	if p.hasServers {
		all = append(all, formerly("mcp_find", find), formerly("mcp_call", p.call))
	}
	next := k.With(all)
	next.Short = p.leavesOut[offered]
	return next
}

// A class of tools is listed or left out as a whole.
type class int

const (
	unlisted class = iota // other names, and what is only there for earlier conversations
	usual                 // always listed
	rare                  // left out, to be found
	offered               // by MCP servers: left out if there are too many
)

// classOf returns the class of t, in a list for a lean prompt or an ordinary one.
func classOf(t *tools.Tool, isLean bool) class {
	switch {
	case t.AliasOf != "" || t.Hidden:
		return unlisted
	case strings.HasPrefix(t.Category, prefix):
		return offered
	case t.Use == tools.Rare || isLean && t.Use != tools.Basic:
		return rare
	}
	return usual
}

// formerly returns t under a name that it had in an earlier release: conversations and the instructions of
// subagents may still have it.
func formerly(name string, t tools.Tool) tools.Tool {
	t.AliasOf = t.Name
	t.Name = name
	t.Hidden = true
	return t
}

// serverOf returns the server of a tool as models know it, "" for a tool of Parley's own.
func serverOf(t *tools.Tool) string {
	if !strings.HasPrefix(t.Category, prefix) {
		return ""
	}
	return strings.TrimPrefix(t.Category, prefix)
}

// shortName returns the name of a tool without its server.
func shortName(t *tools.Tool) string {
	if serverOf(t) == "" {
		return t.Name
	}
	return strings.TrimPrefix(t.Name, t.Category+"_")
}
