// Package branches tells the branches of a log apart.
//
// A log is only ever appended to. Each entry goes on from the one before it, unless
// it says that it goes on from an earlier one: then what came in between is another
// branch, which stays as it is. The branch under way is that of the last entry. So
// nothing is ever moved or removed, one entry is all it takes to leave a branch or to
// come back to it, and a crash finds either the one branch or the other.
package branches

import (
	"cmp"
	"slices"
)

// A Tree is how the entries of a log follow each other. The zero Tree is that of a log
// with one branch.
type Tree struct {
	jumps []jump // in the order of the log
}

// A jump is an entry that goes on from an earlier one than that before it.
type jump struct{ seq, from uint64 }

// GoOn notes that the entry numbered seq, the latest so far, goes on from that numbered
// from; 0 stands for the beginning. What is not earlier is no such place, and ignored.
func (t *Tree) GoOn(seq, from uint64) {
	if from < seq {
		t.jumps = append(t.jumps, jump{seq, from})
	}
}

// HasBranches reports whether there is more than one branch.
func (t *Tree) HasBranches() bool { return len(t.jumps) > 0 }

// Before returns the number of the entry from which that numbered seq goes on.
func (t *Tree) Before(seq uint64) uint64 {
	if i, is := t.find(seq); is {
		return t.jumps[i].from
	}
	return seq - 1
}

// find returns the place of the last jump up to seq, -1 if there is none, and whether
// it is that of seq.
func (t *Tree) find(seq uint64) (i int, is bool) {
	i, is = slices.BinarySearchFunc(t.jumps, seq, func(j jump, seq uint64) int { return cmp.Compare(j.seq, seq) })
	if !is {
		i--
	}
	return i, is
}

// Path returns the entries from the first to that numbered last.
func (t *Tree) Path(last uint64) Path {
	var p Path
	for last > 0 {
		i, _ := t.find(last)
		if i < 0 {
			p = append(p, span{1, last})
			break
		}
		p = append(p, span{t.jumps[i].seq, last})
		last = t.jumps[i].from
	}
	slices.Reverse(p)
	return p
}

// Ends returns the numbers of the last entries of all branches of a log that ends with
// that numbered last, the latest first.
func (t *Tree) Ends(last uint64) []uint64 {
	ends := []uint64{last}
	for _, j := range slices.Backward(t.jumps) {
		if end := j.seq - 1; end > 0 && end != j.from {
			ends = append(ends, end)
		}
	}
	return ends
}

// A Path is the entries of one branch, from the first on.
type Path []span

// A span is entries that follow each other in the log.
type span struct{ first, last uint64 }

// Has reports whether the entry numbered seq is on p.
func (p Path) Has(seq uint64) bool {
	_, has := slices.BinarySearchFunc(p, seq, func(s span, seq uint64) int {
		switch {
		case s.last < seq:
			return -1
		case s.first > seq:
			return 1
		}
		return 0
	})
	return has
}

// Fork returns the number of the last entry that p and q have in common, 0 if they
// have none.
func (p Path) Fork(q Path) (last uint64) {
	for i := range min(len(p), len(q)) {
		if p[i].first != q[i].first {
			break
		}
		last = min(p[i].last, q[i].last)
		if p[i].last != q[i].last {
			break
		}
	}
	return last
}
