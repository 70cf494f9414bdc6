package conversation

import (
	"cmp"
	"context"
	"slices"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// Calls returns what became of each call that was ever made in the session id,
// oldest first and those of a round in the order asked, those that were taken
// back too (A-014, E-023). Of a session that nobody knows the error is
// store.ErrNotFound. The tools of kit tell which name is an alias.
func (ss *Sessions) Calls(ctx context.Context, id chat.SessionID, kit *tools.Kit) (all []tools.Record, err error) {
	round, open := 0, map[string]llm.ToolCall{}
	asked := map[string]int{} // calls of the round, by their place in it
	first := 0                // record of the round
	inOrder := func() {
		slices.SortStableFunc(all[first:], func(a, b tools.Record) int { return asked[a.ID] - asked[b.ID] })
		first = len(all)
		clear(asked)
	}
	for r, err := range ss.Journal(ctx, id) {
		switch {
		case err != nil:
			return nil, err
		case r.IsAnswer():
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
				result.Time = result.Time.In(ss.zone)
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
