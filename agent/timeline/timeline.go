// Package timeline tells people which steps led to a reply, also long after: it reads them from
// the log of the session, the one place that has them.
package timeline

import (
	"context"
	"fmt"

	"parley/agent/conversation"
	"parley/agent/live"
	"parley/agent/receipts"
	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

const (
	maxResult   = 8000 // characters of a result
	maxApprover = 120  // bytes of who approved a call
)

// A Pool has the logs of sessions, and the tools that there are now.
type Pool interface {
	Sessions() *conversation.Sessions
	Tools(ctx context.Context, id chat.SessionID) *tools.Kit
}

// Of returns a function that returns the steps to a reply of a session of p.
func Of(p Pool, say *texts.Agent) func(ctx context.Context, id chat.SessionID, reply string) ([]chat.Step, error) {
	return func(ctx context.Context, id chat.SessionID, reply string) ([]chat.Step, error) {
		return Steps(ctx, p.Sessions(), p.Tools(ctx, id), say, id, reply)
	}
}

// Steps returns the steps of the turn of the session id that the reply with that ID ended, in the order
// in which the model asked for them, as they were shown meanwhile, each with what /why says of it, and what
// the model said between them. kit has the tools that there are now. Without that turn, which may have been removed
// since, there are none.
func Steps(
	ctx context.Context, sessions *conversation.Sessions, kit *tools.Kit, say *texts.Agent,
	id chat.SessionID, reply string,
) (steps []chat.Step, err error) {
	for t, err := range receipts.All(ctx, sessions, id) {
		if err != nil {
			return nil, err
		}
		if t.Reply == "" || t.Reply != reply {
			continue
		}
		remarks := t.Remarks
		for i := range len(t.Calls) + 1 {
			for ; len(remarks) > 0 && remarks[0].Before == i; remarks = remarks[1:] {
				steps = append(steps, chat.Step{
					Call:  fmt.Sprintf("said %d", len(steps)),
					State: chat.Done,
					Words: chat.Clip(chat.HideLogins(remarks[0].Text), maxResult, "…"),
				})
			}
			if i < len(t.Calls) {
				steps = append(steps, step(kit, say, t.Calls[i]))
			}
		}
		return steps, nil
	}
	return nil, nil
}

// step returns the step that c was.
func step(kit *tools.Kit, say *texts.Agent, c receipts.Call) chat.Step {
	s := live.Describe(say.Steps, kit, c.ToolCall)
	if c.Outcome == receipts.NotMade || c.Result.Text == "" && c.Outcome == receipts.Interrupted {
		s.State = chat.Interrupted
	} else {
		m := llm.Message{Call: c.ID, Name: c.Name, Text: c.Result.Text}
		news := live.Outcome(m, c.Result, maxResult)
		news.Tool = s.Tool
		if !c.Result.Time.IsZero() {
			news.Began = c.Result.Time
			news.Ended = c.Result.Time.Add(c.Result.Took)
		}
		s = s.Merge(news)
		s.Pictures = news.Pictures
	}
	s.Receipt = &chat.Receipt{
		Digest:  c.Result.Receipt,
		By:      chat.Inline(c.Result.By, maxApprover),
		Note:    receipts.Note(say.Why, c),
		Altered: c.Outcome == receipts.Altered,
	}
	return s
}
