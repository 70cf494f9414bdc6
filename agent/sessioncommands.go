package agent

import (
	"context"
	"fmt"
	"slices"

	"parley/agent/conversation"
	"parley/agent/sessioncommands"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// upcoming returns the turn that would answer m: commands look at it when it is their
// turn.
func upcoming(ctx context.Context, p *Pool, m chat.Message) (*turn, error) {
	s, err := p.sessions.Open(ctx, m.Session())
	if err != nil {
		return nil, err
	}
	p.sessions.Cache(s) // nobody else is at work in it
	t := &turn{session: s, pool: p, worker: &worker{pool: p, id: s.ID, soft: ctx, hard: ctx}}
	return t, t.prepare(ctx, m)
}

// listTools lists what the one who asks may have used: with "all" under every
// name, and else as the model is told.
func listTools(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	next, err := upcoming(ctx, p, m)
	if err != nil {
		return "", fmt.Errorf("list the tools: %w", err)
	}
	_, arg := chat.Word(m.Text)
	return sessioncommands.Tools(p.texts.Commands, next.kit, arg == "all"), nil
}

// showContext tells how large the next request would be, and what of.
func showContext(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	next, err := upcoming(ctx, p, m)
	if err != nil {
		return "", fmt.Errorf("look at the next request: %w", err)
	}
	system, err := next.system(ctx)
	if err != nil {
		return "", fmt.Errorf("look at the next request: %w", err)
	}
	req := llm.Request{System: system, Tools: next.kit.Specs()}
	ratio := p.ratios.Of(next.name)
	view := next.session.History.View()
	view.ShowPictures(next.model.Vision)
	view.Fit(max(next.model.room(ratio, req.EstimateFixedTokens()), 256), conversation.ShortenedFirst(next.kit))
	return sessioncommands.Context(p.texts.Commands, sessioncommands.NextRequest{
		Model: next.name, Window: next.model.Window, MaxTokens: next.model.MaxTokens, Ratio: ratio,
		Instructions: len(system) / 4, Tools: llm.Request{Tools: req.Tools}.EstimateFixedTokens(), View: view,
	}), nil
}

// undoTurn puts back the files of the last turn. One /undo does so once, also
// when a crash brings it again.
func undoTurn(ctx context.Context, p *Pool, m chat.Message) (string, error) {
	if p.config.Undo == nil {
		return p.texts.Commands.CannotUndo, nil
	}
	if m.From.Role != chat.Owner {
		next, err := upcoming(ctx, p, m)
		if err != nil {
			return "", fmt.Errorf("undo the last turn: %w", err)
		}
		writesFiles := func(t tools.Tool) bool { return t.Category == "files" && !t.ReadOnly }
		if !slices.ContainsFunc(next.kit.Tools(), writesFiles) {
			return p.texts.Commands.NoUndo, nil
		}
	}
	again := false
	err := p.sessions.Update(ctx, m.Session(), func(s *conversation.State) {
		again = s.Undone == m.Key()
		s.Undone = m.Key()
	})
	if err != nil {
		return "", fmt.Errorf("undo the last turn: %w", err)
	}
	if again {
		return p.texts.Commands.Interrupted, nil
	}
	text, err := p.config.Undo(ctx, m.Session())
	if err != nil {
		return "", fmt.Errorf("undo the last turn: %w", err)
	}
	return text, nil
}
