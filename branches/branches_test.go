package branches_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"parley/branches"
)

// The entries 1 to 4 are said, 3 is said anew as 5, the first branch goes on with 7,
// and the whole begins anew with 8.
func example() *branches.Tree {
	t := &branches.Tree{}
	t.GoOn(5, 2)
	t.GoOn(7, 4)
	t.GoOn(8, 0)
	return t
}

func entries(p branches.Path, last uint64) (all []uint64) {
	for seq := range last + 1 {
		if p.Has(seq) {
			all = append(all, seq)
		}
	}
	return all
}

func TestPath(t *testing.T) {
	for last, want := range map[uint64][]uint64{
		0: nil, 2: {1, 2}, 4: {1, 2, 3, 4}, 6: {1, 2, 5, 6}, 7: {1, 2, 3, 4, 7}, 9: {8, 9},
	} {
		if got := entries(example().Path(last), 9); !slices.Equal(got, want) {
			t.Errorf("path to %d is %v, want %v", last, got, want)
		}
	}
}

func TestBefore(t *testing.T) {
	for seq, want := range map[uint64]uint64{1: 0, 3: 2, 5: 2, 6: 5, 7: 4, 8: 0} {
		if got := example().Before(seq); got != want {
			t.Errorf("%d goes on from %d, want %d", seq, got, want)
		}
	}
}

func TestFork(t *testing.T) {
	for _, c := range [][3]uint64{{4, 6, 2}, {7, 4, 4}, {7, 6, 2}, {9, 7, 0}, {6, 6, 6}, {1, 6, 1}} {
		p, q := example().Path(c[0]), example().Path(c[1])
		if p.Fork(q) != c[2] || q.Fork(p) != c[2] {
			t.Errorf("paths to %d and %d part after %d and %d, want %d", c[0], c[1], p.Fork(q), q.Fork(p), c[2])
		}
	}
}

func TestEnds(t *testing.T) {
	if got := example().Ends(9); !slices.Equal(got, []uint64{9, 7, 6, 4}) {
		t.Errorf("branches end with %v", got)
	}
}

// What a damaged entry says leads nowhere.
func TestGoOnFromLater(t *testing.T) {
	var tree branches.Tree
	tree.GoOn(3, 3)
	tree.GoOn(4, 9)
	if tree.HasBranches() || !tree.Path(5).Has(3) {
		t.Error("an entry goes on from a later one")
	}
}

// Any log gives the paths that following each entry to the one before it gives.
func TestPathsOfAnyLog(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		var tree branches.Tree
		const n = 30
		before := make([]uint64, n+1)
		for seq := uint64(1); seq <= n; seq++ {
			before[seq] = seq - 1
			if random.IntN(4) == 0 {
				before[seq] = random.Uint64N(seq)
				tree.GoOn(seq, before[seq])
			}
		}
		want := func(last uint64) (all []uint64) {
			for ; last > 0; last = before[last] {
				all = append(all, last)
			}
			slices.Reverse(all)
			return all
		}
		for last := range uint64(n + 1) {
			p := tree.Path(last)
			if got := entries(p, n); !slices.Equal(got, want(last)) {
				t.Fatalf("path to %d of %v is %v, want %v", last, before[1:], got, want(last))
			}
			other := random.Uint64N(n + 1)
			fork := uint64(0)
			for _, seq := range want(last) {
				if slices.Contains(want(other), seq) {
					fork = seq
				}
			}
			if got := p.Fork(tree.Path(other)); got != fork {
				t.Fatalf("paths to %d and %d of %v part after %d, want %d", last, other, before[1:], got, fork)
			}
		}
	}
}
