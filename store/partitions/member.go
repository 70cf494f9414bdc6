package partitions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// Join makes this process a member until leave is closed. It then begins no work any more, and returns nil once all
// that it has is ended. It returns an error that is [store.ErrLockLost], with all work ended, if other members may have
// taken over: to go on, join again with another ID. When ctx ends it ends all work, and returns the error of ctx.
func Join(ctx context.Context, c Config, leave <-chan struct{}) error {
	var coordinating sync.WaitGroup
	defer coordinating.Wait()
	candidate, end := context.WithCancel(ctx)
	defer end() // after the member has left, which a coordinator has to see
	coordinating.Go(func() { coordinate(candidate, c.Store, c.Log) })
	err := store.Locked(ctx, c.Store, memberLock(c.ID), func(ctx context.Context) error {
		return newMember(c).run(ctx, leave)
	})
	if err != nil {
		return fmt.Errorf("share the work of all gateways: %w", err)
	}
	return nil
}

// A member is this process among those that share the work.
type member struct {
	config     Config
	assignment assignment // the one it acts on
	record     record     // what it says of itself
	written    record     // what it has said, as the value that has the revision
	revision   uint64
	wake       chan struct{} // holds a token when the work of a partition has ended

	mu    sync.Mutex
	works map[int]func() // by partition whose Work has not returned: what asks that to leave
}

func newMember(c Config) *member {
	return &member{
		config:     c,
		assignment: newAssignment(),
		record:     record{Name: c.Name, Joined: time.Now()},
		wake:       make(chan struct{}, 1),
		works:      map[int]func(){},
	}
}

// run works until leave is closed and all work has ended, or ctx ends.
func (m *member) run(ctx context.Context, leave <-chan struct{}) error {
	var working sync.WaitGroup
	defer working.Wait()
	for {
		if err := m.look(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.Warn("it cannot be read who does what; trying again", "err", err)
		}
		m.reconcile(func(p int, leave <-chan struct{}) {
			working.Go(func() {
				m.config.Work(ctx, p, leave)
				m.end(p)
			})
		})
		if err := m.publish(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.Warn("it cannot be written what this gateway does; trying again", "err", err)
		}
		if m.record.Leaves && len(m.record.Works) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-leave:
			m.record.Leaves = true
			leave = nil
		case <-m.wake:
			pause(ctx, gatherDelay)
		case <-time.After(interval):
		}
	}
}

// look reads the assignment. One that is older than what was read before, as a server that lags behind may have, is not
// acted on.
func (m *member) look(ctx context.Context) error {
	a, _, err := assignments(m.config.Store).Get(ctx, assignmentKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.Number > m.assignment.Number {
		m.assignment = a
	}
	return nil
}

// reconcile calls begin for the partitions whose work is to begin, and asks that of others to end.
func (m *member) reconcile(begin func(p int, leave <-chan struct{})) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range Count {
		ask, works := m.works[p]
		mine := !m.record.Leaves && m.assignment.isOf(m.config.ID, p)
		switch {
		case works && !mine:
			ask()
		case mine && !works:
			leave := make(chan struct{})
			m.works[p] = sync.OnceFunc(func() { close(leave) })
			begin(p, leave)
		}
	}
	m.record.Works = slices.Sorted(maps.Keys(m.works))
	m.record.Seen = m.assignment.Number
}

// end notes that the work of p has ended.
func (m *member) end(p int) {
	m.mu.Lock()
	delete(m.works, p)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// publish writes the record if it has changed.
func (m *member) publish(ctx context.Context) error {
	if reflect.DeepEqual(m.record, m.written) {
		return nil
	}
	revision, err := records(m.config.Store).Put(ctx, m.config.ID, m.record, m.revision)
	if errors.Is(err, store.ErrConflict) { // an earlier one was written, which nobody has confirmed
		_, m.revision, _ = records(m.config.Store).Get(ctx, m.config.ID)
	}
	if err != nil {
		return err
	}
	m.written = m.record
	m.revision = revision
	return nil
}
