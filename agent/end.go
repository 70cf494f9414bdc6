package agent

import (
	"context"
	"errors"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/live"
	"parley/agent/modelerrors"
	"parley/agent/subagents"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

// broken ends a turn that err, of ctx or of the model, broke off. Shutting down, closing the
// store, and others who appended to its log leave it open: the next try reads that anew.
func (t *turn) broken(ctx context.Context, err error) error {
	isLeft := errors.Is(err, tools.ErrClosing) || errors.Is(err, store.ErrConflict)
	if err == nil || t.worker.hard.Err() != nil || isLeft {
		return err
	}
	o := t.openTurn()
	if o == nil { // it has ended, and only its reply is not sent yet
		return err
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, activity.ErrStopped):
		return t.stopped(t.worker.hard)
	case errors.Is(cause, activity.ErrForgotten):
		t.session.History.End(conversation.End{Outcome: conversation.Stopped}) // for reportEnd
		done := t.completion(t.deliveries)
		if err := done.reportEnd(t.worker.hard); err != nil {
			return err
		}
		return done.removeDeliveries(t.worker.hard)
	}
	if !o.EndedByTool() && t.canWaitForModel(err) {
		return t.waitForModel(err)
	}
	t.pool.log.Error("turn failed", "session", t.session.ID, "model", t.name, "err", err)
	if o.EndedByTool() { // the person has been told everything
		return t.end(t.worker.hard, conversation.Answered, t.text())
	}
	return t.end(t.worker.hard, conversation.Failed, t.failure(err))
}

// stopped ends the turn as the person asked, and keeps what was done. What they
// said before /stop and was not answered yet is recorded only.
func (t *turn) stopped(ctx context.Context) error {
	for _, c := range t.openTurn().Unanswered() {
		text := msgNotRun
		if t.openTurn().Started(c.ID) {
			text = conversation.MsgInterrupted
		}
		toolRunner{t}.finish(c, tools.Result{Text: text, Failed: true})
	}
	t.worker.waiting = append(t.worker.waiting, t.worker.take()...)
	asked, by, stopped := t.pool.activities.Interruption(t.activity)
	t.stoppedBy = by
	n := 0
	for n < len(t.worker.waiting) && !t.worker.waiting[n].apart() && t.worker.waiting[n].Time.Before(asked) {
		n++
	}
	before := t.worker.shift(n)
	intake{t}.hear(before)
	t.deliveries = append(t.deliveries, before...)
	t.worker.joined = append(t.worker.joined, before...)
	text := conversation.Join(t.openTurn().Notice(), t.openTurn().Text(), t.part)
	cut := &llm.Message{Role: llm.Assistant, Text: conversation.Join(t.part, msgCutShort), Finish: llm.Stopped}
	t.session.Keep(conversation.Record{Said: cut})
	return t.end(ctx, conversation.Stopped, conversation.Join(text, subagents.StoppedWith(t.pool.texts, stopped)))
}

// end closes the turn: the last records and the reply in one Append, then the
// reply into the outbox, then the messages out of the inbox (P7). The Append reaches the
// disk with the reply, in one commit.
func (t *turn) end(ctx context.Context, how conversation.Outcome, text string) error {
	t.pool.activities.Close(t.session.ID) // whoever wants to stop it now is told that it is too late
	m := t.openTurn().First()
	r := m.Reply()
	note := t.limitWarning(ctx, how)
	want := m.Wanted()
	switch answers := t.openTurn().Answers(); {
	case how != conversation.Answered:
	case want.Format != nil: // the program reads nothing but the answer
		text = answers[len(answers)-1].Text
	case t.deliveries[0].waitedForModel():
		text = conversation.Join(t.pool.texts.Turn.Back, text)
	}
	r.Text = conversation.Join(text, note)
	r.Also = otherIDs(t.deliveries, r.Quote)
	if t.stoppedBy != "" {
		r.Also = append(r.Also, t.stoppedBy)
	}
	r.Files = t.openTurn().Attachments()
	r.Cut = want.MaxTokens > 0 && how == conversation.Answered && t.openTurn().CutAnswers() > 0
	r.Before = how == conversation.Answered && note == "" && want.Format == nil && t.openTurn().HasTold()
	r.Failed = how == conversation.Failed || how == conversation.OverLimit
	if m.In == "" {
		r.Steps, r.Taken = t.steps()
		r.Tokens = t.openTurn().Tokens()
	}
	end := &conversation.End{Outcome: how, Reply: conversation.ReplyToSend(m, how, r), Note: note}
	t.session.Keep(conversation.Record{Ended: end})
	flushCtx := ctx
	if end.Reply != nil && subagents.IDOf(m.In) == "" {
		flushCtx = store.Deferred(ctx)
	}
	if err := t.flush(flushCtx); err != nil {
		return err
	}
	t.outcome = how
	if t.live != nil {
		t.live.Close()
	}
	return t.completion(t.deliveries).run(ctx)
}

// steps returns one line about what tools did in the turn.
func (t *turn) steps() (line string, taken *chat.StepCounts) {
	if t.kit == nil || t.session.State.Quiet {
		return "", nil
	}
	return live.Summarize(t.pool.texts.Steps, t.kit, t.openTurn().Steps(), t.openTurn().AllAnswers())
}

// conclude ends the turn with the model's last answer, and reports whether it did. A
// subagent that was told something meanwhile answers that first, however many
// rounds it has had (C-033).
func (t *turn) conclude(ctx context.Context) (bool, error) {
	if n := t.openTurn().MessageCount(); t.subagent != nil {
		if err := t.join(ctx); err != nil || t.openTurn().MessageCount() > n {
			return false, err
		}
	}
	o := t.openTurn()
	how := conversation.Answered
	if o.Text() == "" && len(o.Told()) == 0 && !t.exhausted() {
		how = conversation.Failed
	}
	return true, t.end(t.worker.hard, how, t.text())
}

// exhausted reports whether all rounds of the turn were used, with tools.
func (t *turn) exhausted() bool {
	o := t.openTurn()
	return len(o.Answers()) >= t.settings.Rounds && len(o.Steps()) > 0
}

// failure tells why there is no answer: people in plain words, and the parent of a
// subagent exactly.
func (t *turn) failure(err error) string {
	var e *llm.Error
	if t.subagent != nil && errors.As(err, &e) {
		return "LLM API error: " + chat.Clip(err.Error(), 500, "")
	}
	return conversation.Join(t.openTurn().Notice(), t.openTurn().Text(), modelerrors.Kindly(t.pool.texts.Model, err))
}

// otherIDs returns the IDs of the messages of people in deliveries but for the one that
// the reply quotes.
func otherIDs(deliveries []delivery, quoted string) (ids []string) {
	for _, d := range deliveries {
		if d.ID != quoted && d.Origin == chat.FromPerson {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// text returns what the person is told at the end: what the model said, without
// what a tool has told them already (D-091).
func (t *turn) text() string {
	o := t.openTurn()
	text := o.Text()
	last := o.Answers()[len(o.Answers())-1]
	switch {
	case o.HasTold():
		text = o.TextBeforeLast()
	case text != "" && conversation.IsSilent(text) && !conversation.IsQuiet(o.First()): // a task done again
		text = t.pool.texts.Turn.NoNews
	case text != "" && last.Finish == llm.Filtered:
		text = conversation.Join(text, t.pool.texts.Turn.FilteredRest)
	case text != "" && last.Finish == llm.Length && o.First().Wanted().MaxTokens > 0:
	case text != "" && last.Finish == llm.Length:
		text = conversation.Join(text, t.pool.texts.Turn.TooLong)
	case text != "" && last.Empty():
		text = conversation.Join(text, t.pool.texts.Turn.NothingMore)
	case text != "":
	case last.Finish == llm.Filtered:
		text = t.pool.texts.Turn.Filtered
	case t.exhausted() && t.subagent != nil: // its parent words it
	case t.exhausted():
		text = t.pool.texts.Turn.OutOfRounds.With(t.settings.Rounds)
	case last.Finish == llm.Length:
		text = t.pool.texts.Turn.NoRoom
	default:
		text = t.pool.texts.Turn.NoAnswer
	}
	return conversation.Join(o.Notice(), text)
}
