// Package rewind finds the place from which a conversation goes on when a person goes
// back in it: when they change something that they said, want another answer, or return
// to a branch that they had left (see package branches).
package rewind

import (
	"cmp"
	"context"
	"slices"

	"parley/agent/conversation"
	"parley/agent/pastturns"
	"parley/branches"
	"parley/chat"
	"parley/tools"
)

// A Place is where a conversation goes on.
type Place struct {
	Known bool   // there is such a place
	From  uint64 // number of the record that it goes on from
	Away  bool   // something is left there, and so a Branched record is to be written

	calls []string // names of the tools that were called in what is left, and what such records name
}

// Find returns the place in the conversation under way of the session id that b names.
func Find(
	ctx context.Context, sessions *conversation.Sessions, id chat.SessionID, epoch int64, b chat.Branch,
) (Place, error) {
	f := finder{instead: b.Instead, after: b.After, answered: map[string]uint64{}}
	for r, err := range sessions.Records(ctx, id, epoch, 0) {
		if err != nil {
			return Place{}, err
		}
		f.add(r)
	}
	return f.place(), nil
}

// Left returns the names of the tools that changed something in what is left: all but
// those of which kit knows that they only read.
func (p Place) Left(kit *tools.Kit) []string { return Changing(p.calls, kit) }

// Changing returns calls, names of tools, once each and without those of which kit knows
// that they only read.
func Changing(calls []string, kit *tools.Kit) (names []string) {
	for _, name := range calls {
		known, _ := kit.Tool(name)
		if !known.ReadOnly && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// ChangingSteps is Changing of the calls that steps are. Without a kit nothing is known.
func ChangingSteps(steps []chat.Step, kit *tools.Kit) []string {
	if kit == nil {
		return nil
	}
	var calls []string
	for _, s := range steps {
		calls = append(calls, s.Tool)
	}
	return Changing(calls, kit)
}

// A finder reads the records of a conversation.
type finder struct {
	instead string
	after   []string

	tree     branches.Tree
	last     uint64
	turns    pastturns.Reader
	answered map[string]uint64 // by the IDs of messages: the record that ended their turn
	begun    uint64            // the first record of the turn that heard instead; 0: none did
	notes    []note
}

// A note is what a record tells of what would be left.
type note struct {
	seq   uint64
	calls []string
}

// add reads the next record.
func (f *finder) add(r conversation.NumberedRecord) {
	f.last = r.Seq
	ended, _ := f.turns.Add(r)
	f.turns.Open.Records = nil // nobody asks
	for _, m := range ended.Asked {
		f.answered[m.ID] = r.Seq
	}
	m := cmp.Or(r.Heard, r.Retried)
	switch {
	case r.Branched != nil:
		f.tree.GoOn(r.Seq, r.Branched.From)
	case m != nil:
		if m.ID == f.instead {
			f.begun = f.turns.Open.First
		}
		f.notes = append(f.notes, note{seq: r.Seq})
	case r.Finished != nil:
		f.notes = append(f.notes, note{r.Seq, []string{r.Finished.Name}})
	}
	if len(r.Left) > 0 {
		f.notes = append(f.notes, note{r.Seq, r.Left})
	}
}

// place returns the place.
func (f *finder) place() (p Place) {
	switch {
	case f.begun > 0 && f.instead != "":
		p.From = f.tree.Before(f.begun)
		p.Known = true
	default:
		for _, id := range f.after {
			if p.From, p.Known = f.answered[id]; p.Known {
				break
			}
		}
	}
	if !p.Known {
		return p
	}
	now := f.tree.Path(f.last)
	fork := now.Fork(f.tree.Path(p.From))
	p.Away = fork < p.From
	for _, n := range f.notes {
		if n.seq > fork && now.Has(n.seq) {
			p.Away = true
			p.calls = append(p.calls, n.calls...)
		}
	}
	return p
}
