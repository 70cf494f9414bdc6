package agent

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/agent/pastusage"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// spender returns for whom the answer to m is made. What a subagent spends is
// spent for the session or the run that it works for in the end.
func (p *Pool) spender(m chat.Message) budget.Spender {
	options := cmp.Or(m.Options, &chat.RunOptions{})
	session, _ := p.subagents.Roster().Root(m.Session())
	who := budget.Spender{
		Person:  chat.Whose(m.At, m.From, m.Group),
		Group:   m.Group,
		Session: session,
		Job:     options.Job,
		Run:     m.RunID(),
	}
	if job, isolated := strings.CutPrefix(string(session), runPrefix); isolated {
		who.Job = job
	}
	return who
}

// spend counts a request of the model, and with the first one the turn. If a
// tool answers, the turn is all there is to count.
func (t *turn) spend(ctx context.Context) error {
	o := t.openTurn()
	var plus budget.Amounts
	model := ""
	if conversation.DirectCalls(o.First()) == nil {
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

// limited ends the turn because of why, a limit. What was said and done stays. Jobs
// that have nothing else to say mention it once a day.
func (t *turn) limited(why error) error {
	o := t.openTurn()
	text := conversation.Join(o.Notice(), o.Text(), why.Error())
	e, isLimit := errors.AsType[*budget.LimitError](why)
	if o.First().Origin == chat.FromSchedule && o.Text() == "" && isLimit && e.Repeated {
		text = ""
	}
	if len(o.Answers()) > 0 {
		cut := &llm.Message{Role: llm.Assistant, Text: msgCutOver, Finish: llm.Stopped}
		t.session.Keep(conversation.Record{Said: cut})
	}
	return t.end(t.worker.hard, conversation.OverLimit, text)
}

// limitWarning returns what an answer says about limits that are nearly reached.
func (t *turn) limitWarning(ctx context.Context, how conversation.Outcome) string {
	m := t.openTurn().First()
	unread := conversation.IsQuiet(m) || m.Origin == chat.FromParent || m.Wanted().Format != nil
	if how != conversation.Answered || unread {
		return ""
	}
	return strings.Join(t.pool.budget.Warnings(ctx, t.pool.spender(m)), "\n")
}

// conversationEnded tells whoever keeps something for the conversation that it is over.
func (p *Pool) conversationEnded(id chat.SessionID) {
	p.budget.EndConversation(id)
	p.config.Left(id)
}

// importUsage gives the budget what was used before it counted by model. Nobody is
// answered until that is done, since answers would be counted twice. So it does not
// wait for what cannot be read: that usage is left out.
func (p *Pool) importUsage(ctx context.Context) error {
	return p.budget.Import(ctx, func(yield func(budget.Past, error) bool) {
		for past, err := range pastusage.All(ctx, p.sessions, p.config.Zone, p.log) {
			if !yield(budget.Past(past), err) {
				return
			}
		}
	})
}

// lendModel returns what lends models to the tools of t, at the expense of whom the answer to m is made for.
func lendModel(t *turn, m chat.Message) func(string) tools.LentModel {
	who := t.pool.spender(m)
	own := t.model
	return func(name string) tools.LentModel {
		model := t.settings.Models[name]
		if model.Model == nil {
			name = t.name
			model = own
		}
		metered := t.pool.budget.Meter(who, name, model.Model)
		return tools.LentModel{Model: metered, Name: name, MaxTokens: model.MaxTokens, Vision: model.Vision}
	}
}
