package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/agent/conversation"
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
		what, _, _ := strings.Cut(strings.TrimSuffix(conversation.Inline(t.Description, 1000), "."), ". ")
		if t.AliasOf != "" {
			what = l.Texts.Commands.OtherName.With(t.AliasOf)
		}
		if category := t.Kind(); arg == "all" || t.AliasOf == "" && !t.Hidden {
			by[category] = append(by[category], fmt.Sprintf("\n- `%s` – %s", t.Name, what))
		}
	}
	if len(by) == 0 {
		return l.Texts.Commands.NoTools
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
	req := llm.Request{System: system, Tools: next.kit.Specs()}
	ratio := l.ratios.of(next.name)
	view := next.session.History.View()
	view.ShowPictures(next.model.Vision)
	view.Fit(max(next.room(conversation.FixedSize(req)), 256), conversation.ShortenedFirst(next.kit))
	tokens := func(estimated int) int { return int(float64(estimated) * ratio) }
	say := l.Texts.Commands
	a, b, c := tokens(len(system)/4), tokens(conversation.FixedSize(llm.Request{Tools: req.Tools})), tokens(view.Size())
	lines := []string{
		say.ContextModel.With(next.name, next.model.Window, next.model.MaxTokens),
		say.ContextNext.With(a+b+c, a, b, c),
		say.ContextMessages.With(view.EntryCount(), view.OmittedResults(), len(view.Pictures())),
	}
	if n := view.SummarySize(); n > 0 {
		lines = append(lines, say.ContextSummary.With(tokens(n)))
	}
	return strings.Join(append(lines, say.ContextRatio.With(ratio)), "\n")
}

// cmdUndo puts back the files of the last turn. One /undo does so once, also
// when a crash brings it again.
func (l *lane) cmdUndo(ctx context.Context, m chat.Message) string {
	if l.Undo == nil {
		return l.Texts.Commands.CannotUndo
	}
	if m.From.Role != chat.Owner {
		next, err := l.upcoming(ctx, m)
		if err != nil {
			return l.sorry("undo that", l.id, err)
		}
		if !slices.ContainsFunc(next.kit.Tools(), func(t tools.Tool) bool { return t.Category == "files" && !t.ReadOnly }) {
			return l.Texts.Commands.NoUndo
		}
	}
	text, again := l.Texts.Commands.Interrupted, false
	err := l.sessions.Update(ctx, l.id, func(s *conversation.State) { again, s.Undone = s.Undone == m.Key(), m.Key() })
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
	st, _, err := p.sessions.Lookup(ctx, m.Session())
	quiet := st.Quiet
	if err == nil && (want == "on" || want == "off") {
		quiet = want == "off"
		err = p.sessions.Update(ctx, m.Session(), func(s *conversation.State) { s.Quiet = quiet })
	}
	switch {
	case err != nil:
		return p.sorry("look that up", m.Session(), err)
	case want != "on" && want != "off" && quiet:
		return p.Texts.Commands.StepsHidden
	case want != "on" && want != "off":
		return p.Texts.Commands.StepsShown
	case quiet:
		return p.Texts.Commands.StepsHide
	}
	return p.Texts.Commands.StepsShow
}

func (p *Pool) cmdToolStats(_ context.Context, m chat.Message) string {
	switch {
	case m.From.Role != chat.Owner:
		return p.Texts.Commands.ForOwners
	case p.ToolStats == nil:
		return p.Texts.Commands.NotCounted
	}
	return p.ToolStats()
}
