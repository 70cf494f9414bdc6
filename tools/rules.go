package tools

import (
	"cmp"
	"context"

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

// Tools implements [Source].
func (s ruled) Tools(ctx context.Context, scope Scope) ([]Tool, error) {
	return s.AppendTools(ctx, scope, nil)
}

// AppendTools implements [Appender].
func (s ruled) AppendTools(ctx context.Context, scope Scope, all []Tool) ([]Tool, error) {
	before := len(all)
	all, err := AppendTools(ctx, s.Source, scope, all)
	for i := before; i < len(all); i++ {
		all[i].rule = cmp.Or(s.rules[all[i].Kind()], all[i].Who, Everyone)
	}
	return Keep(all, before, func(t *Tool) bool { return t.May(scope.From) }), err
}

// Keep removes those of all from number begin on that keep refuses. It may change the others.
func Keep(all []Tool, begin int, keep func(*Tool) bool) []Tool {
	end := begin
	for i := begin; i < len(all); i++ {
		if !keep(&all[i]) {
			continue
		}
		if i > end {
			all[end] = all[i]
		}
		end++
	}
	clear(all[end:])
	return all[:end]
}

// May reports whether who may use t.
func (t *Tool) May(who chat.Sender) bool {
	if t.Withheld != nil && t.Withheld(who) || t.Denied != nil && t.Denied(t, who) {
		return false
	}
	rule := t.whoMay()
	return rule == Everyone || rule == Ask || rule == Owners && who.Role == chat.Owner
}

// whoMay returns the Rule that t is under.
func (t *Tool) whoMay() Rule { return cmp.Or(t.rule, t.Who, Everyone) }
