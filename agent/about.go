package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// upcoming returns the turn that would answer m: commands look at it.
func (l *lane) upcoming(ctx context.Context, m chat.Message) (*turn, error) {
	s, err := l.open(ctx, l.id)
	if err != nil {
		return nil, err
	}
	l.idle.put(s) // nobody else is at work in it
	t := &turn{session: s, lane: l}
	return t, t.prepare(ctx, m)
}

// cmdTools lists what the one who asks may have used: with "all" under every
// name, and else as the model is told.
func (l *lane) cmdTools(ctx context.Context, m chat.Message) string {
	next, err := l.upcoming(ctx, m)
	if err != nil {
		return l.sorry("list the tools", l.id, err)
	}
	_, arg := chat.Word(m.Text)
	by := map[string][]string{}
	for _, t := range next.kit.Tools() {
		what, _, _ := strings.Cut(strings.TrimSuffix(tame(t.Description, 1000), "."), ". ")
		if t.AliasOf != "" {
			what = "another name of `" + t.AliasOf + "`"
		}
		if category := t.Kind(); arg == "all" || t.AliasOf == "" && !t.Hidden {
			by[category] = append(by[category], fmt.Sprintf("\n- `%s` – %s", t.Name, what))
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

// cmdContext tells how large the next request would be, and what of.
func (l *lane) cmdContext(ctx context.Context, m chat.Message) string {
	next, err := l.upcoming(ctx, m)
	var system string
	if err == nil {
		system, err = l.Memory.System(ctx, l.id, next.scope.Whose())
	}
	if err != nil {
		return l.sorry("look at that", l.id, err)
	}
	req, h, ratio, left := llm.Request{System: system, Tools: next.kit.Specs()}, next.history, l.ratios.of(next.name), 0
	h.eyes, h.entries = next.model.Vision, slices.Clone(h.entries)
	h.fit(max(next.room(fixedSize(req)), 256), light(next.kit))
	for _, e := range h.entries {
		if e.Role == llm.ToolRole && e.Text == omitted(e.Name) {
			left++
		}
	}
	tokens := func(estimated int) int { return int(float64(estimated) * ratio) }
	before := ""
	if h.summed.Text != "" {
		before = fmt.Sprintf("What was said before them is summed up in about %d.\n", tokens(estimate(h.summed.message())))
	}
	a, b, c := tokens(len(system)/4), tokens(fixedSize(llm.Request{Tools: req.Tools})), tokens(h.size())
	return fmt.Sprintf("Model: %s, which takes %d tokens, %d of them for its answer.\n"+
		"The next request takes about %d: %d of instructions, %d of tools, %d of conversation.\n"+
		"Messages: %d. Results of tools left out: %d. Pictures: %d.\n"+before+
		"A token that I count is %.2f of this model's, as far as I have learnt.",
		next.name, next.model.Window, next.model.MaxTokens, a+b+c, a, b, c, len(h.entries), left, h.showing(), ratio)
}

// cmdUndo puts back the files of the last turn. One /undo does so once, also
// when a crash brings it again.
func (l *lane) cmdUndo(ctx context.Context, m chat.Message) string {
	if l.Undo == nil {
		return "I cannot undo anything here."
	}
	if m.From.Role != chat.Owner {
		next, err := l.upcoming(ctx, m)
		if err != nil {
			return l.sorry("undo that", l.id, err)
		}
		if !slices.ContainsFunc(next.kit.Tools(), func(t tools.Tool) bool { return t.Category == "files" && !t.ReadOnly }) {
			return wordsNoUndo
		}
	}
	text, again := wordsUndoing, false
	err := l.update(ctx, l.id, func(s *state) { again, s.Undone = s.Undone == m.Key(), m.Key() })
	if err == nil && !again {
		text, err = l.Undo(ctx, l.id)
	}
	if err != nil {
		return l.sorry("undo that", l.id, err)
	}
	return text
}

// cmdVerbose reports whether steps are shown, and changes it with "on" or "off" only.
func (p *Pool) cmdVerbose(ctx context.Context, m chat.Message) string {
	_, want := chat.Word(strings.ToLower(m.Text))
	st, _, err := p.lookup(ctx, m.Session())
	quiet := st.Quiet
	if err == nil && (want == "on" || want == "off") {
		quiet = want == "off"
		err = p.update(ctx, m.Session(), func(s *state) { s.Quiet = quiet })
	}
	switch {
	case err != nil:
		return p.sorry("look that up", m.Session(), err)
	case want != "on" && want != "off" && quiet:
		return "Steps are not shown in this conversation. /verbose on shows them."
	case want != "on" && want != "off":
		return "Steps are shown in this conversation. /verbose off hides them."
	case quiet:
		return "Steps are hidden from the next answer on. /verbose on shows them again."
	}
	return "Steps are shown from the next answer on. /verbose off hides them."
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
