package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"parley/chat"
	"parley/tools"
)

// Kit returns what [tools.NewKit] makes of the sources without the tools that are
// switched off in s, with a notice about these.
func (b *Book) Kit(
	ctx context.Context,
	s tools.Scope,
	sources []tools.Source,
	stages ...tools.Middleware,
) (*tools.Kit, error) {
	r, err := b.rules(ctx, s)
	if err != nil {
		return nil, err
	}
	c := &choice{ctx: ctx, book: b, scope: s, rules: r, off: map[string]bool{}, aliased: map[string]string{}}
	narrowed := make([]tools.Source, len(sources))
	for i, source := range sources {
		narrowed[i] = narrowedSource{source, c}
	}
	kit, err := tools.NewKit(ctx, s, narrowed, stages...)
	if err != nil {
		return nil, err
	}
	kit.Notice = c.notice()
	return kit, nil
}

// A choice is what a policy leaves of the tools for one turn.
type choice struct {
	ctx     context.Context // of the turn
	book    *Book
	scope   tools.Scope
	rules   rules
	off     map[string]bool   // categories that kept back a tool and are not silent
	aliased map[string]string // categories of the tools that aliases stand for, by the name of the alias
}

// A narrowedSource is a Source without the tools that are switched off.
type narrowedSource struct {
	source tools.Source
	choice *choice
}

// Tools implements [tools.Source].
func (n narrowedSource) Tools(ctx context.Context, s tools.Scope) ([]tools.Tool, error) {
	return n.AppendTools(ctx, s, nil)
}

// AppendTools implements [tools.Appender].
func (n narrowedSource) AppendTools(ctx context.Context, s tools.Scope, all []tools.Tool) ([]tools.Tool, error) {
	c := n.choice
	before := len(all)
	all, err := tools.AppendTools(ctx, n.source, s, all)
	c.noteAliases(all[before:])
	denies := c.denies // one value for all
	return tools.Keep(all, before, func(t *tools.Tool) bool {
		category := c.rules.off(t, c.aliased)
		if category == "" {
			t.Denied = denies
			return true
		}
		if !c.rules.silent(category) && t.AliasOf == "" && !t.Hidden {
			c.off[category] = true
		}
		return false
	}), err
}

// noteAliases sets c.aliased for the tools of a source.
func (c *choice) noteAliases(own []tools.Tool) {
	for i := range own {
		if own[i].AliasOf == "" {
			continue
		}
		for j := range own {
			if own[j].Name == own[i].AliasOf {
				c.aliased[own[i].Name] = own[j].Kind()
			}
		}
	}
}

// denies reports whether t is off for a person who joins the turn later, and who may
// have fewer rights than the one who began it (B-014). What cannot be read counts as
// off.
func (c *choice) denies(t *tools.Tool, who chat.Sender) bool {
	if who.ID == c.scope.From.ID && who.Role == c.scope.From.Role {
		return false
	}
	joined := c.scope
	joined.From = who
	r, err := c.book.rules(c.ctx, joined)
	return err != nil || r.off(t, c.aliased) != ""
}

// notice tells the model which categories are off, once the tools of all sources are
// known (B-073). It is "" if there are none, or all are silent.
func (c *choice) notice() string {
	if len(c.off) == 0 {
		return ""
	}
	if c.rules.damaged {
		return "# Tools that are switched off\n\n" +
			"All tools are off, because the owner's policy cannot be read. If somebody needs one, say that the owner " +
			"has to save the policy again."
	}
	var names []string
	for category := range c.off {
		name := category
		if label := c.rules.label(category); label != category {
			name = fmt.Sprintf("%s (%s)", category, label)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return "# Tools that are switched off\n\n" +
		"The owner, or the person you talk to, has switched these categories of tools off here: " +
		strings.Join(names, ", ") + ". " +
		"Do not look for another way to do the same; if somebody needs such a tool, say that it is switched off."
}
