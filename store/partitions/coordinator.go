package partitions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// A coordinator changes the assignment as members come and go. Its member has coordinatorLock.
type coordinator struct {
	store   store.Store
	id      MemberID // of its member
	log     *slog.Logger
	watches sync.WaitGroup

	// What it has written last, unless that is not certain.
	isCurrent  bool
	assignment assignment
	revision   uint64

	mu    sync.Mutex
	ended map[MemberID]bool // false: the member is watched
}

// coordinate waits until the member of c has coordinatorLock, and is the coordinator then, until ctx ends. The error is
// [store.ErrLockLost] if the member must end, too.
func (c *coordinator) coordinate(ctx context.Context) error {
	for {
		err := store.Locked(ctx, c.store, coordinatorLock, c.run)
		if ctx.Err() != nil || errors.Is(err, store.ErrLockLost) {
			return err
		}
		c.log.Warn("could not wait for the partition assignment; trying again", "err", err)
		pause(ctx)
	}
}

func (c *coordinator) run(ctx context.Context) error {
	defer c.watches.Wait()
	ctx, end := context.WithCancel(ctx)
	defer end()
	for ctx.Err() == nil {
		if err := c.update(ctx); err != nil && ctx.Err() == nil {
			c.log.Warn("could not update the partition assignment; trying again", "err", err)
			c.isCurrent = false
		}
		pause(ctx)
	}
	return ctx.Err()
}

// update changes the assignment if members have come, ended, or released what they were asked for.
func (c *coordinator) update(ctx context.Context) error {
	members := map[MemberID]record{}
	for e, err := range records(c.store).Each(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrDamaged) { // else it is a member, of which nothing is known yet
			return fmt.Errorf("read the members: %w", err)
		}
		members[MemberID(e.Key)] = e.Value
	}
	if !c.isCurrent {
		if err := c.take(ctx, members); err != nil {
			return err
		}
	}
	ended := c.endedMembers(ctx, members)
	eligible := map[MemberID]bool{}
	for id, m := range members {
		if !m.Draining && !ended[id] {
			eligible[id] = true
		}
	}
	next := c.assignment.next()
	freed := next.freeIf(func(id MemberID, p int) bool {
		return ended[id] || members[id].hasReleased(p, next.Releasing[p])
	})
	if next.balance(eligible) || freed {
		if err := c.put(ctx, next); err != nil {
			return err
		}
	}
	for id := range ended { // they own nothing any more
		c.remove(ctx, id)
	}
	return nil
}

// take writes the assignment anew. The members that work know no other one then, and no write of a former coordinator
// replaces it, however late that arrives.
func (c *coordinator) take(ctx context.Context, members map[MemberID]record) (err error) {
	c.assignment, c.revision, err = assignments(c.store).Get(ctx, assignmentKey)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDamaged):
		ended := c.endedMembers(ctx, members)
		for id, m := range members {
			if m.Version > 0 && !ended[id] {
				return fmt.Errorf("nobody knows who works on what; %s still works: stop all gateways: %w", m.Name, err)
			}
		}
		c.assignment = newAssignment()
	case err != nil:
		return fmt.Errorf("read the partition assignment: %w", err)
	}
	if former := c.assignment.Coordinator; former != c.id { // it has ended, or this one would not have its lock
		c.setEnded(former)
	}
	next := c.assignment.next()
	next.Coordinator = c.id
	if err := c.put(ctx, next); err != nil {
		return err
	}
	c.isCurrent = true
	return nil
}

// put replaces the assignment.
func (c *coordinator) put(ctx context.Context, next assignment) error {
	revision, err := assignments(c.store).Put(ctx, assignmentKey, next, c.revision)
	if err != nil {
		return fmt.Errorf("write the partition assignment: %w", err)
	}
	c.assignment = next
	c.revision = revision
	return nil
}

// endedMembers returns those of members, and of the owners, that have ended, and has the others watched.
func (c *coordinator) endedMembers(ctx context.Context, members map[MemberID]record) map[MemberID]bool {
	ids := slices.Clone(c.assignment.Owners)
	for id := range members {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	ended := map[MemberID]bool{}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Compact(ids) {
		hasEnded, watched := c.ended[id]
		switch {
		case hasEnded:
			ended[id] = true
		case !watched && id != "":
			c.ended[id] = false
			c.watches.Go(func() { c.watch(ctx, id) })
		}
	}
	return ended
}

// watch waits until member id has ended: its lock can be taken then.
func (c *coordinator) watch(ctx context.Context, id MemberID) {
	for {
		lease, err := c.store.Lock(ctx, memberLock(id))
		if err == nil {
			lease.Unlock()
			break
		}
		if ctx.Err() != nil {
			return
		}
		c.log.Warn("could not determine whether a member has ended; trying again", "member", id, "err", err)
		pause(ctx)
	}
	c.setEnded(id)
}

func (c *coordinator) setEnded(id MemberID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended[id] = true
}

// remove removes the record of a member that has ended. If that does not succeed now, it does later.
func (c *coordinator) remove(ctx context.Context, id MemberID) {
	if err := records(c.store).Delete(ctx, string(id)); err != nil {
		c.log.Debug("could not remove the record of a member that has ended", "member", id, "err", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ended, id)
}

// pause waits until it is time to look again, or ctx ends.
func pause(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(interval):
	}
}
