package timeline

import (
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
				all = now.end(all)
				all = append(all, chat.Turn{Parts: []chat.Part{{Entry: e}}})
				continue
			}
			now.add(e)
		}
		now.read(p.Record)
		switch {
		case p.Record.Ended != nil:
			all = now.end(all)
		case p.Record.Suspended != nil:
			all = now.suspend(all)
		case p.Record.Resumed != "":
			all = now.resume(all)
		}
	}
	now.turn.Open = true
	all = now.end(all)
	now.turn = now.suspended
	return now.end(all), nil
}

// An account is what was read of a turn so far.
type account struct {
	reader Reader
	kit    *tools.Kit

	turn      chat.Turn
	suspended chat.Turn // goes on later
	round     int       // parts before the calls of the last answer of the model
}

// end appends the turn to all, and begins the next one.
func (a *account) end(all []chat.Turn) []chat.Turn {
	if len(a.turn.Parts) > 0 {
		for i := range a.turn.Parts {
			if s := a.turn.Parts[i].Step; s != nil && s.State == chat.Running && !a.turn.Open {
				s.State = chat.Interrupted
			}
		}
		all = append(all, a.turn)
	}
	a.turn, a.round = chat.Turn{}, 0
	return all
}

// suspend puts the turn aside.
func (a *account) suspend(all []chat.Turn) []chat.Turn {
	held := a.turn
	a.turn = a.suspended // mostly none
	all = a.end(all)
	held.Open = true
	a.suspended = held
	return all
}

// resume goes on with the turn that was put aside.
func (a *account) resume(all []chat.Turn) []chat.Turn {
	all = a.end(all)
	a.turn = a.suspended
	a.turn.Open = false
	a.suspended = chat.Turn{}
	return all
}

// add adds an entry. What a call gave is added to the call.
func (a *account) add(e chat.Entry) {
	p := chat.Part{Entry: e}
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
		a.round = len(a.turn.Parts) - len(r.Said.Calls) // they were added
	case r.Summed != nil:
		a.spend(r.Summed.Model, r.Summed.Usage)
	case r.Finished != nil:
		a.finish(r)
	case r.RolledBack != "":
		for i := a.round; i < len(a.turn.Parts); i++ {
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
