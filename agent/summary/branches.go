package summary

import (
	"slices"
	"time"

	"parley/agent/conversation"
	"parley/branches"
)

// branchEntries are what was said in a conversation, in all of its branches: what was
// left is archived, too, and what branches have in common once.
type branchEntries struct {
	zone    *time.Location
	records []conversation.NumberedRecord // that were applied
	tree    branches.Tree
	now     *conversation.History // of the branch under way
	left    conversation.Entries  // of the others
	over    map[uint64]bool       // the numbers of those that are in left, or were dropped
}

func newBranchEntries(zone *time.Location) *branchEntries {
	return &branchEntries{zone: zone, now: conversation.NewHistory(zone), over: map[uint64]bool{}}
}

// apply applies the next record.
func (b *branchEntries) apply(r conversation.NumberedRecord) {
	if r.Branched == nil {
		b.records = append(b.records, r)
		b.now.Apply(r.Seq, r.Record)
		return
	}
	b.tree.GoOn(r.Seq, r.Branched.From)
	b.records = append(b.records, r)
	path := b.tree.Path(r.Seq)
	b.leave(path)
	b.now = conversation.NewHistory(b.zone)
	for _, r := range b.records {
		if path.Has(r.Seq) {
			b.now.Apply(r.Seq, r.Record)
		}
	}
}

// leave keeps the entries that are not on path, the branch that is under way next.
func (b *branchEntries) leave(path branches.Path) {
	kept := map[uint64]bool{}
	for _, e := range b.now.EndedEntries() {
		if seq := e.Seq(); !path.Has(seq) && !b.over[seq] {
			b.left = append(b.left, e)
			kept[seq] = true
		}
	}
	for seq := range kept {
		b.over[seq] = true
	}
}

// drop drops what was summed up in the branch under way, and archived with that.
func (b *branchEntries) drop(from, upto uint64) {
	dropped := map[uint64]bool{}
	for _, e := range b.now.EndedEntries() {
		if seq := e.Seq(); from <= seq && seq <= upto {
			dropped[seq] = true
			b.over[seq] = true
		}
	}
	b.left = slices.DeleteFunc(b.left, func(e conversation.Entry) bool { return dropped[e.Seq()] })
	b.now.Drop(from, upto)
}

// ended returns the entries of the turns that have ended, in their order.
func (b *branchEntries) ended() conversation.Entries {
	all := b.left
	for _, e := range b.now.EndedEntries() {
		if !b.over[e.Seq()] {
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b conversation.Entry) int { return int(a.Seq()) - int(b.Seq()) })
	return all
}
