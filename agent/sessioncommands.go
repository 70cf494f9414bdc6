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

const (
	maxFoundText = 400 // bytes of each place that /search shows
	maxFound     = 8   // places that /search shows
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

// listTools lists what the one who asks may have used: with "all" under every
// name, and else as the model is told.
func listTools(ctx context.Context, w *worker, m chat.Message) string {
	next, err := w.upcoming(ctx, m)
	if err != nil {
		return w.pool.commandFailed("list the tools", w.id, err)
	}
	_, arg := chat.Word(m.Text)
	by := map[string][]string{}
	for _, t := range next.kit.Tools() {
		what, _, _ := strings.Cut(strings.TrimSuffix(chat.Inline(t.Description, 1000), "."), ". ")
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

// showContext tells how large the next request would be, and what of.
func showContext(ctx context.Context, w *worker, m chat.Message) string {
	next, err := w.upcoming(ctx, m)
	if err != nil {
		return w.pool.commandFailed("look at that", w.id, err)
	}
	system, err := next.system(ctx)
	if err != nil {
		return w.pool.commandFailed("look at that", w.id, err)
	}
	req := llm.Request{System: system, Tools: next.kit.Specs()}
	ratio := w.pool.ratios.Of(next.name)
	view := next.session.History.View()
	view.ShowPictures(next.model.Vision)
	view.Fit(max(next.model.room(ratio, conversation.FixedSize(req)), 256), conversation.ShortenedFirst(next.kit))
	tokens := func(estimated int) int { return int(float64(estimated) * ratio) }
	say := w.pool.texts.Commands
	instructions := tokens(len(system) / 4)
	toolTexts := tokens(conversation.FixedSize(llm.Request{Tools: req.Tools}))
	messages := tokens(view.Size())
	lines := []string{
		say.ContextModel.With(next.name, next.model.Window, next.model.MaxTokens),
		say.ContextNext.With(instructions+toolTexts+messages, instructions, toolTexts, messages),
		say.ContextMessages.With(view.EntryCount(), view.OmittedResults(), len(view.Pictures())),
	}
	if n := view.SummarySize(); n > 0 {
		lines = append(lines, say.ContextSummary.With(tokens(n)))
	}
	return strings.Join(append(lines, say.ContextRatio.With(ratio)), "\n")
}

// undoTurn puts back the files of the last turn. One /undo does so once, also
// when a crash brings it again.
func undoTurn(ctx context.Context, w *worker, m chat.Message) string {
	if w.pool.config.Undo == nil {
		return w.pool.texts.Commands.CannotUndo
	}
	if m.From.Role != chat.Owner {
		next, err := w.upcoming(ctx, m)
		if err != nil {
			return w.pool.commandFailed("undo that", w.id, err)
		}
		writesFiles := func(t tools.Tool) bool { return t.Category == "files" && !t.ReadOnly }
		if !slices.ContainsFunc(next.kit.Tools(), writesFiles) {
			return w.pool.texts.Commands.NoUndo
		}
	}
	again := false
	err := w.pool.sessions.Update(ctx, w.id, func(s *conversation.State) {
		again = s.Undone == m.Key()
		s.Undone = m.Key()
	})
	if err != nil {
		return w.pool.commandFailed("undo that", w.id, err)
	}
	if again {
		return w.pool.texts.Commands.Interrupted
	}
	text, err := w.pool.config.Undo(ctx, w.id)
	if err != nil {
		return w.pool.commandFailed("undo that", w.id, err)
	}
	return text
}

// searchChat answers /search: it shows what was said in this chat.
func searchChat(ctx context.Context, w *worker, m chat.Message) string {
	_, words := chat.Word(m.Text)
	if words == "" {
		return w.pool.texts.Commands.NoSearch
	}
	finds, err := w.pool.sessions.Search(ctx, func(id chat.SessionID) bool { return id == w.id }, words, maxFound)
	if err != nil {
		return w.pool.commandFailed("search", w.id, err)
	}
	lost := slices.IndexFunc(finds, func(f chat.Find) bool { return f.Entry.Kind == chat.Lost })
	damaged := ""
	if lost >= 0 {
		finds = finds[:lost]
		damaged = w.pool.texts.Commands.NotSearched
	}
	if len(finds) == 0 {
		return conversation.Join(w.pool.texts.Commands.NotFound, damaged)
	}
	var b strings.Builder
	b.WriteString(w.pool.texts.Commands.Found + "\n")
	for _, f := range finds {
		who := chat.Inline(f.Entry.Who, 64)
		if f.Entry.Kind == chat.Said {
			who = w.pool.texts.Commands.Me
		}
		at := f.Entry.Time.In(w.pool.config.Zone).Format("2006-01-02 15:04")
		text := chat.ClipMiddle(chat.OneLine(f.Entry.Text), maxFoundText)
		fmt.Fprintf(&b, "\n- %s, %s: %s", at, who, text)
	}
	return conversation.Join(b.String(), damaged)
}
