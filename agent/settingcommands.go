package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/chat"
	"parley/tools"
)

// ModelsFor returns the settings for whoever sent m, and which model answers in its
// session. Of a session that cannot be read it is the default.
func (p *Pool) ModelsFor(ctx context.Context, m chat.Message) (s Settings, name string, err error) {
	scope := tools.Scope{Session: m.Session(), At: m.At, From: m.From, Group: m.Group}
	s, err = p.settings.Load().forScope(ctx, scope)
	st, _, _ := p.sessions.Lookup(ctx, m.Session())
	name, _ = s.model(st.Model)
	return s, name, err
}

func chooseModel(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	id := m.Session()
	s, now, err := p.ModelsFor(ctx, m)
	if err != nil {
		return "", fmt.Errorf("list the models: %w", err)
	}
	names := slices.Sorted(maps.Keys(s.Models))
	_, want := chat.Word(m.Text)
	switch {
	case want == "":
		return p.texts.Commands.ModelHere.With(now, strings.Join(names, ", ")), nil
	case s.Models[want].Model == nil:
		return p.texts.Commands.ModelUnknown.With(strings.Join(names, ", ")), nil
	}
	if err := p.sessions.Update(ctx, id, func(s *conversation.State) { s.Model = want }); err != nil {
		return "", fmt.Errorf("note the model: %w", err)
	}
	return p.texts.Commands.ModelChosen.With(want), nil
}

func showToolStats(_ context.Context, p *Pool, m chat.Message) (string, error) {
	switch {
	case m.From.Role != chat.Owner:
		return p.texts.Commands.ForOwners, nil
	case p.config.ToolStats == nil:
		return p.texts.Commands.NotCounted, nil
	}
	return p.config.ToolStats(), nil
}
