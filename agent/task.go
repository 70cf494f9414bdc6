package agent

import (
	"context"

	"parley/agent/conversation"
	"parley/agent/summary"
	"parley/chat"
	"parley/llm"
)

// nothingSaid is the outcome of a quiet task that had nothing to say.
const nothingSaid = "nothing to say"

// runPrefix begins the names of the sessions that scheduled jobs have of their own.
const runPrefix = "cron:"

// openFor returns the session of the turn that answers m. A task with fresh options
// begins a conversation, unless it has done so before a crash.
func (w *worker) openFor(m chat.Message) (*conversation.Session, error) {
	s, err := w.pool.sessions.Open(w.hard, w.id)
	if err != nil || m.Options == nil || !m.Options.Fresh || s.History.IsEmpty() || s.History.Knows(m) {
		return s, err
	}
	if err := w.pool.sessions.BeginRun(w.hard, s); err != nil {
		return nil, err
	}
	w.pool.conversationEnded(w.id)
	return w.pool.sessions.Open(w.hard, w.id)
}

// explainTool answers a command to run a tool that names none, or that is not an owner's.
func explainTool(_ context.Context, p *Pool, m chat.Message) (string, error) {
	if m.From.Role != chat.Owner {
		return p.texts.Commands.ForOwners, nil
	}
	return p.texts.Commands.ToolUsage, nil
}

// answerByTool answers the turn by one call. What the tool told the person itself
// is not told again (D-091).
func (t *turn) answerByTool(ctx context.Context, calls []llm.ToolCall) error {
	o := t.openTurn()
	t.summaries.Verbatim = true // nobody is to wait or pay for what nobody may ever ask about
	if err := t.summaries.MakeRoom(ctx, t.worker.hard, summary.MaxSummaries*t.model.Window); err != nil {
		return err
	}
	if len(o.Answers()) == 0 {
		calls[0] = t.kit.Inner(calls[0])
		t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.Assistant, Calls: calls}})
	}
	if err := (toolRunner{t}).run(ctx); err != nil {
		return err
	}
	text := t.session.History.LatestResult()
	if o.Steps()[len(o.Steps())-1].State != chat.Done {
		reason := conversation.Reason(text)
		if o.First().Origin == chat.FromPerson { // who calls a tool by hand wants to know
			reason = conversation.Failure(text)
		}
		failed := t.pool.texts.Turn.ToolFailed.With(calls[0].Name, reason)
		return t.end(t.worker.hard, conversation.Failed, failed)
	}
	if len(o.Told()) > 0 {
		text = ""
	}
	return t.end(t.worker.hard, conversation.Answered, conversation.PlainResult(text))
}
