package conversation

import (
	"context"
	"iter"
	"strings"

	"parley/branches"
	"parley/llm"
)

// A conversation may have branches: see package branches. A Branched record begins one,
// and the history is made of the records of the branch under way only. All others stay
// in the log, for transcripts, search, usage, and for whoever comes back to them.

// GoBack has the conversation of s go on where the Branched record says that s keeps. After
// an error it can be called again: the record is written once.
func (ss *Sessions) GoBack(ctx context.Context, s *Session) error {
	err := ss.Update(ctx, s.ID, func(st *State) {
		st.Forked = true
		st.From = 0 // another branch needs what this one does not
	})
	if err != nil {
		return err
	}
	if err := s.Save(ctx); err != nil {
		return err
	}
	st, _, err := ss.Lookup(ctx, s.ID)
	if err != nil {
		return err
	}
	again, err := ss.read(ctx, s.ID, st)
	if err != nil {
		return err
	}
	*s = *again
	return nil
}

// branchRecords yields the records of the branch under way in s, as many as its history
// is made of. It sets what of them a summary in another branch has archived, and
// ReadSince.
func (ss *Sessions) branchRecords(ctx context.Context, s *Session) iter.Seq2[NumberedRecord, error] {
	records := ss.Records(ctx, s.ID, s.State.Epoch, *s.ReadSince)
	if !s.State.Forked {
		return records
	}
	return func(yield func(NumberedRecord, error) bool) {
		tree, last, err := treeOf(records)
		if tree.HasBranches() { // they may go on from anywhere
			*s.ReadSince = 0
			records = ss.Records(ctx, s.ID, s.State.Epoch, 0)
			tree, last, err = treeOf(records)
		}
		if err != nil {
			yield(NumberedRecord{}, err)
			return
		}
		path := tree.Path(last)
		for r, err := range records {
			if err != nil {
				yield(r, err)
				return
			}
			if !path.Has(r.Seq) {
				if r.Summed != nil {
					s.archived = max(s.archived, min(r.Summed.Upto, path.Fork(tree.Path(r.Seq))))
				}
				continue
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

// treeOf returns the branches that records make, and the number of the last one.
func treeOf(records iter.Seq2[NumberedRecord, error]) (tree branches.Tree, last uint64, err error) {
	for r, err := range records {
		if err != nil {
			return tree, last, err
		}
		last = r.Seq
		if r.Branched != nil {
			tree.GoOn(r.Seq, r.Branched.From)
		}
	}
	return tree, last, nil
}

// noteLeft tells the model that what those tools changed stays changed.
func noteLeft(h *History, seq uint64, tools []string) {
	if len(tools) > 0 {
		text := msgLeft + strings.Join(tools, ", ") + "]"
		h.add(seq, Entry{}, llm.Message{Role: llm.User, Text: text})
	}
}
