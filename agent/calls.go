package agent

import (
	"cmp"
	"context"
	"iter"
	"slices"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/tools"
)

// Calls returns what became of each call that was ever made in the session id,
// oldest first and those of a round in the order asked, those that were taken
// back too (A-014, E-023). Of a session that nobody knows the error is
// store.ErrNotFound.
func (p *Pool) Calls(ctx context.Context, id chat.SessionID) (all []tools.Record, err error) {
	kit, err := p.settings.Load().Kit(ctx, tools.Scope{Session: id, From: chat.Sender{Role: chat.Owner}})
	if err != nil { // what was done can be told all the same
		kit = &tools.Kit{}
	}
	round, open := 0, map[string]llm.ToolCall{}
	asked := map[string]int{} // calls of the round, by their place in it
	first := 0                // record of the round
	inOrder := func() {
		slices.SortStableFunc(all[first:], func(a, b tools.Record) int { return asked[a.ID] - asked[b.ID] })
		first = len(all)
		clear(asked)
	}
	for r, err := range p.journal(ctx, id) {
		switch {
		case err != nil:
			return nil, err
		case r.answer():
			inOrder()
			round++
			for i, c := range r.Said.Calls {
				open[c.ID] = c
				asked[c.ID] = i
			}
		case r.Finished != nil:
			c := llm.ToolCall{ID: r.Finished.Call, Name: r.Finished.Name, Args: open[r.Finished.Call].Args}
			result := *cmp.Or(r.Result, &tools.Result{})
			if !result.Time.IsZero() {
				result.Time = result.Time.In(p.Zone)
			}
			rec := tools.NewRecord(c, r.Finished.Text, result, "main", round)
			known, _ := kit.Tool(c.Name)
			if name := cmp.Or(known.AliasOf, known.Name, c.Name); name != c.Name {
				rec.Meta.Tool, rec.Meta.Alias = name, c.Name
			}
			all = append(all, rec)
		case r.Ended != nil:
			round, open = 0, map[string]llm.ToolCall{}
		}
	}
	inOrder()
	return all, nil
}

// An epochal is a record and the conversation that it is of.
type epochal struct {
	numbered
	epoch int64
}

// journal yields all records of the session id, oldest first. If there is no
// such session the error is store.ErrNotFound.
func (p *Pool) journal(ctx context.Context, id chat.SessionID) iter.Seq2[epochal, error] {
	return func(yield func(epochal, error) bool) {
		st, rev, err := p.lookup(ctx, id)
		there := rev > 0
		for _, epoch := range st.epochs() {
			for r, bad := range p.records(ctx, id, epoch, 0) {
				there, err = true, cmp.Or(err, bad)
				if err == nil && !yield(epochal{r, epoch}, nil) {
					return
				}
			}
		}
		if err == nil && !there {
			err = store.ErrNotFound
		}
		if err != nil {
			yield(epochal{}, err)
		}
	}
}
