package custom

import (
	"context"
	"slices"

	"parley/chat"
	"parley/tools"
)

// An Override changes a built-in tool for the models (C-035, C-036).
type Override struct {
	Description string // what models read instead of the tool's own; "" is its own
	Tool        string // the id of the custom tool that takes its place; "" is none
}

// overridden is a Source some of whose tools are changed.
type overridden struct {
	tools.Source
	by map[string]Override // by name of the tool
}

// apply returns the sources as by says. A tool that a custom one replaces is offered to nobody, under
// none of its names, also while the custom one cannot be used: an error in a file must not give back
// what an owner has taken away.
func apply(by map[string]Override, sources ...tools.Source) []tools.Source {
	changed := make([]tools.Source, len(sources))
	for i, s := range sources {
		changed[i] = overridden{s, by}
	}
	return changed
}

// Tools implements [tools.Source].
func (o overridden) Tools(ctx context.Context, scope tools.Scope) ([]tools.Tool, error) {
	offered, err := o.Source.Tools(ctx, scope)
	if len(o.by) == 0 {
		return offered, err
	}
	all := slices.Clone(offered)
	all = slices.DeleteFunc(all, func(t tools.Tool) bool {
		return o.by[t.Name].Tool != "" || o.by[t.AliasOf].Tool != ""
	})
	for i := range all {
		if text := o.by[all[i].Name].Description; text != "" {
			all[i].Description = text
		}
	}
	return all, err
}

// Above returns the sources of the built-in tools, as the overrides say, with s as the highest. No
// custom tool can have the name of one of them (B-010).
func (s *Source) Above(builtIn ...tools.Source) ([]tools.Source, error) {
	var names []string
	owner := tools.Scope{From: chat.Sender{Role: chat.Owner}}
	for _, source := range builtIn {
		all, err := source.Tools(context.Background(), owner)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			names = append(names, t.Name)
		}
	}
	s.Library.Reserve(names)
	return append(apply(s.Overrides, builtIn...), s), nil
}

// names returns the names under which the custom tool called id is offered: those of the built-in
// tools whose places it takes, or its own.
func (s *Source) names(id string) (all []string) {
	for name, o := range s.Overrides {
		if o.Tool == id {
			all = append(all, name)
		}
	}
	if len(all) == 0 {
		return []string{id}
	}
	slices.Sort(all)
	return all
}

// Missing returns the names of the built-in tools whose place a custom tool takes that cannot be used,
// sorted.
func (s *Source) Missing() []string { return Missing(s.Overrides, s.usable()) }

// Missing is [Source.Missing] where only some custom tools can be used.
func Missing(by map[string]Override, usable []Definition) (names []string) {
	for name, o := range by {
		if o.Tool != "" && !slices.ContainsFunc(usable, func(d Definition) bool { return d.ID == o.Tool }) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
