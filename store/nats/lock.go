package nats

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"

	"parley/store"
)

// A lock is a subject. Whoever holds it writes there again and again. If somebody else has seen the same message for
// leaseTime, by its own clock, it takes the lock over. The holder counts from before it began to write, and gives up
// earlier, so that no clocks need to agree.
const (
	leaseTime     = 6 * time.Second
	unlockTimeout = 2 * time.Second
)

// leaseLimit is how long after its last confirmed write a holder counts its lock as lost.
func (s *Store) leaseLimit() time.Duration { return s.leaseTime * 2 / 3 }

// renewInterval is how long after its last confirmed write a holder writes again.
func (s *Store) renewInterval() time.Duration { return s.leaseTime / 3 }

// lookInterval is between two looks at a lock, of its holder and of who waits for it.
func (s *Store) lookInterval() time.Duration { return s.leaseTime / 6 }

// Lock implements [store.Store].
func (s *Store) Lock(ctx context.Context, name string) (store.Lease, error) {
	lease, err := s.lock(ctx, name)
	if err != nil {
		return store.Lease{}, fmt.Errorf("lock %q: %w", name, err)
	}
	return lease, nil
}

func (s *Store) lock(ctx context.Context, name string) (store.Lease, error) {
	l, err := s.newLease(ctx, s.lockSubject(name), name)
	if err != nil {
		return store.Lease{}, err
	}
	return l.Lease, nil
}

func (s *Store) lockSubject(name string) string { return s.prefix + ".lock." + token(name) }

// newLease waits until nobody has the lock that is subject, and takes it.
func (s *Store) newLease(ctx context.Context, subject, name string) (*lease, error) {
	return s.newLeaseAfter(ctx, subject, name, nil)
}

// newLeaseAfter is newLease that calls waiting with who has the lock, once, if it has to wait for another process.
func (s *Store) newLeaseAfter(
	ctx context.Context, subject, name string, waiting func(holder string),
) (*lease, error) {
	release, err := s.lockHere(ctx, subject)
	if err != nil {
		return nil, err
	}
	l := &lease{
		stream:  s.stream("buckets"),
		subject: subject,
		name:    name,
		lost:    make(chan struct{}),
		ended:   make(chan struct{}),
	}
	if err := l.acquire(ctx, waiting); err != nil {
		release()
		return nil, err
	}
	l.Lost = l.lost
	l.Fence = l.seq
	l.Unlock = sync.OnceFunc(func() {
		s.removeLease(l)
		l.release()
		release()
	})
	l.lose = sync.OnceFunc(func() { close(l.lost) })
	l.release = sync.OnceFunc(l.giveBack)
	held, end := context.WithCancel(context.WithoutCancel(ctx))
	l.end = end
	go func() {
		defer close(l.ended)
		l.keep(held)
	}()
	if !s.addLease(l) {
		l.Unlock()
		return nil, store.ErrClosed
	}
	return l, nil
}

// lockHere locks subject among those of this process.
func (s *Store) lockHere(ctx context.Context, subject string) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, store.ErrClosed
	}
	held := s.locked[subject]
	if held == nil {
		held = make(chan struct{}, 1)
		s.locked[subject] = held
	}
	s.mu.Unlock()
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-s.closing.Done():
		return nil, store.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A lease is a lock that this process has.
type lease struct {
	store.Lease
	previous uint64 // the message of who had it before, 0 if nobody had

	stream  stream
	subject string
	name    string
	lost    chan struct{}
	lose    func()             // closes lost, once
	taken   atomic.Bool        // somebody else may have it: there is nothing to give back
	release func()             // ends keep and gives the lock back, once
	end     context.CancelFunc // of keep
	ended   chan struct{}      // keep has

	confirmed atomic.Pointer[moment] // before the last message that is known to be ours was written

	// Those of keep, until it has ended.
	seq     uint64 // of that message
	renewal *client.Msg
	began   moment // when renewal was sent first
}

// age returns how long ago the lease was confirmed last.
func (l *lease) age() time.Duration { return l.confirmed.Load().elapsed() }

// claim returns the message of a holder.
func (l *lease) claim() *client.Msg {
	m := newMessage(l.subject, "", newWriteID(), []byte(l.stream.store.self))
	m.Header.Set(headerName, escape(l.name))
	m.Header.Set(client.MsgRollup, client.MsgRollupSubject)
	return m
}

// acquire waits until the lock is free. It calls waiting, which may be nil, if it is not, and
// again when somebody else has it.
func (l *lease) acquire(ctx context.Context, waiting func(holder string)) error {
	s := l.stream.store
	var seen uint64         // the message of the holder
	var holder, told string // who has it by now, and of whom waiting was told
	var since moment
	for {
		free := false
		err := s.call(ctx, func() error {
			m, err := l.stream.last(ctx, l.subject)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			free = err != nil || m.isGone() || s.isOfEarlierGateway(m)
			if !free && m.seq != seen {
				since = now()
			}
			seen = m.seq
			holder = string(m.body)
			if free = free || since.elapsed() >= s.leaseTime; !free {
				return nil
			}
			msg := l.claim()
			began := now()
			l.confirmed.Store(&began)
			l.previous = m.seq
			l.seq, err = l.stream.writeLast(ctx, m.seq, msg)
			return err
		})
		switch {
		case err != nil && !errors.Is(err, store.ErrConflict):
			return err
		case err != nil: // somebody else was faster
			continue
		case free:
			return nil
		}
		if waiting != nil && holder != told {
			waiting(holder)
			told = holder
		}
		select {
		case <-time.After(s.lookInterval()):
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing.Done():
			return store.ErrClosed
		}
	}
}

// isOfEarlierGateway reports whether m, the message of who holds a lock, is of the gateway that this one has taken over
// from, or of one before that: those hold no locks any more.
func (s *Store) isOfEarlierGateway(m message) bool {
	gateway := s.gatewayLease.Load()
	return gateway != nil && m.seq < gateway.Fence
}

// keep renews the lease until ctx ends or the lease is lost.
func (l *lease) keep(ctx context.Context) {
	s := l.stream.store
	for {
		wait := s.lookInterval()
		if l.renewal != nil { // it was not answered: there is time for another try before the lease is late
			wait /= 10
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		if l.age() >= s.renewInterval() {
			if err := l.renew(context.WithoutCancel(ctx)); errors.Is(err, store.ErrConflict) {
				l.reportLoss("somebody else has it")
				return
			}
		}
		if l.age() >= s.leaseLimit() {
			l.reportLoss("it could not be renewed in time")
			return
		}
	}
}

// renew writes once more. If no answer comes it writes the same the next time, which counts from the first time.
func (l *lease) renew(ctx context.Context) error {
	if gateway := l.stream.store.gatewayLease.Load(); gateway != l {
		if err := l.stream.store.Usable(); err != nil { // its locks are free then
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, l.stream.store.lookInterval())
	defer cancel()
	if l.renewal == nil {
		l.renewal = l.claim()
		l.renewal.Header.Set(client.ExpectedLastSubjSeqHdr, fmt.Sprint(l.seq))
		l.began = now()
	}
	seq, err := l.stream.publish(ctx, []*client.Msg{l.renewal})
	if refused, ok := errors.AsType[*apiError](err); ok && refused.isConflict() {
		found, at, lookErr := l.stream.lookAtLast(l.renewal, l.seq)(ctx)
		switch {
		case lookErr != nil:
			return lookErr
		case found == foundUnchanged:
			return errBusy
		case found == foundOther:
			return store.ErrConflict
		}
		seq, err = at, nil
	}
	if err != nil {
		return err
	}
	l.seq = seq
	confirmed := l.began
	l.confirmed.Store(&confirmed)
	l.renewal = nil
	return nil
}

func (l *lease) reportLoss(why string) {
	l.stream.store.log.Error("lock lost", "lock", l.name, "why", why)
	l.taken.Store(true)
	l.lose()
}

// giveBack ends the lease. If it cannot say so, others find out after leaseTime.
func (l *lease) giveBack() {
	l.end()
	<-l.ended
	if l.taken.Load() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), unlockTimeout)
	defer cancel()
	if l.renewal != nil {
		_ = l.renew(ctx) // it is known then what the last message is, or others have the lock
	}
	m := newMessage(l.subject, kindGone, newWriteID(), nil)
	m.Header.Set(headerName, escape(l.name))
	m.Header.Set(client.MsgRollup, client.MsgRollupSubject)
	if _, err := l.stream.writeLast(ctx, l.seq, m); err != nil {
		l.stream.store.log.Warn("lock not released; others get it later", "lock", l.name, "err", err)
	}
}

// addLease reports false if the Store is closed.
func (s *Store) addLease(l *lease) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.leases[l] = true
	return true
}

func (s *Store) removeLease(l *lease) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, l)
}

// holder says who has the lock name, "" if nobody does.
func (s *Store) holder(ctx context.Context, name string) (who string, err error) {
	err = s.call(ctx, func() error {
		m, err := s.stream("buckets").last(ctx, s.lockSubject(name))
		if errors.Is(err, store.ErrNotFound) || err == nil && m.isGone() {
			return nil
		}
		who = string(m.body)
		return err
	})
	return who, err
}
