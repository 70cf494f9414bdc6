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

// A Catalog makes Kits short. It keeps what was last searched, so that it need not be read in each turn.
// The zero Catalog is ready for use, also by several turns at once.
type Catalog struct {
	mu   sync.Mutex
	kept []*searchable // last used first
}

// Shorten returns k or, if it has tools that a model may have to find, a Kit with find_tool and call_tool
// besides. They are listed in the place of the tools that are left out. The tools of MCP servers are left out
// if the list would take too much of the window that s tells of, or if earlier requests had a list without
// them. k must not be used any more.
func (c *Catalog) Shorten(k *tools.Kit, s tools.Scope) *tools.Kit {
	all := k.Tools()
	var by [offered + 1][]*tools.Tool
	for i := range all {
		of := classOf(&all[i], s.Lean)
		by[of] = append(by[of], &all[i])
	}
	if len(by[rare])+len(by[offered]) == 0 {
		return k
	}
	call := callTool()
	leaveOut := [len(by)]bool{rare: saves(by[rare], &call)}
	listed := size(by[usual]...) + size(by[rare]...)
	if leaveOut[rare] {
		find := findTool(by[rare])
		listed = size(by[usual]...) + size(&find, &call)
	}
	isLong := listed+size(by[offered]...) >= s.Window/windowShare && saves(by[offered], &call)
	if len(by[offered]) > 0 && (s.Short || isLong) {
		leaveOut[rare] = true // the tools that find and call them are there anyway
		leaveOut[offered] = true
	}
	if s.Window <= 0 { // nobody makes requests with this Kit
		clear(leaveOut[:])
	}
	var out []*tools.Tool
	for i := range all {
		if t := &all[i]; leaveOut[classOf(t, s.Lean)] {
			t.Through = CallName
			out = append(out, t)
		}
	}
	find := findTool(out)
	find.Hidden = len(out) == 0 // models that had a short list go on with it
	call.Hidden = len(out) == 0
	find.Run = func(_ context.Context, call tools.Call) (tools.Result, error) {
		isFixed := func(t tools.Tool) bool { return classOf(&t, s.Lean) < rare }
		return c.find(slices.DeleteFunc(slices.Clone(all), isFixed), call), nil
	}
	all = append(all, find, call)
	if len(by[offered]) > 0 {
		all = append(all, formerly("mcp_find", find), formerly("mcp_call", call))
	}
	next := k.With(all)
	next.Short = leaveOut[offered]
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

// saves reports whether the list becomes shorter without some tools, although it then needs find_tool and
// call_tool.
func saves(out []*tools.Tool, call *tools.Tool) bool {
	find := findTool(out)
	return size(out...) > size(&find, call)
}

// formerly returns t under a name that it had in an earlier release: conversations and the instructions of
// subagents may still have it.
func formerly(name string, t tools.Tool) tools.Tool {
	t.AliasOf = t.Name
	t.Name = name
	t.Hidden = true
	return t
}

// size returns the estimated tokens of tools in a request, a quarter of their bytes. What a model's tokens
// really are is learned by and by, and the list must not change because of that.
func size(list ...*tools.Tool) int {
	bytes := 0
	for _, t := range list {
		bytes += len(t.Name) + len(t.Description) + len(t.Spec().Schema)
	}
	return bytes / 4
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
