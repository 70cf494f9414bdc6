package policy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// Command answers the slash command /groups, by which people list the groups of tools
// and switch those that the policy does not force (B-073).
func (b *Book) Command(ctx context.Context, m chat.Message, say texts.Groups) (string, error) {
	_, rest := chat.Word(m.Text)
	word, name := chat.Word(rest)
	name = strings.TrimSpace(name)
	s := tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group}
	e, err := b.Effective(ctx, s)
	if err != nil {
		return "", err
	}
	group, known := e.Categories[name]
	switch {
	case word == "":
		return listGroups(e, say), nil
	case word != "on" && word != "off" || name == "":
		return say.Usage, nil
	case m.Group && m.From.Role != chat.Owner:
		return say.OnlyOwners, nil
	case !known:
		return say.Unknown.With(name), nil
	case group.Locked:
		return say.Fixed.With(name), nil
	}
	if err := b.choose(ctx, s.Whose(), name, word == "on", group.DefaultEnabled); err != nil {
		return "", err
	}
	if word == "on" {
		return say.SwitchedOn.With(name), nil
	}
	return say.SwitchedOff.With(name), nil
}

// toggles is which categories somebody switched on and off for themselves.
type toggles struct {
	Groups map[string]bool `json:"groups"`
}

// choose notes what who chose for a category. What is as by default needs no note.
func (b *Book) choose(ctx context.Context, who chat.Person, category string, on, byDefault bool) error {
	defer b.memory.forget()
	chosen, _, err := b.choices.Upsert(ctx, string(who), func(own *toggles) error {
		if own.Groups == nil {
			own.Groups = map[string]bool{}
		}
		own.Groups[category] = on
		if on == byDefault {
			delete(own.Groups, category)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("note which tools %s chose: %w", who, err)
	}
	if len(chosen.Groups) > 0 {
		return nil
	}
	return b.choices.Delete(ctx, string(who))
}

// listGroups lists the groups of tools and their states.
func listGroups(e Effective, say texts.Groups) string {
	if len(e.Categories) == 0 {
		return say.None
	}
	lines := say.List + "\n"
	for _, id := range slices.Sorted(maps.Keys(e.Categories)) {
		group := e.Categories[id]
		if len(group.Tools) == 0 {
			continue // there is nothing to switch
		}
		line := say.Off
		switch {
		case group.Enabled && group.Locked:
			line = say.FixedOn
		case group.Locked:
			line = say.FixedOff
		case group.Enabled:
			line = say.On
		}
		lines += "\n- " + line.With("`"+id+"`", strings.Join(group.Tools, ", "))
	}
	return lines + "\n\n" + say.End
}
