package timeline

import (
	"cmp"
	"context"
	"slices"

	"parley/agent/conversation"
	"parley/agent/live"
	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
)

// A Reader reads whole conversations for the owner.
type Reader struct {
	Pool  Pool
	Texts texts.Steps
	// Price returns what u costs of model, if that is known.
	Price func(model string, u llm.Usage) (cost float64, known bool)
}

// Turns returns the turns of the session id, oldest first, those of all its conversations. A session that nobody
// knows has none. What stands between turns, such as the beginning of another conversation, is a Turn by itself.
func (rd Reader) Turns(ctx context.Context, id chat.SessionID) (all []chat.Turn, err error) {
	now := account{reader: rd, kit: rd.Pool.Tools(ctx, id)}
	for p, err := range rd.Pool.Sessions().Passages(ctx, id) {
		if err != nil {
			return nil, err
		}
		for _, e := range p.Entries {
			if e.Kind == chat.Began || e.Kind == chat.Removed {
				all = now.endSuspended(now.end(all), false) // nobody goes on with them
				all = append(all, chat.Turn{Parts: []chat.Part{{Entry: e}}})
				continue
			}
			now.add(e, p.Record)
		}
		now.read(p.Record)
		switch {
		case p.Record.Ended != nil:
			all = now.end(all)
		case p.Record.Suspended != nil:
			now.suspend(*p.Record.Suspended)
		case p.Record.Resumed != "":
			all = now.resume(all, p.Record.Resumed)
		}
	}
	now.turn.Open = true
	return now.endSuspended(now.end(all), true), nil
}

// An account is what was read of a turn so far.
type account struct {
	reader Reader
	kit    *tools.Kit

	turn      turn
	suspended []suspended // they go on later
}

// A turn is what was read of one.
type turn struct {
	chat.Turn
	of    []string // for each part: key of the message that it shows, if it shows one
	round int      // parts before the calls of the last answer of the model
}

// A suspended turn is to be resumed for the message of that key, or for another of its messages.
type suspended struct {
	key string
	turn
}

// answers reports whether t answers the message of that key.
func (t turn) answers(key string) bool { return slices.Contains(t.of, key) }

// isFor reports whether t answers no message but that of that key.
func (t turn) isFor(key string) bool {
	return !slices.ContainsFunc(t.of, func(of string) bool { return of != "" && of != key })
}

// without returns a copy of t without the messages that are left out. Steps of the copy change by themselves.
func (t turn) without(leftOut func(key string) bool) turn {
	was := t
	t.Parts = nil
	t.of = nil
	for i, p := range was.Parts {
		if was.of[i] != "" && leftOut(was.of[i]) {
			if i < was.round {
				t.round--
			}
			continue
		}
		if p.Step != nil {
			step := *p.Step
			p.Step = &step
		}
		t.Parts = append(t.Parts, p)
		t.of = append(t.of, was.of[i])
	}
	return t
}

// end appends the turn to all, and begins the next one.
func (a *account) end(all []chat.Turn) []chat.Turn {
	if len(a.turn.Parts) > 0 {
		for i := range a.turn.Parts {
			if s := a.turn.Parts[i].Step; s != nil && s.State == chat.Running && !a.turn.Open {
				s.State = chat.Interrupted
			}
		}
		all = append(all, a.turn.Turn)
	}
	a.turn = turn{}
	return all
}

// endSuspended appends the suspended turns to all. Open ones may still go on.
func (a *account) endSuspended(all []chat.Turn, open bool) []chat.Turn {
	for _, s := range a.suspended {
		a.turn = s.turn
		a.turn.Open = open
		all = a.end(all)
	}
	a.suspended = nil
	return all
}

// suspend puts the turn aside, by the rule of pastturns: unless all of it is suspended, what joined it goes on without
// the message. What was done so far is then part of both, and what that used counts for the one that goes on.
func (a *account) suspend(why conversation.Suspension) {
	held := a.turn
	switch {
	case a.find(why.Key) >= 0:
		return
	case !held.answers(why.Key): // nothing had been heard of it
		held = turn{}
	case why.Whole || held.isFor(why.Key):
		a.turn = turn{}
	default:
		a.turn = held.without(func(key string) bool { return key == why.Key })
		held = held.without(func(key string) bool { return key != why.Key })
		held.Turn = chat.Turn{Parts: held.Parts}
	}
	a.suspended = append(a.suspended, suspended{why.Key, held})
}

// resume goes on with the turn that was suspended with the message of that key.
func (a *account) resume(all []chat.Turn, key string) []chat.Turn {
	i := a.find(key)
	if i < 0 {
		return all
	}
	if was := a.suspended[i].turn; len(was.Parts) > 0 {
		all = a.end(all)
		a.turn = was
	}
	a.suspended = slices.Delete(a.suspended, i, i+1)
	return all
}

// find returns the place of the suspended turn that answers the message of that key, or a negative number.
func (a *account) find(key string) int {
	return slices.IndexFunc(a.suspended, func(s suspended) bool { return s.key == key || s.answers(key) })
}

// add adds an entry of r. What a call gave is added to the call.
func (a *account) add(e chat.Entry, r conversation.Record) {
	p := chat.Part{Entry: e}
	of := ""
	if m := cmp.Or(r.Heard, r.Retried); m != nil && e.Kind != chat.Lost {
		of = m.Key()
	}
	switch e.Kind {
	case chat.Gave:
		if a.call(e.Call) != nil {
			return
		}
	case chat.Called:
		step := live.Describe(a.reader.Texts, a.kit, llm.ToolCall{ID: e.Call, Name: e.Who, Args: e.Text})
		step.State = chat.Waiting
		p.Step = &step
	}
	a.turn.Parts = append(a.turn.Parts, p)
	a.turn.of = append(a.turn.of, of)
}

// call returns the latest call of that ID, nil if there is none.
func (a *account) call(id string) *chat.Part {
	for i, p := range slices.Backward(a.turn.Parts) {
		if p.Step != nil && p.Step.Call == id {
			return &a.turn.Parts[i]
		}
	}
	return nil
}

// read takes in what r tells besides its entries, which were added.
func (a *account) read(r conversation.Record) {
	switch {
	case r.IsAnswer():
		a.spend(r.Said.Model, r.Said.Usage)
		a.turn.round = len(a.turn.Parts) - len(r.Said.Calls) // they were added
	case r.Summed != nil:
		a.spend(r.Summed.Model, r.Summed.Usage)
	case r.Finished != nil:
		a.finish(r)
	case r.RolledBack != "":
		for i := a.turn.round; i < len(a.turn.Parts); i++ {
			a.turn.Parts[i].Retried = a.turn.Parts[i].Step != nil
		}
	}
	for _, id := range r.Started {
		if p := a.call(id); p != nil && !p.Step.State.Over() {
			p.Step.State = chat.Running
		}
	}
}

// spend counts what a model used.
func (a *account) spend(model string, u llm.Usage) {
	a.turn.Read += u.In
	a.turn.Written += u.Out
	cost, known := a.reader.Price(model, u)
	if !known {
		a.turn.Unpriced += u.In + u.Out
		return
	}
	a.turn.Cost += cost
}

// finish adds what came of a call.
func (a *account) finish(r conversation.Record) {
	p := a.call(r.Finished.Call)
	if p == nil || p.Step.State.Over() {
		return
	}
	var result tools.Result
	if r.Result != nil {
		result = *r.Result
	}
	news := live.Outcome(*r.Finished, result, maxResult)
	news.Tool = p.Step.Tool
	if !result.Time.IsZero() {
		news.Began = result.Time
		news.Ended = result.Time.Add(result.Took)
	}
	merged := p.Step.Merge(news)
	p.Step = &merged
	p.Result = conversation.PlainResult(r.Finished.Text)
	p.By = result.By
	p.Receipt = result.Receipt
}
