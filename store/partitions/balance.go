package partitions

import (
	"cmp"
	"slices"
)

// balance changes a so that members own the same number of partitions, give or take one. It gives away what nobody
// owns, and asks those who own too much to leave the rest, which it can give away once they have. Whoever is no member
// is asked to leave all. It returns false if there was nothing to change.
func (a *assignment) balance(members []string) (changed bool) {
	free, owned := a.owned()
	for id := range owned {
		if !slices.Contains(members, id) {
			changed = a.leave(owned[id]) || changed
		}
	}
	if len(members) == 0 {
		return changed
	}
	// Whoever has the most keeps the most, so that the fewest have to move.
	members = slices.SortedFunc(slices.Values(members), func(x, y string) int {
		return cmp.Or(cmp.Compare(len(owned[y]), len(owned[x])), cmp.Compare(x, y))
	})
	for i, id := range members {
		share := Count / len(members)
		if i < Count%len(members) {
			share++
		}
		kept := min(len(owned[id]), share)
		changed = a.leave(owned[id][kept:]) || changed
		given := min(len(free), share-kept)
		for _, p := range free[:given] {
			a.Owners[p] = id
			changed = true
		}
		free = free[given:]
	}
	return changed
}

// owned returns the partitions that nobody owns, and those that each member owns and is not to leave.
func (a *assignment) owned() (free []int, owned map[string][]int) {
	owned = map[string][]int{}
	for p, id := range a.Owners {
		switch {
		case id == "":
			free = append(free, p)
		case a.isOf(id, p):
			owned[id] = append(owned[id], p)
		}
	}
	return free, owned
}

// leave asks the owners of those partitions to leave them. It returns false if there are none.
func (a *assignment) leave(ps []int) bool {
	for _, p := range ps {
		a.Leaving[p] = a.Number
	}
	return len(ps) > 0
}

// release takes the partitions from their owners for which isFree returns true. It returns false if there are none.
func (a *assignment) release(isFree func(owner string, p int) bool) (released bool) {
	for p, id := range a.Owners {
		if id != "" && isFree(id, p) {
			a.Owners[p] = ""
			delete(a.Leaving, p)
			released = true
		}
	}
	return released
}
