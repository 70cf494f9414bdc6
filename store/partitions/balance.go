package partitions

import (
	"cmp"
	"slices"
)

// balance changes a so that members own the same number of partitions, give or take one. It gives away what nobody
// owns, and asks those who own too much to release the rest, which it can give away once they have. Owners that are not
// among the members are asked to release everything. It returns false if there was nothing to change.
func (a *assignment) balance(members map[MemberID]bool) (changed bool) {
	free, owned := a.owned()
	for id, ps := range owned {
		if !members[id] {
			changed = a.askFor(ps) || changed
		}
	}
	// Whoever has the most keeps the most, so that the fewest have to move.
	var order []MemberID
	for id := range members {
		order = append(order, id)
	}
	slices.SortFunc(order, func(x, y MemberID) int {
		return cmp.Or(cmp.Compare(len(owned[y]), len(owned[x])), cmp.Compare(x, y))
	})
	for i, id := range order {
		share := Count / len(order)
		if i < Count%len(order) {
			share++
		}
		kept := min(len(owned[id]), share)
		changed = a.askFor(owned[id][kept:]) || changed
		given := min(len(free), share-kept)
		for _, p := range free[:given] {
			a.Owners[p] = id
			changed = true
		}
		free = free[given:]
	}
	return changed
}

// owned returns the partitions that nobody owns, and those that each member owns and is not to release.
func (a *assignment) owned() (free []int, owned map[MemberID][]int) {
	owned = map[MemberID][]int{}
	for p, id := range a.Owners {
		switch {
		case id == "":
			free = append(free, p)
		case a.shouldWork(id, p):
			owned[id] = append(owned[id], p)
		}
	}
	return free, owned
}

// askFor asks the owners of those partitions to release them. It returns false if there are none.
func (a *assignment) askFor(ps []int) bool {
	for _, p := range ps {
		a.Releasing[p] = a.Version
	}
	return len(ps) > 0
}

// freeIf takes the partitions from their owners for which isFree returns true. It returns false if there are none.
func (a *assignment) freeIf(isFree func(owner MemberID, p int) bool) (freed bool) {
	for p, id := range a.Owners {
		if id != "" && isFree(id, p) {
			a.Owners[p] = ""
			delete(a.Releasing, p)
			freed = true
		}
	}
	return freed
}
