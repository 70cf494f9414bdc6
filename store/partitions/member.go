package partitions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// Join runs this process as a member until leave is closed. It then begins no work any more, and returns nil when all
// work has ended. It returns an error that is [store.ErrLockLost], with all work ended, if other members may have taken
// over: to go on, join again with another ID. When ctx ends it ends all work, and returns why.
func Join(ctx context.Context, c Config, leave <-chan struct{}) error {
	err := store.Locked(ctx, c.Store, memberLock(c.ID), func(ctx context.Context) error {
		m := newMember(c)
		ctx, end := context.WithCancelCause(ctx)
		var coordinating sync.WaitGroup
		defer coordinating.Wait()
		defer end(nil) // when all work has ended: a coordinator still has to see who begins it
		coordinating.Go(func() {
			if err := m.coordinator.coordinate(ctx); err != nil {
				end(err)
			}
		})
		return m.run(ctx, leave)
	})
	if err != nil {
		return fmt.Errorf("share work with other gateways: %w", err)
	}
	return nil
}

// A member is this process among those that share the work.
type member struct {
	config      Config
	coordinator *coordinator
	assignment  assignment // the one it acts on
	record      record     // what there is to publish
	published   record
	revision    uint64 // of that

	mu    sync.Mutex
	works map[int]func() // by partition whose Work has not returned: what asks that to return
}

func newMember(c Config) *member {
	return &member{
		config:      c,
		coordinator: &coordinator{store: c.Store, id: c.ID, log: c.Log, ended: map[MemberID]bool{}},
		assignment:  newAssignment(),
		record:      record{Name: c.Name, Joined: time.Now()},
		works:       map[int]func(){},
	}
}

// run works until leave is closed and all work has ended, or ctx ends.
func (m *member) run(ctx context.Context, leave <-chan struct{}) error {
	var working sync.WaitGroup
	defer working.Wait()
	for ctx.Err() == nil {
		if err := m.readAssignment(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.Warn("could not read the partition assignment; trying again", "err", err)
		}
		if ctx.Err() != nil {
			break
		}
		m.reconcile(func(p int, release <-chan struct{}) {
			working.Go(func() {
				defer m.end(p)
				m.config.Work(ctx, p, release)
			})
		})
		if m.record.Draining && len(m.record.Working) == 0 {
			return context.Cause(ctx)
		}
		if err := m.publish(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.Warn("could not publish which partitions this gateway works on; trying again", "err", err)
		}
		select {
		case <-leave:
			m.record.Draining = true
			leave = nil
		case <-ctx.Done():
		case <-time.After(interval):
		}
	}
	return context.Cause(ctx)
}

// readAssignment reads the assignment. One that is older than what was read before, as a server that lags behind may
// have, is not acted on.
func (m *member) readAssignment(ctx context.Context) error {
	a, _, err := assignments(m.config.Store).Get(ctx, assignmentKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if a.Version > m.assignment.Version {
		m.assignment = a
	}
	return nil
}

// reconcile calls begin for the partitions whose work is to begin, and asks for those that are to be released.
func (m *member) reconcile(begin func(p int, release <-chan struct{})) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range Count {
		ask, works := m.works[p]
		should := !m.record.Draining && m.assignment.shouldWork(m.config.ID, p)
		switch {
		case works && !should:
			ask()
		case should && !works:
			release := make(chan struct{})
			m.works[p] = sync.OnceFunc(func() { close(release) })
			begin(p, release)
		}
	}
	m.record.Working = slices.Sorted(maps.Keys(m.works))
	m.record.Version = m.assignment.Version
}

// end notes that the work of p has ended.
func (m *member) end(p int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.works, p)
}

// publish writes the record if somebody may want to know.
func (m *member) publish(ctx context.Context) error {
	if !m.hasNews() {
		return nil
	}
	revision, err := records(m.config.Store).Put(ctx, string(m.config.ID), m.record, m.revision)
	if errors.Is(err, store.ErrConflict) { // an earlier one was written, which nobody has confirmed
		_, m.revision, _ = records(m.config.Store).Get(ctx, string(m.config.ID))
	}
	if err != nil {
		return err
	}
	m.published = m.record
	m.revision = revision
	return nil
}

// hasNews reports whether the record says something else than was published, or that a request has been read.
func (m *member) hasNews() bool {
	if m.revision == 0 || m.record.Draining != m.published.Draining ||
		!slices.Equal(m.record.Working, m.published.Working) {
		return true
	}
	for p, asked := range m.assignment.Releasing {
		if m.assignment.Owners[p] == m.config.ID && m.published.Version < asked {
			return true
		}
	}
	return false
}
