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
func (w *worker) upcoming(ctx context.Context, m chat.Message) (*turn, error) {
	s, err := w.pool.sessions.Open(ctx, w.id)
	if err != nil {
		return nil, err
	}
	w.pool.sessions.Cache(s) // nobody else is at work in it
	t := &turn{session: s, pool: w.pool, worker: w}
	return t, t.prepare(ctx, m)
}

// cmdTools lists what the one who asks may have used: with "all" under every
// name, and else as the model is told.
func (w *worker) cmdTools(ctx context.Context, m chat.Message) string {
	next, err := w.upcoming(ctx, m)
	if err != nil {
		return w.pool.sorry("list the tools", w.id, err)
	}
	_, arg := chat.Word(m.Text)
	by := map[string][]string{}
	for _, t := range next.kit.Tools() {
		what, _, _ := strings.Cut(strings.TrimSuffix(conversation.Inline(t.Description, 1000), "."), ". ")
		if t.AliasOf != "" {
			what = w.pool.texts.Commands.OtherName.With(t.AliasOf)
		}
		if category := t.Kind(); arg == "all" || t.AliasOf == "" && !t.Hidden {
			by[category] = append(by[category], fmt.Sprintf("\n- `%s` – %s", t.Name, what))
		}
	}
	if len(by) == 0 {
		return w.pool.texts.Commands.NoTools
	}
	var b strings.Builder
	for _, category := range slices.Sorted(maps.Keys(by)) {
		b.WriteString("\n\n**" + category + "**" + strings.Join(by[category], ""))
	}
	return strings.TrimSpace(b.String())
}

// cmdContext tells how large the next request would be, and what of.
func (w *worker) cmdContext(ctx context.Context, m chat.Message) string {
	next, err := w.upcoming(ctx, m)
	var system string
	if err == nil {
		system, err = w.pool.config.Memory.System(ctx, w.id, next.scope.Whose())
	}
	if err != nil {
		return w.pool.sorry("look at that", w.id, err)
	}
	req := llm.Request{System: system, Tools: next.kit.Specs()}
	ratio := w.pool.ratios.of(next.name)
	view := next.session.History.View()
	view.ShowPictures(next.model.Vision)
	view.Fit(max(next.room(conversation.FixedSize(req)), 256), conversation.ShortenedFirst(next.kit))
	tokens := func(estimated int) int { return int(float64(estimated) * ratio) }
	say := w.pool.texts.Commands
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
func (w *worker) cmdUndo(ctx context.Context, m chat.Message) string {
	if w.pool.config.Undo == nil {
		return w.pool.texts.Commands.CannotUndo
	}
	if m.From.Role != chat.Owner {
		next, err := w.upcoming(ctx, m)
		if err != nil {
			return w.pool.sorry("undo that", w.id, err)
		}
		if !slices.ContainsFunc(next.kit.Tools(), func(t tools.Tool) bool { return t.Category == "files" && !t.ReadOnly }) {
			return w.pool.texts.Commands.NoUndo
		}
	}
	text, again := w.pool.texts.Commands.Interrupted, false
	err := w.pool.sessions.Update(ctx, w.id, func(s *conversation.State) { again, s.Undone = s.Undone == m.Key(), m.Key() })
	if err == nil && !again {
		text, err = w.pool.config.Undo(ctx, w.id)
	}
	if err != nil {
		return w.pool.sorry("undo that", w.id, err)
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
		return p.texts.Commands.StepsHidden
	case want != "on" && want != "off":
		return p.texts.Commands.StepsShown
	case quiet:
		return p.texts.Commands.StepsHide
	}
	return p.texts.Commands.StepsShow
}

func (p *Pool) cmdToolStats(_ context.Context, m chat.Message) string {
	switch {
	case m.From.Role != chat.Owner:
		return p.texts.Commands.ForOwners
	case p.config.ToolStats == nil:
		return p.texts.Commands.NotCounted
	}
	return p.config.ToolStats()
}
