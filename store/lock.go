package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// A Lease is a lock that is held until Unlock is called, the Store is closed, the process
// ends, or it is lost.
type Lease struct {
	Fence  uint64          // larger than that of every earlier Lease of this name, also after a restart
	Lost   <-chan struct{} // closed when the lock may be somebody else's; nil where that cannot be
	Unlock func()          // may be called twice, and after the Lease was lost
}

// ErrLockLost says that a lock was lost while work was done under it.
var ErrLockLost = errors.New("lock was lost")

// Locked calls do while it holds the lock name of s. The ctx of do ends, with the cause
// ErrLockLost, when the lock may be somebody else's: do must write nothing without that
// ctx. Locked returns the error of do, and says if it failed because the lock was lost.
func Locked(ctx context.Context, s Store, name string, do func(context.Context) error) error {
	lease, err := s.Lock(ctx, name)
	if err != nil {
		return err
	}
	defer lease.Unlock()
	held, end := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	defer watch.Wait()
	defer end(nil)
	watch.Go(func() {
		select {
		case <-lease.Lost:
			end(ErrLockLost)
		case <-held.Done():
		}
	})
	err = do(held)
	if err != nil && errors.Is(context.Cause(held), ErrLockLost) {
		return fmt.Errorf("lock %q: %w: %w", name, ErrLockLost, err)
	}
	return err
}

// Usable returns an error that is [ErrClosed] unless it is certain that no other process has taken s over by now.
// Whoever acts outside of s, on what it says there, asks just before: a process that stood still goes on anywhere.
func Usable(s Store) error {
	if t, ok := s.(interface{ Usable() error }); ok {
		return t.Usable()
	}
	return nil
}

// Locks are the named locks of a Store that belongs to one process. A name that was
// locked once stays in memory.
type Locks struct {
	bucket Bucket
	end    chan struct{}

	mu    sync.Mutex
	named map[string]chan struct{} // holds a token while the lock is held

	fenceMu sync.Mutex // held while the bucket is written
	fence   uint64     // the last that was given; 0: none was
}

// NewLocks returns Locks of which none is held. Their fences grow from one start of the
// Store to the next because b, its bucket [BucketLocks], counts the starts.
func NewLocks(b Bucket) *Locks {
	return &Locks{bucket: b, end: make(chan struct{}), named: map[string]chan struct{}{}}
}

// Lock implements [Store.Lock].
func (l *Locks) Lock(ctx context.Context, name string) (Lease, error) {
	select {
	case <-l.end:
		return Lease{}, ErrClosed
	default:
	}
	if err := ctx.Err(); err != nil {
		return Lease{}, err
	}
	held := l.lock(name)
	select {
	case held <- struct{}{}:
	case <-l.end:
		return Lease{}, ErrClosed
	case <-ctx.Done():
		return Lease{}, ctx.Err()
	}
	unlock := sync.OnceFunc(func() { <-held })
	fence, err := l.nextFence(ctx)
	if err != nil {
		unlock()
		return Lease{}, fmt.Errorf("lock %q: %w", name, err)
	}
	return Lease{Fence: fence, Unlock: unlock}, nil
}

// fenceBits is how many bits of a fence count the leases of one start of the Store. Those
// before them are the number of the start.
const fenceBits = 32

// nextFence returns a number that is larger than all before. The first one of a start is
// the only one that is written for.
func (l *Locks) nextFence(ctx context.Context) (uint64, error) {
	l.fenceMu.Lock()
	defer l.fenceMu.Unlock()
	if l.fence == 0 {
		start, err := l.bucket.Put(ctx, "starts", nil, Any) // a revision is larger than those before
		if errors.Is(err, ErrDamaged) {
			start, err = uint64(time.Now().Unix()), nil // which no number of starts comes near
		}
		if err != nil {
			return 0, err
		}
		l.fence = start << fenceBits
	}
	l.fence++
	return l.fence, nil
}

// Close makes waiting calls return ErrClosed. It must be called once.
func (l *Locks) Close() { close(l.end) }

func (l *Locks) lock(name string) chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.named[name] == nil {
		l.named[name] = make(chan struct{}, 1)
	}
	return l.named[name]
}
