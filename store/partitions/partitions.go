// Package partitions divides work among the processes that share a Store.
//
// The work is in [Count] partitions, and what has the same key is always in the same one. A process that wants to do
// work is a member. Each partition has one owner at most, which is a member. Who owns what is the assignment, one value
// in the Store. One of the members is the coordinator: it alone changes the assignment, so that all members own about
// the same number of partitions, and as few as possible change hands.
//
// A member has a lock, and is alive as long as that is held. It reads the assignment again and again, begins the work
// of a partition that it owns by now, and ends that of one which it is to leave. In its record it writes what it works
// on, and which assignment it has read. A partition gets another owner when the one before says that it has left it,
// or when the coordinator has got the lock of that one. So work is never done by two members at the same time,
// whatever their clocks say, and however late they read. Whoever is coordinator next needs to know no more than what
// is stored.
package partitions

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
	"time"

	"parley/store"
)

// Count is the number of partitions. It is part of the data of existing installations and never changes.
const Count = 1024

// Of returns the partition of key, from 0 to Count-1. It is the same in all processes and versions.
func Of(key string) int {
	h := fnv.New64a()
	h.Write([]byte(key))
	sum := h.Sum64()
	return int((sum ^ sum>>32) % Count) // the lowest bits alone are much alike for keys that are
}

// A Config is what a member is made of.
type Config struct {
	Store store.Store
	ID    string // of this member; no other one has it, had it, or will have it
	Name  string // what people call its process
	Log   *slog.Logger

	// Work does the work of a partition, in a goroutine of its own. Once leave is closed it begins nothing more,
	// finishes what it has begun and returns: only then another member can own the partition. When ctx ends, another
	// one may own it already: Work writes nothing any more and returns at once.
	Work func(ctx context.Context, partition int, leave <-chan struct{})
}

// The names of what is in the Store.
const (
	assignmentKey   = "assignment"
	coordinatorLock = "partitions"
)

func memberLock(id string) string { return "member " + id }

const (
	interval    = time.Second            // between two looks at the Store, of members and of the coordinator
	gatherDelay = 100 * time.Millisecond // until more may have ended, which is then written together
)

// A record is what a member says of itself.
type record struct {
	Name   string    `json:"name"`
	Joined time.Time `json:"joined"`
	Works  []int     `json:"works"`   // the partitions whose work it has not ended
	Seen   uint64    `json:"seen"`    // the number of the assignment that it acts on
	Leaves bool      `json:"leaving"` // it wants to own nothing any more
}

// hasLeft reports whether the member does not work on partition p any more, which the assignment of the number asked
// has asked it to leave; 0: none has.
func (r record) hasLeft(p int, asked uint64) bool {
	return asked > 0 && r.Seen >= asked && !slices.Contains(r.Works, p)
}

// records returns those of all members, by ID.
func records(s store.Store) store.Table[record] {
	return store.NewTable(s.Bucket(store.BucketMembers), store.Report[record])
}

// An assignment says who owns which partitions.
type assignment struct {
	Number uint64   // one more than that of the assignment before
	Owners []string // the member that owns each partition; "": nobody does
	// Leaving has the partitions that their owners are to leave, with the number of the assignment that said so first.
	Leaving map[int]uint64
}

// assignments returns the table with the one assignment.
func assignments(s store.Store) store.Table[assignment] {
	return store.NewTable(s.Bucket(store.BucketPartitions), store.Report[assignment])
}

// newAssignment returns the first assignment, in which nobody owns anything.
func newAssignment() assignment {
	return assignment{Owners: make([]string, Count), Leaving: map[int]uint64{}}
}

// next returns the assignment that follows a, of which nothing is changed yet.
func (a assignment) next() assignment {
	return assignment{Number: a.Number + 1, Owners: slices.Clone(a.Owners), Leaving: maps.Clone(a.Leaving)}
}

// isOf reports whether member id is to do the work of partition p.
func (a assignment) isOf(id string, p int) bool {
	_, leaving := a.Leaving[p]
	return a.Owners[p] == id && !leaving
}

// A stored is an assignment as JSON: a name is there once.
type stored struct {
	Number  uint64           `json:"number"`
	Owned   map[string][]int `json:"owned"` // by member
	Leaving map[int]uint64   `json:"leaving,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (a assignment) MarshalJSON() ([]byte, error) {
	owned := map[string][]int{}
	for p, id := range a.Owners {
		if id != "" {
			owned[id] = append(owned[id], p)
		}
	}
	return json.Marshal(stored{a.Number, owned, a.Leaving})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *assignment) UnmarshalJSON(body []byte) error {
	var s stored
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	*a = newAssignment()
	a.Number = s.Number
	maps.Copy(a.Leaving, s.Leaving)
	for id, owned := range s.Owned {
		for _, p := range owned {
			if p < 0 || p >= Count {
				return fmt.Errorf("there is no partition %d", p)
			}
			a.Owners[p] = id
		}
	}
	return nil
}
