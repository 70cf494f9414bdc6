package agent

import (
	"fmt"
	"parley/agent/conversation"
	"parley/chat"
	"parley/tools"
	"slices"
	"strings"

	"context"
)

const (
	shownFind = 400 // bytes of each place that /search shows
	shownHere = 8   // places that /search shows
)

// Calls returns what became of each call that was ever made in the session id,
// oldest first and those of a round in the order asked, those that were rolled
// back too (A-014, E-023). Of a session that nobody knows the error is
// store.ErrNotFound.
func (p *Pool) Calls(ctx context.Context, id chat.SessionID) ([]tools.Record, error) {
	kit, err := p.settings.Load().Kit(ctx, tools.Scope{Session: id, From: chat.Sender{Role: chat.Owner}})
	if err != nil { // what was done can be told all the same
		kit = &tools.Kit{}
	}
	return p.sessions.Calls(ctx, id, kit)
}

// found answers /search: it shows what was said in this chat.
func (w *worker) found(ctx context.Context, m chat.Message) string {
	_, words := chat.Word(m.Text)
	if words == "" {
		return w.pool.texts.Commands.NoSearch
	}
	finds, err := w.pool.sessions.Search(ctx, func(id chat.SessionID) bool { return id == w.id }, words, shownHere)
	if err != nil {
		return w.pool.sorry("search", w.id, err)
	}
	lost := slices.IndexFunc(finds, func(f chat.Find) bool { return f.Entry.Kind == chat.Lost })
	damaged := ""
	if lost >= 0 {
		finds, damaged = finds[:lost], w.pool.texts.Commands.NotSearched
	}
	if len(finds) == 0 {
		return conversation.Join(w.pool.texts.Commands.NotFound, damaged)
	}
	var b strings.Builder
	b.WriteString(w.pool.texts.Commands.Found + "\n")
	for _, f := range finds {
		who := conversation.Inline(f.Entry.Who, 64)
		if f.Entry.Kind == chat.Said {
			who = w.pool.texts.Commands.Me
		}
		fmt.Fprintf(&b, "\n- %s, %s: %s", f.Entry.Time.In(w.pool.config.Zone).Format("2006-01-02 15:04"), who, conversation.ClipMiddle(conversation.OneLine(f.Entry.Text), shownFind))
	}
	return conversation.Join(b.String(), damaged)
}
