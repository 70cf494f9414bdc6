package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/agent/live"
	"parley/agent/subagents"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// broken ends a turn that err, of ctx or of the model, broke off. Only the end
// of the house or of the store leaves it open.
func (t *turn) broken(ctx context.Context, err error) error {
	o := t.openTurn()
	if err == nil || t.worker.hard.Err() != nil || o == nil || errors.Is(err, tools.ErrClosing) { // o == nil: it ended, and only its reply is not out yet
		return err
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errStopped):
		return t.stopped(t.worker.hard)
	case errors.Is(cause, errForgotten):
		t.session.History.End(conversation.End{Outcome: conversation.Stopped}) // which is all that is still told of it
		if err := t.tell(t.worker.hard); err != nil {
			return err
		}
		return t.done(t.worker.hard)
	}
	if !o.EndedByTool() && t.canWaitForModel(err) {
		return t.waitForModel(err)
	}
	t.pool.log.Error("turn failed", "session", t.session.ID, "model", t.name, "err", err)
	if o.EndedByTool() { // all is said
		return t.end(t.worker.hard, conversation.Answered, t.text())
	}
	return t.end(t.worker.hard, conversation.Failed, t.failure(err))
}

// stopped ends the turn as the person asked, and keeps what was done. What
// they said before /stop and was not answered yet is only heard.
func (t *turn) stopped(ctx context.Context) error {
	for _, c := range t.openTurn().Unanswered() {
		text := wordsNotRun
		if t.openTurn().Started(c.ID) {
			text = conversation.MsgInterrupted
		}
		t.toolRunner().finish(c, tools.Result{Text: text, Failed: true})
	}
	t.worker.waiting = append(t.worker.waiting, t.worker.take()...)
	t.pool.mu.Lock()
	asked, stopped := t.run.asked, t.run.subagents
	t.pool.mu.Unlock()
	n := 0
	for n < len(t.worker.waiting) && !t.worker.waiting[n].apart() && t.worker.waiting[n].Time.Before(asked) {
		n++
	}
	before := t.worker.shift(n)
	t.hear(before)
	t.jobs, t.worker.joined = append(t.jobs, before...), append(t.worker.joined, before...)
	text := conversation.Join(t.openTurn().Notice(), t.openTurn().Text(), t.part)
	t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.Assistant, Text: conversation.Join(t.part, wordsCutShort), Finish: llm.Stopped}})
	return t.end(ctx, conversation.Stopped, conversation.Join(text, t.pool.stoppedWith(stopped)))
}

// end closes the turn: the last records and the reply in one Append, then the
// reply into the outbox, then the messages out of the inbox (P7).
func (t *turn) end(ctx context.Context, how conversation.Outcome, text string) error {
	t.pool.mu.Lock()
	if r := t.pool.running[t.session.ID]; r != nil {
		r.said = time.Time{} // whoever wants to stop it from now on comes too late, and is told so
	}
	t.pool.mu.Unlock()
	m := t.openTurn().First()
	r := m.Reply()
	note := t.limitWarning(ctx, how)
	if how == conversation.Answered && t.jobs[0].waitedForModel() {
		text = conversation.Join(t.pool.texts.Turn.Back, text)
	}
	r.Text, r.Also, r.Failed = conversation.Join(text, note), t.others(r.Quote), how == conversation.Failed || how == conversation.OverLimit
	if m.In == "" {
		r.Steps, r.Tokens = t.steps(), t.openTurn().Tokens()
	}
	t.outcome = how
	t.session.Keep(conversation.Record{Ended: &conversation.End{Outcome: how, Reply: t.spoken(how, r), Note: note}})
	if err := t.flush(ctx); err != nil {
		return err
	}
	if t.live != nil {
		t.live.Close()
	}
	return t.finish(ctx)
}

// steps returns one line about what tools did in the turn.
func (t *turn) steps() string {
	if t.kit == nil || t.session.State.Quiet {
		return ""
	}
	return live.Summarize(t.pool.texts.Steps, t.kit, t.openTurn().Steps())
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
	return conversation.Join(t.openTurn().Notice(), t.openTurn().Text(), Kindly(t.pool.texts.Model, err))
}

// others returns the IDs of the jobs but for the one that the reply quotes.
func (t *turn) others(quoted string) (ids []string) {
	for _, j := range t.jobs {
		if j.ID != quoted && j.Origin == chat.FromPerson {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// finish does what is left to do once the end of the turn is on disk.
func (t *turn) finish(ctx context.Context) error {
	if r := t.session.History.LastTurn().Reply; r != nil && subagents.IDOf(t.session.History.LastTurn().First.In) == "" {
		if err := t.pool.insist(ctx, "send reply", func(ctx context.Context) error { return t.pool.config.Send(ctx, *r) }); err != nil {
			return err
		}
	}
	t.remember(ctx)
	if err := t.pool.insist(ctx, "settle subagents", t.settleSubagents); err != nil {
		return err
	}
	if err := t.tell(ctx); err != nil {
		return err
	}
	if err := t.tellRunUsage(ctx); err != nil {
		return err
	}
	return t.done(ctx)
}

// done removes the jobs from the inbox.
func (t *turn) done(ctx context.Context) error {
	for _, j := range t.jobs {
		if err := t.worker.dequeue(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

// lastEvery is how often the time of the last turn is noted.
const lastEvery = 10 * time.Minute

// remember notes, now and then, what is to be known of the session without
// reading its log, and from where the log is worth reading.
func (t *turn) remember(ctx context.Context) {
	from, title, now := t.session.State.From, cmp.Or(t.session.State.Title, t.session.History.Title()), time.Now()
	if first := t.session.History.FirstNeeded(); first >= from+256 {
		from = first
	}
	if from == t.session.State.From && title == t.session.State.Title && !t.session.State.Began.IsZero() && now.Sub(t.session.State.Last).Abs() < lastEvery {
		return
	}
	err := t.pool.sessions.Update(ctx, t.session.ID, func(s *conversation.State) {
		if s.From, s.Title, s.Last = from, title, now; s.Began.IsZero() {
			s.Began = t.jobs[0].Time
		}
	})
	if err != nil {
		t.pool.log.Warn("state of a session not noted", "session", t.session.ID, "err", err)
	}
}

// text is what the person is told at the end: what the model said, without what
// a tool has told them already (D-091).
func (t *turn) text() string {
	o := t.openTurn()
	text, last := o.Text(), o.Answers()[len(o.Answers())-1]
	told := func(s string) bool { return last.Text == "" || alike(s, last.Text) }
	switch {
	case slices.ContainsFunc(o.Told(), told):
		text = o.TextBeforeLast()
	case text != "" && silent(text) && !conversation.IsQuiet(o.First()): // a quiet errand that is answered again
		text = t.pool.texts.Turn.NoNews
	case text != "" && last.Finish == llm.Filtered:
		text = conversation.Join(text, t.pool.texts.Turn.FilteredRest)
	case text != "" && last.Finish == llm.Length:
		text = conversation.Join(text, t.pool.texts.Turn.TooLong)
	case text != "" && last.Empty():
		text = conversation.Join(text, t.pool.texts.Turn.NothingMore)
	case text != "":
	case last.Finish == llm.Filtered:
		text = t.pool.texts.Turn.Filtered
	case t.exhausted() && t.subagent != nil: // who reads it finds words of their own
	case t.exhausted():
		text = t.pool.texts.Turn.OutOfRounds.With(t.settings.Rounds)
	case last.Finish == llm.Length:
		text = t.pool.texts.Turn.NoRoom
	default:
		text = t.pool.texts.Turn.NoAnswer
	}
	return conversation.Join(o.Notice(), text)
}

// alike says whether a and b are the same words.
func alike(a, b string) bool {
	return strings.EqualFold(strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " "))
}
