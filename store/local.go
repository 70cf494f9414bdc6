package store

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Pending is the part of a queue that lives in memory: which work is free and
// which is in somebody's hands. It serves the drivers whose queues belong to
// one process. Work is known by its number; the lowest is the oldest.
type Pending struct {
	wake chan struct{} // holds one token when work may be free
	end  chan struct{}

	mu   sync.Mutex
	work map[uint64]holder
	free numbers // may still name work that was dropped
}

type holder int

const (
	nobody holder = iota
	someone
	resting // given back, its time has not come
)

// NewPending returns a Pending without work.
func NewPending() *Pending {
	return &Pending{wake: make(chan struct{}, 1), end: make(chan struct{}), work: map[uint64]holder{}}
}

// Add makes work known, free to be pulled.
func (p *Pending) Add(ns ...uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range ns {
		p.release(n)
	}
}

// Pull waits for the oldest free work and holds it. It returns the error of
// ctx, or ErrClosed after Close.
func (p *Pending) Pull(ctx context.Context) (uint64, error) {
	for {
		if err := ctx.Err(); err != nil {
			p.signal() // the token this call may have taken is for someone else
			return 0, err
		}
		select {
		case <-p.end:
			return 0, ErrClosed
		default:
		}
		if n, ok := p.take(); ok {
			return n, nil
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
		case <-p.end:
		}
	}
}

// Return gives held work back after d. It does nothing for work that is not held.
func (p *Pending) Return(n uint64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.work[n] != someone:
	case d <= 0:
		p.release(n)
	default:
		p.work[n] = resting
		time.AfterFunc(d, func() { p.rested(n) })
	}
}

// Later returns the Later of the [Item] that holds n now. It works once: by
// the second time somebody else may hold n.
func (p *Pending) Later(n uint64) func(time.Duration) {
	var once sync.Once
	return func(d time.Duration) { once.Do(func() { p.Return(n, d) }) }
}

func (p *Pending) rested(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work[n] == resting {
		p.release(n)
	}
}

// Drop forgets work, whoever holds it.
func (p *Pending) Drop(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.work, n)
}

// Len counts the work that was not dropped.
func (p *Pending) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.work)
}

// Close ends every Pull. It must be called once.
func (p *Pending) Close() { close(p.end) }

func (p *Pending) release(n uint64) {
	p.work[n] = nobody
	heap.Push(&p.free, n)
	p.signal()
}

func (p *Pending) take() (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 {
		n := heap.Pop(&p.free).(uint64)
		if h, ok := p.work[n]; !ok || h != nobody {
			continue
		}
		p.work[n] = someone
		if len(p.free) > 0 {
			p.signal()
		}
		return n, true
	}
	return 0, false
}

func (p *Pending) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// numbers is a heap, the lowest first.
type numbers []uint64

func (s numbers) Len() int           { return len(s) }
func (s numbers) Less(i, j int) bool { return s[i] < s[j] }
func (s numbers) Swap(i, j int)      { s[i], s[j] = s[j], s[i] }
func (s *numbers) Push(n any)        { *s = append(*s, n.(uint64)) }
func (s *numbers) Pop() any {
	last := len(*s) - 1
	n := (*s)[last]
	*s = (*s)[:last]
	return n
}

// Locks are the named locks of a Store that belongs to one process.
type Locks struct {
	end chan struct{}

	mu    sync.Mutex
	named map[string]*lock
}

type lock struct {
	held  chan struct{}
	users int // holder and waiters; the lock is forgotten with the last
}

// NewLocks returns Locks that nobody holds.
func NewLocks() *Locks {
	return &Locks{end: make(chan struct{}), named: map[string]*lock{}}
}

// Lock is [Store.Lock].
func (l *Locks) Lock(ctx context.Context, name string) (unlock func(), err error) {
	k := l.join(name)
	select {
	case <-l.end:
		err = ErrClosed
	case <-ctx.Done():
		err = ctx.Err()
	default:
		select {
		case k.held <- struct{}{}:
			return sync.OnceFunc(func() {
				<-k.held
				l.leave(name, k)
			}), nil
		case <-l.end:
			err = ErrClosed
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	l.leave(name, k)
	return nil, err
}

// Close makes whoever waits for a lock return ErrClosed. It must be called once.
func (l *Locks) Close() { close(l.end) }

func (l *Locks) join(name string) *lock {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.named[name]
	if !ok {
		k = &lock{held: make(chan struct{}, 1)}
		l.named[name] = k
	}
	k.users++
	return k
}

func (l *Locks) leave(name string, k *lock) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.users--; k.users == 0 {
		delete(l.named, name)
	}
}
