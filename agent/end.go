package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/llm"
	"parley/tools"
)

// broken ends a turn that err, of ctx or of the model, broke off. Only the end
// of the house or of the store leaves it open.
func (t *turn) broken(ctx context.Context, err error) error {
	if err == nil || t.hard.Err() != nil || t.history.open == nil { // ended, and only its reply is not out yet
		return err
	}
	if errors.Is(context.Cause(ctx), errStopped) {
		return t.stopped(t.hard)
	}
	t.Log.Error("turn failed", "session", t.session.id, "model", t.name, "err", err)
	return t.end(t.hard, failed, joined(t.history.open.text(), llm.Kindly(err)))
}

// stopped ends the turn as the person asked, and keeps what was done. What
// they said before /stop and was not answered yet is only heard.
func (t *turn) stopped(ctx context.Context) error {
	for _, c := range t.history.open.unanswered() {
		text := wordsNotRun
		if t.history.open.started[c.ID] {
			text = wordsInterrupted
		}
		t.finished(c, tools.Result{Text: text, Failed: true})
	}
	t.waiting = append(t.waiting, t.take()...)
	for asked := t.asked(); len(t.waiting) > 0; {
		if j := t.waiting[0]; !j.Time.Before(asked) || durable[command(j.Text)] != "" {
			break
		}
		jobs := t.shift(1)
		t.hear(jobs)
		t.jobs = append(t.jobs, jobs...)
	}
	text := joined(t.history.open.text(), t.part)
	t.keep(record{Said: &llm.Message{Role: llm.Assistant, Text: joined(t.part, wordsCutShort), Finish: llm.Stopped}})
	return t.end(ctx, stopped, joined(text, wordsStopped))
}

// end closes the turn: the last records and the reply in one Append, then the
// reply into the outbox, then the messages out of the inbox (P7).
func (t *turn) end(ctx context.Context, how outcome, text string) error {
	e := ended{Outcome: how}
	if text != "" {
		r := t.history.open.first.Reply()
		r.Text, r.Also = text, t.others(r.Quote)
		e.Reply = &r
	}
	t.keep(record{Ended: &e})
	if err := t.flush(ctx); err != nil {
		return err
	}
	if t.live != nil {
		t.live.Close()
	}
	return t.finish(ctx)
}

// others returns the IDs of the jobs but for the one that the reply quotes.
func (t *turn) others(quoted string) (ids []string) {
	for _, j := range t.jobs {
		if j.ID != quoted {
			ids = append(ids, j.ID)
		}
	}
	return ids
}

// finish does what is left to do once the end of the turn is on disk.
func (t *turn) finish(ctx context.Context) error {
	if r := t.history.last.reply; r != nil {
		if err := t.insist(ctx, "send reply", func(ctx context.Context) error { return t.Send(ctx, *r) }); err != nil {
			return err
		}
	}
	if err := t.done(ctx); err != nil {
		return err
	}
	t.remember(ctx)
	return nil
}

// done removes the jobs from the inbox.
func (t *turn) done(ctx context.Context) error {
	for _, j := range t.jobs {
		if err := t.insist(ctx, "end "+j.Key(), j.item.Done); err != nil {
			return err
		}
	}
	return nil
}

// remember notes, now and then, from where the log is worth reading.
func (t *turn) remember(ctx context.Context) {
	if len(t.history.entries) == 0 {
		return
	}
	from := t.history.entries[0].seq
	if from < t.From+256 {
		return
	}
	if err := t.update(ctx, t.session.id, func(s *state) { s.From = from }); err != nil {
		t.Log.Warn("beginning of a session not noted", "session", t.session.id, "err", err)
	}
}

// text is what the person is told at the end.
func (t *turn) text() string {
	o := t.history.open
	text := o.text()
	last := o.said[len(o.said)-1]
	switch {
	case text != "" && last.Finish == llm.Length:
		return joined(text, wordsTooLong)
	case text != "":
		return text
	case last.Finish == llm.Filtered:
		return wordsFiltered
	case len(o.said) >= t.Rounds:
		return fmt.Sprintf(wordsRounds, t.Rounds)
	}
	return wordsDone
}

// joined returns the texts that are not empty, a blank line between them.
func joined(texts ...string) string {
	kept := texts[:0:0]
	for _, s := range texts {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	return strings.Join(kept, "\n\n")
}
