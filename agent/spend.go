package agent

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"strings"
	"time"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/store"
)

// Budget returns the book of what was spent.
func (p *Pool) Budget() *budget.Book { return p.budget }

// spender returns for whom the answer to m is made. What a subagent spends is
// spent for the session or the run that it works for in the end.
func (p *Pool) spender(m chat.Message) budget.Spender {
	options := cmp.Or(m.Options, &chat.RunOptions{})
	session, _ := p.subagents.Roster().Root(m.Session())
	who := budget.Spender{
		Person: chat.Whose(m.At, m.From, m.Group), Group: m.Group, Session: session, Job: options.Job, Run: runOf(m),
	}
	if job, isolated := strings.CutPrefix(string(session), runPrefix); isolated {
		who.Job = job
	}
	return who
}

// runOf returns the ID of the run of a scheduled job that m is, or belongs to.
func runOf(m chat.Message) string {
	switch {
	case m.Options == nil || m.Options.Job == "":
		return ""
	case m.Origin == chat.FromSchedule:
		return m.ID
	}
	return m.Options.Run
}

// inheritedOptions returns the options of m as subagents that work for m inherit them.
func inheritedOptions(m chat.Message) *chat.RunOptions {
	if m.Options == nil {
		return nil
	}
	options := *m.Options
	options.Run = runOf(m)
	return &options
}

// tellRunUsage tells what a run has used by now, after a turn that a subagent did
// for it or that a report of one brought about.
func (t *turn) tellRunUsage(ctx context.Context) error {
	m := t.session.History.LastTurn().First
	run := runOf(m)
	if run == "" || m.Origin == chat.FromSchedule || t.pool.config.RunUsage == nil {
		return nil
	}
	tokens, cost := t.pool.budget.RunUsage(ctx, run)
	return t.pool.insist(ctx, "note what "+run+" has used", func(ctx context.Context) error {
		return ignore(t.pool.config.RunUsage(ctx, run, tokens, cost), store.ErrDamaged)
	})
}

// spend counts a request of the model, and with the first one the turn. If a
// tool answers, the turn is all there is to count.
func (t *turn) spend(ctx context.Context) error {
	o := t.openTurn()
	var plus budget.Amounts
	model := ""
	if toolCalls(o.First()) == nil {
		plus[budget.Requests] = 1
		model = t.name
	}
	if len(o.AllAnswers()) == 0 {
		plus[budget.Turns] = 1
	}
	return t.pool.budget.Spend(ctx, t.pool.spender(o.First()), model, plus)
}

// charge counts what so many requests of the turn took, also over a limit.
func (t *turn) charge(ctx context.Context, requests int, model string, u llm.Usage) {
	t.pool.budget.Charge(ctx, t.pool.spender(t.openTurn().First()), requests, model, u)
}

// limited ends the turn because of why, a limit. What was said and done stays.
// Jobs that have nothing else to say tell of it once a day.
func (t *turn) limited(why error) error {
	o := t.openTurn()
	text := conversation.Join(o.Notice(), o.Text(), why.Error())
	e, isLimit := errors.AsType[*budget.LimitError](why)
	if o.First().Origin == chat.FromSchedule && o.Text() == "" && isLimit && e.Repeated {
		text = ""
	}
	if len(o.Answers()) > 0 {
		cut := &llm.Message{Role: llm.Assistant, Text: wordsCutOver, Finish: llm.Stopped}
		t.session.Keep(conversation.Record{Said: cut})
	}
	return t.end(t.worker.hard, conversation.OverLimit, text)
}

// limitWarning tells with an answer what is running out.
func (t *turn) limitWarning(ctx context.Context, how conversation.Outcome) string {
	m := t.openTurn().First()
	if how != conversation.Answered || conversation.IsQuiet(m) || m.Origin == chat.FromParent {
		return ""
	}
	return strings.Join(t.pool.budget.Warnings(ctx, t.pool.spender(m)), "\n")
}

// conversationEnded tells those who keep something for a conversation that it is
// over.
func (p *Pool) conversationEnded(id chat.SessionID) {
	p.budget.EndConversation(id)
	p.config.Left(id)
}

// importUsage has the budget take in what was used before it counted by model.
// Nobody is answered before it is over, since answers would be counted twice. So
// it does not wait for what cannot be read: that usage is left out.
func (p *Pool) importUsage(ctx context.Context) error {
	leaveOut := func(session chat.SessionID, err error) (closing bool) {
		if ctx.Err() != nil || errors.Is(err, store.ErrClosed) {
			return true
		}
		p.log.Error("earlier usage cannot be read and is left out", "session", session, "err", err)
		return false
	}
	return p.budget.Import(ctx, func(yield func(budget.Past, error) bool) {
		for id, err := range p.sessions.IDs(ctx, "") {
			if err != nil {
				if leaveOut("", err) {
					yield(budget.Past{}, err)
				}
				return
			}
			for past, err := range p.pastUsage(ctx, id) {
				if err != nil && !leaveOut(id, err) {
					break
				}
				if !yield(past, err) {
					return
				}
			}
		}
	})
}

// pastUsage reads from the logs of a session what answers took. A turn is that of
// whom it answers.
func (p *Pool) pastUsage(ctx context.Context, id chat.SessionID) iter.Seq2[budget.Past, error] {
	return func(yield func(budget.Past, error) bool) {
		st, _, err := p.sessions.Lookup(ctx, id)
		if err != nil {
			yield(budget.Past{}, err)
			return
		}
		for _, epoch := range st.Epochs() {
			var turn budget.Past
			for r, err := range p.sessions.Records(ctx, id, epoch, 0) {
				if err != nil {
					yield(turn, err)
					return
				}
				switch m := cmp.Or(r.Heard, r.Retried); {
				case m != nil && turn.Person == "":
					turn.Day, turn.Person = m.Time.In(p.config.Zone).Format(time.DateOnly), chat.Whose(m.At, m.From, m.Group)
					turn.Turns = 1
				case r.IsAnswer():
					turn.Model, turn.Usage = r.Said.Model, r.Said.Usage
				case r.Summed != nil:
					turn.Model, turn.Usage = r.Summed.Model, r.Summed.Usage
				case r.Ended != nil:
					turn = budget.Past{}
				}
				if turn.Model == "" {
					continue
				}
				if epoch == st.Epoch {
					turn.Session = id
				}
				if !yield(turn, nil) {
					return
				}
				turn.Model, turn.Turns = "", 0
			}
		}
	}
}
