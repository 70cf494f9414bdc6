package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// cmdTools lists what the one who asks may have used: with "all" under every
// name, and else as the model is told.
func (l *lane) cmdTools(ctx context.Context, m chat.Message) string {
	kit, err := l.settings.Load().Kit(ctx, l.scopeOf(m, l.modelOf(ctx, l.id)))
	if err != nil {
		return l.sorry("list the tools", l.id, err)
	}
	_, arg := cut(m.Text)
	by := map[string][]string{}
	for _, t := range kit.Tools() {
		line := fmt.Sprintf("\n- `%s`", t.Name)
		switch category := cmp.Or(t.Category, "general"); {
		case t.AliasOf == "" && !t.Hidden || arg == "all" && t.AliasOf == "":
			by[category] = append(by[category], line+" – "+sentence(t.Description))
		case arg == "all":
			by[category] = append(by[category], line+fmt.Sprintf(" is `%s`", t.AliasOf))
		}
	}
	if len(by) == 0 {
		return "There are no tools here."
	}
	var b strings.Builder
	for _, category := range slices.Sorted(maps.Keys(by)) {
		b.WriteString("\n\n**" + category + "**" + strings.Join(by[category], ""))
	}
	return strings.TrimSpace(b.String())
}

// sentence returns the first one of text.
func sentence(text string) string {
	text = tame(text, 1000)
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	return clip(strings.TrimSuffix(text, "."), 200)
}

// cmdContext tells how large the next request would be, and what of.
func (l *lane) cmdContext(ctx context.Context, m chat.Message) string {
	name := l.modelOf(ctx, l.id)
	system, err := l.Memory.System(ctx, l.id)
	var kit *tools.Kit
	if err == nil {
		kit, err = l.settings.Load().Kit(ctx, l.scopeOf(m, name))
	}
	var s *session
	if err == nil {
		s, err = l.open(ctx, l.id)
	}
	if err != nil {
		return l.sorry("look at that", l.id, err)
	}
	defer l.idle.put(s)
	left := 0
	for _, e := range s.history.entries {
		if e.Role == llm.ToolRole && e.Text == omitted(e.Name) {
			left++
		}
	}
	model, ratio := l.settings.Load().Models[name], l.ratios.of(name)
	s.history.eyes = model.Vision
	tokens := func(estimated int) int { return int(float64(estimated) * ratio) }
	a, b, c := tokens(len(system)/4), tokens(fixedSize(llm.Request{Tools: kit.Specs()})), tokens(s.history.size())
	return fmt.Sprintf("Model: %s, which takes %d tokens, %d of them for its answer.\n"+
		"The next request takes about %d: %d of instructions, %d of tools, %d of conversation.\n"+
		"Messages: %d. Results of tools left out: %d. Pictures: %d.\n"+
		"A token that I count is %.2f of this model's, as far as I have learnt.",
		name, model.Window, model.MaxTokens, a+b+c, a, b, c, len(s.history.entries), left, s.history.showing(), ratio)
}

// cmdUndo puts back the files of the last turn. One /undo does so once, also
// when a crash brings it again.
func (l *lane) cmdUndo(ctx context.Context, m chat.Message) string {
	if l.Undo == nil {
		return "I cannot undo anything here."
	}
	again := false
	err := l.update(ctx, l.id, func(s *state) { again, s.Undone = s.Undone == m.Key(), m.Key() })
	if err != nil {
		return l.sorry("undo that", l.id, err)
	}
	if again {
		return wordsUndoing
	}
	text, err := l.Undo(ctx, l.id)
	if err != nil {
		return l.sorry("undo that", l.id, err)
	}
	return text
}

func (p *Pool) cmdVerbose(ctx context.Context, m chat.Message) string {
	id := m.At.Session()
	_, want := cut(m.Text)
	switch want = strings.ToLower(want); want {
	case "":
		s, _, err := p.lookup(ctx, id)
		if err != nil {
			return p.sorry("look that up", id, err)
		}
		if s.Quiet {
			return "I do not show the steps on the way. Change that with /verbose on."
		}
		return "I show the steps on the way. Change that with /verbose off."
	case "on", "off":
		if err := p.update(ctx, id, func(s *state) { s.Quiet = want == "off" }); err != nil {
			return p.sorry("note that", id, err)
		}
		return "Noted, from the next answer on."
	}
	return "Write /verbose on or /verbose off."
}

func (p *Pool) cmdToolStats(_ context.Context, m chat.Message) string {
	switch {
	case m.From.Role != chat.Owner:
		return "Only owners are told that."
	case p.ToolStats == nil:
		return "Nobody counts what the tools do."
	}
	return p.ToolStats()
}
