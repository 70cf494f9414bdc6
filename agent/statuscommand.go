package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"parley/agent/sessioncommands"
	"parley/agent/subagents"
	"parley/chat"
)

const maxSourcesText = 800 // bytes of the sources of untrusted content that /status names

// A Status tells how much a Pool has to do.
type Status struct {
	Running int           // turns under way
	Waiting int           // messages not answered yet, including those of the turns under way
	Oldest  time.Duration // age of the oldest message that a turn is under way for; 0 if none is
	Up      time.Duration // since the Pool was made
}

// Status returns how much p has to do.
func (p *Pool) Status(ctx context.Context) (Status, error) {
	waiting, err := p.inbox.Len(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("count messages not answered: %w", err)
	}
	running, oldest := p.activities.Count()
	return Status{Running: running, Waiting: waiting, Oldest: oldest, Up: time.Since(p.began)}, nil
}

// describeActivity tells what is under way in the session id.
func describeActivity(p *Pool, id chat.SessionID) string {
	a, found := p.activities.Get(id)
	if !found {
		return p.texts.Commands.Idle
	}
	return p.texts.Commands.Since.With(a.Doing, p.texts.Span.Of(time.Since(a.Since)))
}

func showStatus(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	s, err := p.Status(ctx)
	working, loading := p.subagents.Working(ctx, subagents.VisibleTo(m))
	_, model, unreadable := p.ModelsFor(ctx, m)
	if err = cmp.Or(err, loading, unreadable); err != nil {
		return "", fmt.Errorf("count what waits: %w", err)
	}
	say := p.texts.Commands
	lines := []string{say.Am.With(describeActivity(p, m.Session()))}
	if n := len(working); n > 0 {
		lines = append(lines, say.SubagentsWork.Of(n))
	}
	lines = append(lines,
		say.ModelIs.With(model),
		say.Up.With(p.texts.Span.Of(s.Up), s.Running, s.Waiting),
	)
	sources, err := p.sessions.UntrustedIn(ctx, m.Session(), m.From.Role == chat.Owner)
	if err != nil {
		p.log.Error("could not look for untrusted content", "session", m.Session(), "err", err)
	}
	if len(sources) > 0 {
		named := chat.Inline(strings.Join(sources, ", "), maxSourcesText)
		lines = append(lines, say.Untrusted.With("`"+strings.ReplaceAll(named, "`", "'")+"`"))
	}
	if m.From.Role == chat.Owner {
		lines = append(lines, deadLetterLines(ctx, p)...)
		if p.config.Report != nil {
			lines = append(lines, p.config.Report(ctx)...)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// deadLetterLines tells which messages could not be answered (P8).
func deadLetterLines(ctx context.Context, p *Pool) (lines []string) {
	all, err := p.letters.List(ctx)
	if err != nil {
		p.log.Error("could not list the dead letters", "err", err)
		return []string{p.texts.Commands.NotListed}
	}
	return sessioncommands.DeadLetters(p.texts.Commands, all)
}
