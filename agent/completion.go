package agent

import (
	"context"
	"slices"
	"strings"

	"parley/agent/conversation"
	"parley/agent/subagents"
	"parley/chat"
	"parley/store"
	"parley/tools"
)

// A completion does what is left to do once the end of a turn is on disk. After a
// crash it is done again: each part of it takes effect once.
type completion struct {
	pool       *Pool
	worker     *worker
	session    *conversation.Session
	deliveries []delivery // that the turn has answered
	kit        *tools.Kit // of the turn; nil: nobody knows what its tools did
}

// completion returns what is left to do for deliveries, which the turn has answered.
func (t *turn) completion(deliveries []delivery) completion {
	return completion{pool: t.pool, worker: t.worker, session: t.session, deliveries: deliveries, kit: t.kit}
}

// run sends the reply, tells everybody concerned how the turn ended, and removes
// the deliveries from the inbox.
func (c completion) run(ctx context.Context) error {
	if err := c.sendReply(ctx); err != nil {
		return err
	}
	c.noteState(ctx)
	if err := c.pool.insist(ctx, "settle subagents", c.settleSubagents); err != nil {
		return err
	}
	if err := c.reportEnd(ctx); err != nil {
		return err
	}
	if err := c.reportRunUsage(ctx); err != nil {
		return err
	}
	return c.removeAnswered(ctx)
}

// sendReply puts the reply into the outbox. That of a subagent goes to its parent.
func (c completion) sendReply(ctx context.Context) error {
	last := c.session.History.LastTurn()
	if last.Reply == nil || subagents.IDOf(last.First.In) != "" {
		return nil
	}
	return c.pool.insist(ctx, "send reply", func(ctx context.Context) error {
		return c.pool.config.Send(ctx, *last.Reply)
	})
}

// noteState notes what is to be known of the session without reading its log.
func (c completion) noteState(ctx context.Context) {
	if err := c.pool.sessions.NoteTurn(store.Deferred(ctx), c.session, c.deliveries[0].Time); err != nil {
		c.pool.log.Warn("could not note the state of a session", "session", c.session.ID, "err", err)
	}
}

// settleSubagents stops the subagents that the turn was waiting for. If it was the
// turn of a subagent, its outcome is recorded.
func (c completion) settleSubagents(ctx context.Context) error {
	session := c.session.ID
	last := c.session.History.LastTurn()
	supervisor := c.pool.subagents
	supervisor.Roster().EndTurn(last.First.Key())
	err := supervisor.CancelAll(ctx, func(s tools.Subagent) bool { return s.Parent == session && !s.Report })
	id := subagents.IDOf(session)
	if err != nil || id == "" {
		return err
	}
	state := tools.SubagentFailed
	switch last.Outcome {
	case conversation.Answered:
		state = tools.SubagentAnswered
	case conversation.Stopped:
		state = tools.SubagentStopped
	}
	return supervisor.Move(ctx, id, state, func(s *tools.Subagent) {
		s.Result = chat.Clip(strings.ToValidUTF8(last.Text, "\uFFFD"), tools.MaxSubagentText, "")
		s.Tainted = s.Tainted || last.Untrusted()
		s.Sources = chat.JoinSources(s.Sources, last.Sources...)
		s.Pure = state == tools.SubagentAnswered && c.onlyRead(last.Steps)
	})
}

// onlyRead reports whether all steps are known to be of read-only tools.
func (c completion) onlyRead(steps []chat.Step) bool {
	return c.kit != nil && !slices.ContainsFunc(steps, func(s chat.Step) bool {
		known, _ := c.kit.Tool(s.Tool)
		return !known.ReadOnly
	})
}

// reportEnd tells how the scheduled task came out that the turn answered. Where
// that is to be noted may be damaged, which is no reason to wait for ever (P21).
func (c completion) reportEnd(ctx context.Context) error {
	last := c.session.History.LastTurn()
	m := last.First
	isRun := m.Options != nil && m.Origin == chat.FromSchedule
	if c.pool.config.Ended == nil || !isRun || c.deliveries[0].Key() != m.Key() {
		return nil
	}
	e := End{
		Message: m,
		Outcome: string(last.Outcome),
		Text:    last.Text,
		Tainted: last.Untrusted(),
		Sent:    last.Reply != nil && subagents.IDOf(m.In) == "",
	}
	if last.Outcome == conversation.Answered && last.Reply == nil && conversation.IsQuiet(m) {
		e.Outcome = nothingSaid
	}
	e.Tokens, e.Cost = c.pool.budget.RunUsage(ctx, m.RunID())
	return c.pool.insist(ctx, "note how "+m.Key()+" ended", func(ctx context.Context) error {
		return ignore(c.pool.config.Ended(ctx, e), store.ErrDamaged)
	})
}

// reportRunUsage tells what a run of a job has used by now, after a turn that a
// subagent did for it or that a report of one brought about.
func (c completion) reportRunUsage(ctx context.Context) error {
	m := c.session.History.LastTurn().First
	run := m.RunID()
	if run == "" || m.Origin == chat.FromSchedule || c.pool.config.RunUsage == nil {
		return nil
	}
	tokens, cost := c.pool.budget.RunUsage(ctx, run)
	return c.pool.insist(ctx, "note what "+run+" has used", func(ctx context.Context) error {
		return ignore(c.pool.config.RunUsage(ctx, run, tokens, cost), store.ErrDamaged)
	})
}

// removeAnswered removes the deliveries from the inbox, in which a crash may leave them for
// a moment: the end of their turn in the log says that they were answered. Those that an
// earlier process left there may be under suspicion, and are removed for good.
func (c completion) removeAnswered(ctx context.Context) error {
	for _, d := range c.deliveries {
		dequeueCtx := ctx
		if !d.item.Again && d.resumed == nil {
			dequeueCtx = store.Deferred(ctx)
		}
		if err := c.worker.dequeue(dequeueCtx, d); err != nil {
			return err
		}
	}
	return nil
}

// removeDeliveries removes the deliveries from the inbox for good.
func (c completion) removeDeliveries(ctx context.Context) error {
	for _, d := range c.deliveries {
		if err := c.worker.dequeue(ctx, d); err != nil {
			return err
		}
	}
	return nil
}
