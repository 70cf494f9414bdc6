package partitions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// A coordinator changes the assignment. There is one at a time: whoever has coordinatorLock. A former one
// that does not know yet that it has lost it cannot replace an assignment that it has not read.
type coordinator struct {
	store   store.Store
	log     *slog.Logger
	watches sync.WaitGroup

	assignment assignment
	revision   uint64

	mu      sync.Mutex
	watched map[string]bool // by member: whether it has ended; those that are not here are not watched
}

// coordinate changes the assignment as members come and go, whenever this process is the coordinator, until ctx ends.
func coordinate(ctx context.Context, s store.Store, log *slog.Logger) {
	for ctx.Err() == nil {
		err := store.Locked(ctx, s, coordinatorLock, func(ctx context.Context) error {
			ctx, end := context.WithCancel(ctx)
			c := &coordinator{store: s, log: log, watched: map[string]bool{}}
			defer c.watches.Wait()
			defer end()
			return c.run(ctx)
		})
		if err != nil && ctx.Err() == nil {
			log.Warn("work cannot be divided among gateways; trying again", "err", err)
			pause(ctx, interval)
		}
	}
}

func (c *coordinator) run(ctx context.Context) (err error) {
	c.assignment, c.revision, err = assignments(c.store).Get(ctx, assignmentKey)
	switch {
	case errors.Is(err, store.ErrNotFound):
		c.assignment = newAssignment()
	case err != nil:
		return fmt.Errorf("read who does what: %w", err)
	}
	for ctx.Err() == nil {
		if err := c.look(ctx); err != nil {
			return err
		}
		pause(ctx, interval)
	}
	return nil
}

// look changes the assignment once, if members have come, gone, or left what they were to leave.
func (c *coordinator) look(ctx context.Context) error {
	members := map[string]record{}
	for e, err := range records(c.store).Each(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrDamaged) { // else it is a member, of which nothing is known yet
			return fmt.Errorf("read the members: %w", err)
		}
		members[e.Key] = e.Value
	}
	gone := c.gone(ctx, members)
	var eligible []string
	for id, m := range members {
		if !m.Leaves && !slices.Contains(gone, id) {
			eligible = append(eligible, id)
		}
	}
	next := c.assignment.next()
	released := next.release(func(id string, p int) bool {
		return slices.Contains(gone, id) || members[id].hasLeft(p, next.Leaving[p])
	})
	if next.balance(eligible) || released {
		revision, err := assignments(c.store).Put(ctx, assignmentKey, next, c.revision)
		if err != nil {
			return fmt.Errorf("write who does what: %w", err)
		}
		c.assignment = next
		c.revision = revision
	}
	for _, id := range gone { // it owns nothing any more
		if err := records(c.store).Delete(ctx, id); err != nil {
			return fmt.Errorf("remove a member: %w", err)
		}
	}
	return nil
}

// gone returns those of members, and of the owners, that have ended, and watches the others.
func (c *coordinator) gone(ctx context.Context, members map[string]record) (gone []string) {
	ids := slices.Concat(c.assignment.Owners, slices.Collect(maps.Keys(members)))
	slices.Sort(ids)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range slices.Compact(ids) {
		ended, watched := c.watched[id]
		switch {
		case ended:
			gone = append(gone, id)
		case !watched && id != "":
			c.watched[id] = false
			c.watches.Go(func() { c.watch(ctx, id) })
		}
	}
	return gone
}

// watch waits until member id has ended: its lock can be taken then.
func (c *coordinator) watch(ctx context.Context, id string) {
	for {
		lease, err := c.store.Lock(ctx, memberLock(id))
		if err == nil {
			lease.Unlock()
			break
		}
		if ctx.Err() != nil {
			return
		}
		c.log.Warn("it is not known whether a member has ended; trying again", "member", id, "err", err)
		pause(ctx, interval)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watched[id] = true
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
