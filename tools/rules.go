package tools

import (
	"cmp"
	"context"
	"slices"

	"parley/chat"
)

// A Rule says who may use the tools of a category. Any other value counts as Off.
type Rule string

// The rules.
const (
	Everyone Rule = "everyone"
	Owners   Rule = "owners" // for other people, the tools do not exist (B-013)
	Ask      Rule = "ask"    // everyone, but each call needs approval
	Off      Rule = "off"    // nobody (B-073)
)

// Rules maps categories to Rules; tools without a category are in "general".
// A tool whose category is not in it is for those that its Hints name.
type Rules map[string]Rule

// Permit returns the sources without the tools that the sender of the turn may not
// use: for them, these tools do not exist. The other tools keep their Rule,
// because a person who joins the turn later may have fewer rights than the one who
// began it (B-014).
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
	permitted = slices.Clone(all)
	for i := range permitted {
		permitted[i].rule = cmp.Or(s.rules[permitted[i].Kind()], permitted[i].Who, Everyone)
	}
	return slices.DeleteFunc(permitted, func(t Tool) bool { return !t.May(scope.From) }), err
}

// May reports whether s May use t.
func (t Tool) May(s chat.Sender) bool {
	if t.Withheld != nil && t.Withheld(s) {
		return false
	}
	rule := t.whoMay()
	return rule == Everyone || rule == Ask || rule == Owners && s.Role == chat.Owner
}

// whoMay returns the Rule that t is under.
func (t Tool) whoMay() Rule { return cmp.Or(t.rule, t.Who, Everyone) }
