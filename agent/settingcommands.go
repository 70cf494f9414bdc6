package agent

import (
	"context"
	"maps"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/chat"
	"parley/tools"
)

// modelsFor returns the settings for whoever sent m, and which model answers in its
// session. Of a session that cannot be read it is the default.
func (p *Pool) modelsFor(ctx context.Context, m chat.Message) (s Settings, name string, err error) {
	scope := tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group}
	s, err = p.settings.Load().forScope(ctx, scope)
	st, _, _ := p.sessions.Lookup(ctx, m.Session())
	name, _ = s.model(st.Model)
	return s, name, err
}

func chooseModel(ctx context.Context, p *Pool, m chat.Message) string {
	id := m.Session()
	s, now, err := p.modelsFor(ctx, m)
	if err != nil {
		return p.commandFailed("list the models", id, err)
	}
	names := slices.Sorted(maps.Keys(s.Models))
	_, want := chat.Word(m.Text)
	switch {
	case want == "":
		return p.texts.Commands.ModelHere.With(now, strings.Join(names, ", "))
	case s.Models[want].Model == nil:
		return p.texts.Commands.ModelUnknown.With(strings.Join(names, ", "))
	}
	if err := p.sessions.Update(ctx, id, func(s *conversation.State) { s.Model = want }); err != nil {
		return p.commandFailed("note that", id, err)
	}
	return p.texts.Commands.ModelChosen.With(want)
}

// setVerbose reports whether steps are shown, and changes it with "on" or "off" only.
func setVerbose(ctx context.Context, p *Pool, m chat.Message) string {
	say := p.texts.Commands
	_, want := chat.Word(strings.ToLower(m.Text))
	if want != "on" && want != "off" {
		st, _, err := p.sessions.Lookup(ctx, m.Session())
		switch {
		case err != nil:
			return p.commandFailed("look that up", m.Session(), err)
		case st.Quiet:
			return say.StepsHidden
		}
		return say.StepsShown
	}
	quiet := want == "off"
	err := p.sessions.Update(ctx, m.Session(), func(s *conversation.State) { s.Quiet = quiet })
	switch {
	case err != nil:
		return p.commandFailed("note that", m.Session(), err)
	case quiet:
		return say.StepsHide
	}
	return say.StepsShow
}

func showToolStats(_ context.Context, p *Pool, m chat.Message) string {
	switch {
	case m.From.Role != chat.Owner:
		return p.texts.Commands.ForOwners
	case p.config.ToolStats == nil:
		return p.texts.Commands.NotCounted
	}
	return p.config.ToolStats()
}
