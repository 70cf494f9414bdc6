package catalog

import (
	"bytes"
	"slices"

	"parley/tools"
)

// maxPlans is how many plans are kept. People with the same rights have the same list, and models with the same
// window the same plan for it.
const maxPlans = 8

// A plan says how a list of tools is made short. It is the same until the list changes.
type plan struct {
	list   []listedTool
	window int
	lean   bool
	short  bool

	keepsAll   bool              // there is nothing to find
	leavesOut  [offered + 1]bool // by class
	find, call tools.Tool        // that stand for what is left out; find cannot be run yet
	hasServers bool              // the list has tools of MCP servers
}

// A listedTool is what a plan depends on of a tool.
type listedTool struct {
	name, description, category, aliasOf string
	schema                               []byte
	hidden                               bool
	use                                  tools.Use
}

// isOf reports whether l is what a plan depends on of t.
func (l *listedTool) isOf(t *tools.Tool) bool {
	return l.name == t.Name && l.description == t.Description && l.category == t.Category && l.aliasOf == t.AliasOf &&
		l.hidden == t.Hidden && l.use == t.Use && bytes.Equal(l.schema, t.Spec().Schema)
}

// isFor reports whether p is the plan for all in s.
func (p *plan) isFor(all []tools.Tool, s tools.Scope) bool {
	if p.window != s.Window || p.lean != s.Lean || p.short != s.Short || len(p.list) != len(all) {
		return false
	}
	for i := range all {
		if !p.list[i].isOf(&all[i]) {
			return false
		}
	}
	return true
}

// planOf returns the plan for all in s. It must not be changed.
func (c *Catalog) planOf(all []tools.Tool, s tools.Scope) *plan {
	var known []*plan
	if kept := c.plans.Load(); kept != nil {
		known = *kept
	}
	for _, p := range known {
		if p.isFor(all, s) {
			return p
		}
	}
	p := newPlan(all, s)
	next := slices.Insert(slices.Clone(known), 0, p)
	next = next[:min(len(next), maxPlans)]
	c.plans.Store(&next) // another turn may have stored one meanwhile, which is then made again
	return p
}

func newPlan(all []tools.Tool, s tools.Scope) *plan {
	p := &plan{window: s.Window, lean: s.Lean, short: s.Short}
	var by [offered + 1][]*tools.Tool
	for i := range all {
		t := &all[i]
		of := classOf(t, s.Lean)
		by[of] = append(by[of], t)
		p.list = append(p.list, listedTool{
			name: t.Name, description: t.Description, category: t.Category, aliasOf: t.AliasOf,
			schema: t.Spec().Schema, hidden: t.Hidden, use: t.Use,
		})
	}
	p.hasServers = len(by[offered]) > 0
	p.keepsAll = len(by[rare])+len(by[offered]) == 0
	p.call = callTool()
	p.leavesOut[rare] = saves(by[rare], &p.call)
	listed := size(by[usual]...) + size(by[rare]...)
	if p.leavesOut[rare] {
		find := findTool(by[rare])
		listed = size(by[usual]...) + size(&find, &p.call)
	}
	isLong := listed+size(by[offered]...) >= s.Window/windowShare && saves(by[offered], &p.call)
	if p.hasServers && (s.Short || isLong) {
		p.leavesOut[rare] = true // the tools that find and call them are there anyway
		p.leavesOut[offered] = true
	}
	if s.Window <= 0 { // nobody makes requests with this Kit
		clear(p.leavesOut[:])
	}
	var out []*tools.Tool
	for i := range all {
		if t := &all[i]; p.leavesOut[classOf(t, s.Lean)] {
			out = append(out, t)
		}
	}
	p.find = findTool(out)
	p.find.Hidden = len(out) == 0 // models that had a short list go on with it
	p.call.Hidden = len(out) == 0
	return p
}

// saves reports whether the list becomes shorter without some tools, although it then needs find_tool and
// call_tool.
func saves(out []*tools.Tool, call *tools.Tool) bool {
	find := findTool(out)
	return size(out...) > size(&find, call)
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
