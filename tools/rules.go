package tools

import (
	"cmp"
	"context"
	"slices"

	"parley/chat"
)

// A Rule says who may use the tools of a category. What is no Rule is Off.
type Rule string

// The rules.
const (
	Everyone Rule = "everyone"
	Owners   Rule = "owners" // for others the tools do not exist (B-013)
	Ask      Rule = "ask"    // everyone, but each call is asked for first
	Off      Rule = "off"    // nobody (B-073)
)

// Rules are the Rule of each category; that of tools without one is "general".
// Everyone may use those that are not named.
type Rules map[string]Rule

func (r Rules) of(t Tool) Rule { return cmp.Or(r[t.Kind()], Everyone) }

func (r Rules) allow(t Tool, role chat.Role) bool {
	rule := r.of(t)
	return rule == Everyone || rule == Ask || rule == Owners && role == chat.Owner
}

// Permit returns the sources without the tools that the sender of the turn may
// not use, so that they are not told from those that never were (B-014).
func (r Rules) Permit(sources ...Source) []Source {
	permitted := make([]Source, len(sources))
	for i, s := range sources {
		permitted[i] = ruled{s, r}
	}
	return permitted
}

type ruled struct {
	Source
	rules Rules
}

func (s ruled) Tools(ctx context.Context, scope Scope) ([]Tool, error) {
	all, err := s.Source.Tools(ctx, scope)
	forbidden := func(t Tool) bool { return !s.rules.allow(t, scope.From.Role) }
	return slices.DeleteFunc(slices.Clone(all), forbidden), err
}

// may says whether a Kit lets s use t.
func (t Tool) may(s chat.Sender) bool { return t.allows == nil || t.allows(s.Role) }
