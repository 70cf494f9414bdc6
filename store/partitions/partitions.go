// Package partitions divides work among the processes that share a Store.
//
// Work is split into [Count] partitions; equal keys always map to the same one. A process that does work is a member,
// and at most one member owns a partition. Who owns what is the assignment, one value in the Store. One of the members
// is the coordinator: it alone changes the assignment, so that all members own about the same number of partitions,
// and as few as possible change hands.
//
// A member has a lock, and is alive as long as that is held. Again and again it reads the assignment, begins the work
// of partitions that it owns by now, and ends that of partitions which it is to release. In its record it publishes
// what it works on, and which assignment it has read. A partition gets another owner once the one before has published
// that it does not work on it any more, or once the coordinator has got the lock of that one. No clocks are compared,
// and what is read may be old. A process that stood still may go on for a moment after its lock is lost, as with any
// lock: see [store.Lease].
//
// The coordinator has a lock of its own. A member that loses that ends as if it had lost its own lock, and gives it
// back only when it has ended its work: so whoever gets it knows that the coordinator before has ended. It writes the
// assignment anew before it does anything else. What a former coordinator has sent, and what arrives late, then
// replaces nothing.
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
	return int((sum ^ sum>>32) % Count) // the low bits of FNV are poorly mixed for similar keys
}

// A MemberID identifies a member. It must never be used again.
type MemberID string

// Config configures a member.
type Config struct {
	Store store.Store // closed after Join has returned
	ID    MemberID
	Name  string // what people call its process
	Log   *slog.Logger

	// Work does the work of a partition, in a goroutine of its own. Once release is closed it begins nothing more,
	// finishes what it has begun and returns: only then another member can own the partition. When ctx ends, another
	// one may own it already: Work writes nothing any more and returns at once. If it returns before it is asked to,
	// it is soon called again.
	Work func(ctx context.Context, partition int, release <-chan struct{})
}

// Names in the Store.
const (
	assignmentKey   = "assignment"
	coordinatorLock = "partitions coordinator"
)

func memberLock(id MemberID) string { return "member " + string(id) }

// interval is between two looks at the Store, of members and of the coordinator.
const interval = time.Second

// A record is what a member publishes about itself.
type record struct {
	Name     string    `json:"name"`
	Joined   time.Time `json:"joined"`
	Working  []int     `json:"working"`  // the partitions on which it works
	Version  uint64    `json:"version"`  // of the assignment that it had read when it worked on these
	Draining bool      `json:"draining"` // it wants to own nothing any more
}

// hasReleased reports whether the member does not work on partition p any more, which the assignment with the version
// asked has asked it to release; 0: none has.
func (r record) hasReleased(p int, asked uint64) bool {
	return asked > 0 && r.Version >= asked && !slices.Contains(r.Working, p)
}

// records returns the table of those of all members, by ID.
func records(s store.Store) store.Table[record] {
	return store.NewTable(s.Bucket(store.BucketMembers), store.Report[record])
}

// An assignment says who owns which partitions.
type assignment struct {
	Version     uint64     // one more than that of the assignment before
	Coordinator MemberID   // who has written it
	Owners      []MemberID // of each partition; "": nobody
	// Releasing has the partitions that their owners are to release, with the version that asked for it first.
	Releasing map[int]uint64
}

// assignments returns the table of the one assignment.
func assignments(s store.Store) store.Table[assignment] {
	return store.NewTable(s.Bucket(store.BucketPartitions), store.Report[assignment])
}

// newAssignment returns one in which nobody owns anything.
func newAssignment() assignment {
	return assignment{Owners: make([]MemberID, Count), Releasing: map[int]uint64{}}
}

// next returns the assignment that follows a, in which only the version differs.
func (a assignment) next() assignment {
	a.Version++
	a.Owners = slices.Clone(a.Owners)
	a.Releasing = maps.Clone(a.Releasing)
	return a
}

// shouldWork reports whether member id is to work on partition p.
func (a assignment) shouldWork(id MemberID, p int) bool {
	_, releasing := a.Releasing[p]
	return a.Owners[p] == id && !releasing
}

// An assignmentJSON is an assignment with each member's ID written once.
type assignmentJSON struct {
	Version     uint64             `json:"version"`
	Coordinator MemberID           `json:"coordinator"`
	Owned       map[MemberID][]int `json:"owned"`
	Releasing   map[int]uint64     `json:"releasing,omitempty"`
}

// MarshalJSON implements [json.Marshaler].
func (a assignment) MarshalJSON() ([]byte, error) {
	owned := map[MemberID][]int{}
	for p, id := range a.Owners {
		if id != "" {
			owned[id] = append(owned[id], p)
		}
	}
	return json.Marshal(assignmentJSON{a.Version, a.Coordinator, owned, a.Releasing})
}

// UnmarshalJSON implements [json.Unmarshaler].
func (a *assignment) UnmarshalJSON(body []byte) error {
	var s assignmentJSON
	if err := json.Unmarshal(body, &s); err != nil {
		return err
	}
	*a = newAssignment()
	a.Version = s.Version
	a.Coordinator = s.Coordinator
	maps.Copy(a.Releasing, s.Releasing)
	for id, owned := range s.Owned {
		for _, p := range owned {
			if p < 0 || p >= Count || a.Owners[p] != "" {
				return fmt.Errorf("partition %d of %s does not exist, or has two owners", p, id)
			}
			a.Owners[p] = id
		}
	}
	return nil
}
