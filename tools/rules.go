package tools

import (
	"cmp"
	"context"

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

// Permit returns the sources without the tools that the sender of the turn may
// not use, so that they are not told from those that never were. The others go
// by their Rule in what follows: the rules may let in the one who began the
// turn, and not another who joined it (B-014).
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

func (s ruled) Tools(ctx context.Context, scope Scope) (permitted []Tool, err error) {
	all, err := s.Source.Tools(ctx, scope)
	for _, t := range all {
		if t.rule = cmp.Or(s.rules[t.Kind()], Everyone); t.may(scope.From) {
			permitted = append(permitted, t)
		}
	}
	return permitted, err
}

// may reports whether s may use t.
func (t Tool) may(s chat.Sender) bool {
	switch t.rule {
	case "", Everyone, Ask:
		return true
	case Owners:
		return s.Role == chat.Owner
	}
	return false
}
