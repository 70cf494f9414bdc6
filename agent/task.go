package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/agent/subagents"
	"parley/agent/summary"
	"parley/chat"
	"parley/llm"
	"parley/store"
)

// nothingSaid is the outcome of such an answer.
const nothingSaid = "nothing to say"

// runPrefix begins the names of the sessions that jobs have of their own.
const runPrefix = "cron:"

// runsKept is how many conversations there are at most of a session whose
// tasks each begin one.
const runsKept = 20

// silent says whether an answer says that there is nothing to say.
func silent(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || strings.HasSuffix(strings.TrimRight(text, ".!*`\"' \n"), conversation.NothingToSay)
}

// spoken returns r, the answer to the turn under way, or nil if nobody is to
// hear it. Who stopped a scheduled task hears that it was, and a quiet one tells, too,
// that a limit is reached: nobody is to wait in vain for what it watches.
func (t *turn) spoken(how conversation.Outcome, r chat.Reply) *chat.Reply {
	m := t.openTurn().First()
	if m.Options != nil && r.Text == "" || conversation.IsQuiet(m) && how != conversation.Stopped && how != conversation.OverLimit && (how != conversation.Answered || silent(r.Text)) {
		return nil
	}
	return &r
}

// openFor returns the session of the turn that answers m. A fresh task begins
// a conversation, unless it has begun already; the oldest of too many are forgotten.
func (w *worker) openFor(m chat.Message) (*conversation.Session, error) {
	s, err := w.pool.sessions.Open(w.hard, w.id)
	if err != nil || m.Options == nil || !m.Options.Fresh || s.History.IsEmpty() || s.History.Knows(m) {
		return s, err
	}
	last := s.State.Epoch - runsKept + 1
	if last >= 0 {
		if err := w.pool.sessions.RemoveLog(w.hard, w.id, last); err != nil {
			return nil, err
		}
	}
	err = w.pool.sessions.Update(w.hard, w.id, func(s *conversation.State) {
		s.BeginConversation()
		s.First = max(last+1, s.First)
	})
	if err != nil {
		return nil, err
	}
	w.pool.conversationEnded(w.id)
	return w.pool.sessions.Open(w.hard, w.id)
}

// toolCalls returns the call that answers m instead of a model, if one does.
func toolCalls(m chat.Message) (calls []llm.ToolCall) {
	if e := m.Options; e != nil && e.Tool != "" {
		calls = []llm.ToolCall{{ID: "errand", Name: e.Tool, Args: e.Args}}
	}
	return calls
}

// byTool answers the turn by one call. What that told the person itself is not
// told again (D-091).
func (t *turn) byTool(ctx context.Context, calls []llm.ToolCall) error {
	o := t.openTurn()
	t.summaries.Verbatim = true // nobody is to wait or pay for what nobody may ever ask about
	if err := t.summaries.MakeRoom(ctx, t.worker.hard, summary.MaxSummaries*t.model.Window); err != nil {
		return err
	}
	if len(o.Answers()) == 0 {
		t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.Assistant, Calls: calls}})
	}
	if err := t.toolRunner().run(ctx); err != nil {
		return err
	}
	how, text := conversation.Answered, t.session.History.LatestResult()
	if o.Steps()[len(o.Steps())-1].State == chat.Failed {
		how, text = conversation.Failed, t.pool.texts.Turn.ToolFailed.With(calls[0].Name, conversation.Reason(text))
	} else if text = plain(text); len(o.Told()) > 0 {
		text = ""
	}
	return t.end(t.worker.hard, how, text)
}

// plain returns what a tool gave as people read it: of an envelope, what is in it.
func plain(text string) string {
	var e struct {
		Success *bool
		Data    any
	}
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &e) != nil || e.Success == nil {
		return text
	}
	fields, ok := e.Data.(map[string]any)
	if !ok {
		return value(e.Data)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		fmt.Fprintf(&b, "- %s: %s\n", name, value(fields[name]))
	}
	return strings.TrimSpace(b.String())
}

// value returns v as people read it.
func value(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	b, _ := json.Marshal(v) // it was JSON
	return string(b)
}

// tell tells how the scheduled task came out that the last turn answered. Where that
// was to be noted may be damaged, which is no reason to wait for ever (P21).
func (t *turn) tell(ctx context.Context) error {
	last := t.session.History.LastTurn()
	if t.pool.config.Ended == nil || last.First.Options == nil || last.First.Origin != chat.FromSchedule || t.jobs[0].Key() != last.First.Key() {
		return nil
	}
	e := End{Message: last.First, Outcome: string(last.Outcome), Text: last.Text, Tainted: last.Untrusted()}
	e.Sent = last.Reply != nil && subagents.IDOf(last.First.In) == ""
	if last.Outcome == conversation.Answered && last.Reply == nil && conversation.IsQuiet(last.First) {
		e.Outcome = nothingSaid
	}
	e.Tokens, e.Cost = t.pool.budget.RunUsage(ctx, runOf(last.First))
	return t.pool.insist(ctx, "note how "+last.First.Key()+" ended", func(ctx context.Context) error {
		return ignore(t.worker.pool.config.Ended(ctx, e), store.ErrDamaged)
	})
}
