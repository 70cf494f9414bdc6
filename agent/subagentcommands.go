package agent

import (
	"context"
	"errors"
	"strings"

	"parley/agent/activity"
	"parley/agent/subagents"
	"parley/chat"
	"parley/tools"
)

// route returns m as it goes into the inbox: what a person says while a turn
// waits for a subagent that listens goes to that subagent (C-033), unless they go back.
func (p *Pool) route(ctx context.Context, m chat.Message, command string) chat.Message {
	if m.Origin != chat.FromPerson || m.In != "" || command != "" || m.Branch != nil {
		return m
	}
	listener, err := p.subagents.Listener(ctx, m.Session())
	if err != nil {
		p.log.Error("subagents could not be loaded yet", "err", err)
	}
	if listener != m.Session() {
		m.In = listener
	}
	return m
}

// stopTurns ends the turn under way and all subagents of the session (D-093). What
// the turn begins from then on finds that it is stopped.
func stopTurns(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	mine := func(c tools.Subagent) bool {
		ofRun := c.At == m.At && strings.HasPrefix(string(c.Parent), runPrefix)
		return (ofRun || c.Parent == m.Session()) && !c.Said.After(m.Time)
	}
	n, err := p.subagents.Count(ctx, mine)
	n += p.config.Background.StopMatching(m.Session(), "all")
	running := p.activities.Interrupt(m, n, func(id chat.SessionID, a *activity.Activity) bool {
		return id == m.Session() || a.At == m.At && strings.HasPrefix(string(id), runPrefix)
	})
	switch err = errors.Join(err, p.subagents.CancelAll(ctx, mine)); {
	case err != nil:
		p.log.Error("could not stop all subagents", "session", m.Session(), "err", err)
		return p.texts.Subagents.NotAll, nil
	case running:
		return "", nil // the turn says so itself, in its last words
	case n > 0:
		return p.texts.Subagents.Stopped.With(p.texts.Subagents.Some.Of(n)), nil
	}
	return p.texts.Commands.NoStop, nil
}

// manageSubagents answers /agents.
func manageSubagents(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	c := subagents.Command{
		Supervisor: p.subagents,
		Texts:      p.texts,
		Deliver:    p.push,
		Doing: func(session chat.SessionID) string {
			a, _ := p.activities.Get(session)
			return a.Doing
		},
		Background: p.config.Background,
	}
	return c.Answer(ctx, m)
}
